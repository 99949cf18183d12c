# SPDX-License-Identifier: GPL-2.0-or-later
# For bash scripts whose commands print nothing: shows the progress of a command that takes longer than a few seconds.

# Prints how far a log shows that its command has come: the steps of apt, which has no number for them ("[5/9]" is ninja's own),
# and the last line that has a letter, cut to 70 bytes so that it fits beside the name.
progress_line() {
    local steps
    steps=$(grep -cE '^(Get:|Unpacking |Setting up )' "$1" 2>/dev/null) || steps=0
    [ "$steps" -eq 0 ] || printf '%d steps, ' "$steps"
    tail -c 2000 "$1" 2>/dev/null | tr '\r' '\n' | grep '[[:alpha:]]' | tail -n 1 | cut -c -70
}

# On a terminal this rewrites one line each second; a wheel turns, so that a long step does not look like a halt. Elsewhere it prints
# a line at 3 s and then every 10 s. A line that is the same as the one before says since when.
progress_tick() {
    local what=$1 log=$2 started=$SECONDS elapsed line before='' since=0 wheel='|/-\' same
    # A killed script cannot end its ticker, so the ticker ends when the script has gone.
    while sleep 1 </dev/null >/dev/null 2>&1 && [ -e "/proc/$$" ]; do
        elapsed=$((SECONDS - started))
        [ "$elapsed" -ge 3 ] || continue
        line=$(progress_line "$log") || true
        [ "$line" = "$before" ] || since=$elapsed
        before=$line
        same=''
        [ $((elapsed - since)) -lt 10 ] || same=" (for $((elapsed - since)) s)"
        if [ -t 2 ]; then
            printf '\r\033[K%s: %d s %s %s%s' "$what" "$elapsed" "${wheel:elapsed % 4:1}" "$line" "$same" >&2
        elif [ "$elapsed" -eq 3 ] || [ $((elapsed % 10)) -eq 0 ]; then
            printf '%s: %d s  %s%s\n' "$what" "$elapsed" "$line" "$same" >&2
        fi
    done
}

# End the ticker, and clear its line on a terminal.
progress_end() {
    { kill "$1" && wait "$1"; } 2>/dev/null || true
    [ ! -t 2 ] || printf '\r\033[K' >&2
}

# follow WHAT LOG COMMAND...: run the command with its output in LOG. Returns its status. The caller shows the output.
follow() {
    local what=$1 log=$2 started=$SECONDS status=0 ticker
    shift 2
    : >"$log"
    # The command stays in the foreground, so that an interrupt from the terminal ends it.
    progress_tick "$what" "$log" & ticker=$!
    "$@" >"$log" 2>&1 </dev/null || status=$?
    progress_end "$ticker"
    if [ "$status" -eq 0 ] && [ $((SECONDS - started)) -ge 3 ]; then
        printf '%s: %d s\n' "$what" "$((SECONDS - started))" >&2
    fi
    return "$status"
}
