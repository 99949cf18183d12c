#!/bin/sh
# The manual of a build tree: clean for mandoc and groff, and naming every option, policy and command line option there is.
# usage: man.sh BUILD_DIR
set -eu
build=$1
man=$build/man
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

clean() {
    mandoc -T lint -W warning "$1" && [ -z "$(groff -ww -z -man -mdoc "$1" 2>&1)" ]
}

# Does the page name the word as a word? mdoc escapes dashes.
names() {
    sed 's/\\-/-/g' "$1" | grep -qE "(^|[^a-z_])$2([^a-z_]|\$)"
}

complete() {
    for key in $("$build/daemon/asymd" --print-config --config="$work/empty.conf" | sed -n 's/^\([a-z_]*\) = .*/\1/p'); do
        names "$1/asymd.conf.5" "$key" || { echo "asymd.conf(5) does not name the option $key" >&2; return 1; }
    done
    for option in $("$build/daemon/asymd" --help | sed -n 's/^ *--\([a-z-]*\).*/\1/p'); do
        names "$1/asymd.8" "$option" || { echo "asymd(8) does not name --$option" >&2; return 1; }
    done
    for policy in $("$build/daemon/asymctl" policies --json | sed -n 's/.*"name": "\([a-z-]*\)".*/\1/p'); do
        names "$1/asymd.conf.5" "$policy" || names "$1/asymctl.1" "$policy" || {
            echo "no page names the policy $policy" >&2
            return 1
        }
    done
}

: > "$work/empty.conf"
# It must be able to fail: a page with an unknown macro, and one that lacks an option.
cp "$man"/*.[158] "$work"
printf '.Xyzzy\n' >> "$work/asymd.8"
if clean "$work/asymd.8" >/dev/null 2>&1; then echo "man.sh: a broken page passed" >&2; exit 1; fi
sed -i '/hysteresis/d' "$work/asymd.conf.5"
if complete "$work" 2>/dev/null; then echo "man.sh: a missing option passed" >&2; exit 1; fi

for page in "$man"/*.[158]; do
    clean "$page" || { echo "$page is not clean" >&2; exit 1; }
done
complete "$man"
echo "the manual is clean and names every option, command line option and policy"
