#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# unit.sh BUILD_DIR: checks that systemd-analyze verify accepts the service unit of a build tree, that its exposure is at most
# 2.6, and that it allows the system calls of asymd and its helpers. Does the same for the units of the exporter, which has no
# right at all.
set -eu
export LC_ALL=C
build=${1:?usage: unit.sh BUILD_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# In tenths, because systemd-analyze takes a whole number.
most_exposed=26
steering="sched_setaffinity sched_setscheduler sched_setattr setpriority perf_event_open bpf"
speaking="accept4 recvmsg sendmsg shutdown getsockopt setsockopt bind listen connect fchmod memfd_create mmap openat2 mkdirat
  setxattr inotify_add_watch dup3 fchmodat getrandom fallocate"
# Calls of posix_spawn, of the channels, and of the end of a helper.
helping="vfork clone execve dup2 close_range socketpair pipe2 kill wait4 waitid pidfd_open pidfd_send_signal"
# If the unit refused one of these calls, the helper would keep a privilege that it must drop.
confining="prctl capset setgroups setresuid setresgid prlimit64"

fail() {
    echo "unit.sh: $*" >&2
    return 1
}

# Print the calls of the sets and calls on standard input, and of the sets in those.
members() {
    tr ' ' '\n' |
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

# Print the calls that a unit allows. Every allow list contains @default; a list that begins with ~ takes calls away.
allowed() {
    sed -n 's/^SystemCallFilter=~//p' "$1" | members >"$work/denied"
    sed -n 's/^SystemCallFilter=\([^~]\)/\1/p' "$1" | cat - "$work/default" | members | grep -vxFf "$work/denied"
}

check() {
    # verify checks that the unit's programs exist, so the unit gets the path of the built one.
    sed "s#=[^ ]*/asymd\\( \\|\$\\)#=$(readlink -f "$build/daemon/asymd")\\1#" "$1" >"$work/asymd.service"
    said=$(systemd-analyze verify --man=no "$work/asymd.service" 2>&1 | grep asymd.service || true)
    [ -z "$said" ] || fail "systemd-analyze verify: $said" || return
    systemd-analyze security --offline=true --threshold=$most_exposed --no-pager "$work/asymd.service" \
        >"$work/security" 2>&1 || fail "$(grep 'Overall exposure' "$work/security" || cat "$work/security")" || return
    # asymd writes to the limits of CPUs and to files of orders, and nowhere else; each bound is there.
    [ "$(grep -c '^ReadWritePaths=' "$1")" = 2 ] && grep -q '^ReadWritePaths="-/.*/asymd/rules\.d"$' "$1" &&
        grep -qx 'ReadWritePaths=-/sys/devices/system/cpu/cpufreq' "$1" || fail "ReadWritePaths= is too wide" || return
    for limit in TasksMax=64 MemoryMax=512M; do
        grep -qx "$limit" "$1" || fail "$limit is missing" || return
    done
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

# The exporter has no privilege: it is far below the service. In tenths.
exporter_exposed=10
check_exporter() {
    sed "s#=[^ ]*/asymd-exporter\$#=$(readlink -f "$build/daemon/asymd-exporter")#" "$1" >"$work/asymd-exporter.service"
    cp "$build/systemd/asymd-exporter.socket" "$work"
    said=$(systemd-analyze verify --man=no "$work/asymd-exporter.service" "$work/asymd-exporter.socket" 2>&1 |
        grep asymd-exporter || true)
    [ -z "$said" ] || fail "systemd-analyze verify: $said" || return
    grep -qx "ListenStream=127\.0\.0\.1:[0-9]*" "$work/asymd-exporter.socket" || fail "the socket is not on loopback" || return
    grep -qx "DynamicUser=yes" "$1" && grep -qx "CapabilityBoundingSet=" "$1" || fail "the exporter has rights" || return
    user=$(sed -n 's/^User=//p' "$1")
    grep -q "^u $user - " "$(dirname "$0")/../systemd/asymd-exporter.sysusers" || fail "no sysusers.d line for '$user'" || return
    systemd-analyze security --offline=true --threshold=$exporter_exposed --no-pager "$work/asymd-exporter.service" \
        >"$work/security" 2>&1 || fail "$(grep 'Overall exposure' "$work/security" || cat "$work/security")" || return
}

unit=$build/systemd/asymd-exporter.service
check_exporter "$unit"
exporter=$(grep 'Overall exposure' "$work/security")
printf '%s\n%s\n' "$exposure" "$exporter"
