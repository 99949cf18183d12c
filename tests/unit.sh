#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# unit.sh BUILD_DIR: the service unit of a build tree is clean for systemd-analyze verify, exposed by at most 2.6, and allows
# the system calls that asymd and its helpers make. Then the check is itself checked, on units that are spoilt on purpose.
set -eu
export LC_ALL=C
build=${1:?usage: unit.sh BUILD_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Tenths: systemd-analyze wants a whole number.
most_exposed=26
steering="sched_setaffinity sched_setscheduler sched_setattr setpriority perf_event_open"
speaking="accept4 recvmsg sendmsg shutdown getsockopt setsockopt memfd_create eventfd2 mmap"
# posix_spawn, the channels, and the end of a helper.
helping="vfork clone execve dup2 close_range socketpair pipe2 kill wait4 waitid pidfd_open pidfd_send_signal"
# A call that is refused here would leave a helper with more than it should have.
confining="prctl capset setgroups setresuid setresgid landlock_create_ruleset landlock_add_rule landlock_restrict_self"

fail() {
    echo "unit.sh: $*" >&2
    return 1
}

# The calls that a unit allows: its sets, and the sets in those. @default is in every list of what is allowed.
allowed() {
    sed -n 's/^SystemCallFilter=//p' "$1" | tr ' ' '\n' | cat - "$work/default" |
        awk -v sets="$work/sets" '
            BEGIN {
                while ((getline line <sets) > 0)
                    if (line ~ /^@/) set = line
                    else if (line ~ /^    [@a-z_]/) { sub(/^ +/, "", line); members[set] = members[set] " " line }
            }
            function expand(name,   part, n, i) {
                if (name !~ /^@/) { print name; return }
                n = split(members[name], part, " ")
                for (i = 1; i <= n; i++) expand(part[i])
            }
            { expand($1) }'
}

check() {
    # verify looks for the programs where they are to be installed: it is given the built one.
    sed "s#=[^ ]*/asymd\\( \\|\$\\)#=$(readlink -f "$build/daemon/asymd")\\1#" "$1" >"$work/asymd.service"
    said=$(systemd-analyze verify --man=no "$work/asymd.service" 2>&1 | grep asymd.service || true)
    [ -z "$said" ] || fail "systemd-analyze verify: $said" || return
    systemd-analyze security --offline=true --threshold=$most_exposed --no-pager "$work/asymd.service" \
        >"$work/security" 2>&1 || fail "$(grep 'Overall exposure' "$work/security" || cat "$work/security")" || return
    allowed "$work/asymd.service" >"$work/allowed"
    for call in $steering $speaking $helping $confining; do
        grep -qx "$call" "$work/allowed" || fail "the system call $call is not allowed" || return
    done
}

systemd-analyze syscall-filter --no-pager >"$work/sets"
echo @default >"$work/default"
unit=$build/systemd/asymd.service
check "$unit"
exposure=$(grep 'Overall exposure' "$work/security")

spoilt() {
    sed "$2" "$unit" >"$work/spoilt"
    ! cmp -s "$unit" "$work/spoilt" || { fail "self-check: $1 changes nothing"; exit 1; }
    if check "$work/spoilt" 2>/dev/null; then
        fail "self-check: $1 is not noticed"
        exit 1
    fi
}
spoilt "a directive that does not exist" 's/^KillMode=/KilMode=/'
spoilt "one more capability" 's/^CapabilityBoundingSet=/&CAP_SETUID /'
spoilt "a filter without Landlock" '/^SystemCallFilter=landlock/d'
spoilt "a filter without @system-service" 's/^SystemCallFilter=@system-service/SystemCallFilter=@basic-io/'
echo "$exposure"
