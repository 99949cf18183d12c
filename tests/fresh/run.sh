#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ./dev fresh runs this script. It makes a Debian that has apt, git, ca-certificates and sudo only, enters it with namespaces of
# its own and a root that is a mount point, and runs the commands of this commit there. Needs root.
# usage: run.sh [--suite=SUITE] [--new] [COMMAND...]; without a command it runs ./dev run, test, lint and vm --short, as several
# users.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
suite=bookworm
new=no
commands=()
export PATH=$PATH:/usr/sbin:/sbin

. tests/support/progress.sh
parse() {
    local argument
    for argument; do
        case $argument in
            --suite=*) suite=${argument#*=} ;;
            --new) new=yes ;;
            -*) echo "./dev fresh: unknown option '$argument'" >&2; exit 2 ;;
            *) commands+=("$argument") ;;
        esac
    done
    [[ $suite =~ ^[a-z]+$ ]] || { echo "./dev fresh: --suite=$suite is no name of a suite" >&2; exit 2; }
}

say() { printf 'fresh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# -- cleaning up --

work=""      # the working folder
inside=""    # the process that has entered the namespaces
namespace="" # the mount namespace of that process; descriptor 8 keeps it, so that no other one gets its number

own_namespace=$(readlink /proc/self/ns/mnt)

# Wait until the process has a mount namespace of its own, or has ended.
keep_namespace() {
    while [ -z "$namespace" ] && namespace=$(readlink "/proc/$inside/ns/mnt"); do
        if [ "$namespace" = "$own_namespace" ]; then
            namespace=""
            sleep 0.01
        elif ! exec 8<"/proc/$inside/ns/mnt"; then
            namespace=""
        fi
    done 2>/dev/null
}

# End every process of that namespace. It has only processes that this script started.
end_inside() {
    local process
    if [ -n "$namespace" ]; then
        for process in /proc/[0-9]*; do
            [ "$(readlink "$process/ns/mnt" 2>/dev/null)" != "$namespace" ] || end_one "${process#/proc/}"
        done
        exec 8<&-
    fi
    [ -z "$inside" ] || { end_one "$inside"; wait "$inside" 2>/dev/null || true; }
    inside="" namespace=""
}

end_one() { [ "$1" -le 1 ] || kill -s KILL "$1" 2>/dev/null || true; }

# The mounts were in namespaces that have ended, so the folder has only files now.
clean_up() {
    end_inside
    rm -rf --one-file-system "$work"
}

make_work() {
    work=$(mktemp -d "${TMPDIR:-/var/tmp}/asymd-fresh.XXXXXX")
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# -- the root file system --

# Print the Debian archives among this machine's apt sources, in either file format, for the suite of --suite.
archives() {
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' |
        awk -v suite="$suite" '{
            # bookworm, bookworm-updates and bookworm-security; sources of "stable" show it by their code name only
            rest = $4
            sub(/^[a-z]+/, "", rest)
            if (rest == "" || rest == "-updates" || rest == "-security")
                print "deb", $1, suite rest, $3
        }' | sort -u | grep .
}

# Print the settings by which this machine gets its packages: proxies, certificates, checks of dates, and lists.
apt_settings() {
    apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries|ForceIPv|Check-|Max-|Queue-|Languages|GzipIndexes)' || true
}

# Print the key files that the sources of this machine name.
keys() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
        sed -nE 's/^Signed-By:[[:space:]]*(\/[^[:space:]]+).*/\1/Ip; s/^deb .*\[.*signed-by=(\/[^],[:space:]]+).*/\1/p' | sort -u
}

# Copy further keys, and certificates, to the places where the settings or sources of this machine may name them.
copy_trust() {
    local file
    mkdir -p "$1/etc/apt/trusted.gpg.d" "$1/etc/apt/keyrings" "$1/usr/local/share/ca-certificates"
    cp -n /etc/apt/trusted.gpg.d/*.{asc,gpg} "$1/etc/apt/trusted.gpg.d/" 2>/dev/null || true
    cp -n /etc/apt/keyrings/* "$1/etc/apt/keyrings/" 2>/dev/null || true
    for file in $(keys); do
        [ ! -r "$file" ] || [ -e "$1$file" ] || install -D -m 644 "$file" "$1$file"
    done
    cp -n /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || true
    for file in $(apt_settings | sed -n 's/^Acquire::https.*::\(CaInfo\|SslCert\) "\(\/.*\)";$/\2/Ip'); do
        [ ! -f "$file" ] || install -D -m 644 "$file" "$1$file"
    done
}

make_root() {
    # The root is temporary, so dpkg need not wait for the disk.
    local line options=(--dpkgopt=force-unsafe-io)
    while read -r line; do
        options+=("--aptopt=$line")
    done <"$work/settings"
    for line in $(keys); do
        [ ! -r "$line" ] || options+=("--keyring=$line")
    done
    mkdir -p build/fresh
    chown --reference=. build build/fresh
    rm -f "build/fresh/$suite"-*.tar
    TMPDIR=$work mmdebstrap --variant=apt --include=git,ca-certificates,sudo "${options[@]}" "$suite" "$work/root.tar" \
        "$work/sources.list" && mv "$work/root.tar" "$cached"
}

get_root() {
    archives >"$work/sources.list" 2>/dev/null || {
        follow "refreshing the lists of packages" "$work/log" apt-get update -q || { cat "$work/log" >&2; exit 1; }
        archives >"$work/sources.list" || die "no Debian archive is among the apt sources of this machine"
    }
    apt_settings >"$work/settings"
    # The name changes each day, and with the sources.
    cached=build/fresh/$suite-$(date +%F)-$(cat "$work/sources.list" "$work/settings" "$here/run.sh" | sha256sum | cut -c-12).tar
    if [ "$new" = yes ] || [ ! -e "$cached" ]; then
        follow "making a minimal $suite" "$work/log" make_root || { cat "$work/log" >&2; die "mmdebstrap failed"; }
    else
        say "the minimal $suite is of today, $cached; --new makes it anew"
    fi
}

# -- the commit --

git_here() { GIT_CONFIG_GLOBAL=$work/gitconfig git "$@"; }

get_commit() {
    # The tree may belong to another user than root; git then reads it only if a configuration allows that.
    printf '[safe]\n\tdirectory = *\n' >"$work/gitconfig"
    git_here clone --quiet --no-hardlinks "file://$PWD" "$work/clone" || die "this tree cannot be cloned"
    say "commit $(git_here log -1 --format='%h %s')"
    if [ -n "$(git_here status --porcelain)" ]; then
        say "ATTENTION: this tree has changes that are not committed. They are not in what is run:"
        git_here status --short | head -n 10 >&2
    fi
}

# -- running --

# Make a new copy of the root, with the commit for root and for the ordinary user.
renew() {
    rm -rf --one-file-system "$work/root"
    mkdir "$work/root"
    tar -C "$work/root" -xf "$cached" --numeric-owner
    copy_trust "$work/root"
    install -m 755 "$here/inside.sh" "$work/root/root/inside.sh"
    cp -a "$work/clone" "$work/root/root/asymd"
    [ -e /etc/resolv.conf ] && cp -L /etc/resolv.conf "$work/root/etc/resolv.conf"
    cp /etc/hosts "$work/root/etc/hosts"
    echo "127.0.1.1 fresh" >>"$work/root/etc/hosts"
    echo fresh >"$work/root/etc/hostname"
    "$here/inside.sh" make-user "$work/root" "$work/clone"
}

# Copy the root as it is now, to go on from here later: a verb does not see the packages that another one installs meanwhile.
keep() { cp -a --reflink=auto "$work/root" "$work/kept"; }

take_kept() {
    rm -rf --one-file-system "$work/root"
    mv "$work/kept" "$work/root"
}

# enter PID|HOST USER COMMAND: run in a new PID namespace, or in the machine's own if the command needs the proc connector.
enter() {
    local namespaces=(--mount --uts --ipc --fork --kill-child) status=0
    [ "$1" = HOST ] || namespaces+=(--pid)
    shift
    unshare "${namespaces[@]}" "$here/inside.sh" enter "$work/root" "$@" </dev/null &
    inside=$!
    keep_namespace
    wait "$inside" || status=$?
    end_inside
    return "$status"
}

rows=()

# row TITLE STATUS STARTED: add a row to the report.
row() {
    rows+=("$(printf '%-62s %4d s  %s' "$1" "$((SECONDS - $3))" "$([ "$2" -eq 0 ] && echo passed || echo "FAILED ($2)")")")
    [ "$2" -eq 0 ] || failed=yes
}

# must TITLE PID|HOST USER COMMAND: run the command; the report fails if the command does.
must() {
    local what=$1 started=$SECONDS status=0
    shift
    say "== $what"
    enter "$@" || status=$?
    row "$what" "$status" "$started"
}

# The command must end with status 1 after little CPU time, and print the missing packages and the command that installs them.
must_say_what_is_missing() {
    local what="user without sudo, nothing installed: ./dev $1 says what is missing" started=$SECONDS status=0 wrong=0
    say "== $what"
    enter PID user "ulimit -t 20; exec ./dev $1" >"$work/said" 2>&1 || status=$?
    sed 's/^/    /' "$work/said" >&2
    [ "$status" -eq 1 ] && grep -q 'packages are missing: .*cmake' "$work/said" &&
        grep -q 'apt-get install .*cmake' "$work/said" || wrong=1
    row "$what" "$wrong" "$started"
}

# must_say WORDS TITLE PID|HOST USER COMMAND: the command must pass, and print these words.
must_say() {
    local words=$1
    shift
    must "${@:1:3}" "set -o pipefail; { $4; } 2>&1 | tee >(cat >&2) | grep '$words' >/dev/null"
}

# Each test runs once in each build, but for measurements: in the optimised one as an ordinary user, but for what needs root, and
# under sanitizers as root. The user's tree has the files of root's tests in it when the user without sudo goes on there.
everything() {
    renew
    must_say_what_is_missing run
    must_say_what_is_missing test
    must "user with sudo, nothing installed: ./dev run" PID sudoer "./dev run"
    keep
    must "user with sudo: ./dev test --build=release" PID sudoer "./dev test --build=release"
    must "user with sudo: the tests that need the proc connector" HOST sudoer "./dev test --build=release --only=connector"
    must_say "Applications  2 active" "user without sudo: ./dev run" PID user "./dev run"
    must_say "NOT RUN in release, 1 tests that need root: install.unit" "user without sudo: ./dev test says what needs root" \
        PID user "./dev test --build=release --only=install"
    must "user: all files of the tree are the user's" PID user '[ -z "$(find . ! -user fresh -print -quit)" ]'
    must "root: ./dev test --build=asan" PID root "./dev test --build=asan"
    must "root: the tests that need the proc connector" HOST root "./dev test --build=asan --only=connector"
    must "root: ./dev lint" PID root "./dev lint"
    take_kept
    must "root, with the packages of ./dev run: ./dev vm --short" PID root "cd /home/fresh/asymd && ./dev vm --short"
}

main() {
    parse "$@"
    make_work
    get_root
    get_commit
    failed=no
    local begun=$SECONDS command
    if [ ${#commands[@]} -eq 0 ]; then
        everything
    else
        # Each command starts in a new root, so that it cannot rely on packages that another one installed.
        for command in "${commands[@]}"; do
            renew
            must "root: ./dev $command" PID root "./dev $command"
            if [ "$command" = test ]; then
                must "root: the tests that need the proc connector" HOST root "./dev test --only=connector"
            fi
        done
    fi
    say "== $suite, $(git_here log -1 --format=%h), $((SECONDS - begun)) s"
    printf '%s\n' "${rows[@]}" >&2
    [ "$failed" = no ] || exit 1
}

# bash has read the whole script before this line runs: the tree may change meanwhile.
main "$@"
exit
