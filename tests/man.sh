#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# man.sh BUILD_DIR: checks that mandoc and groff accept the pages of the build tree, and that the pages have every option,
# command-line row, policy and verb of its programs, an example of each verb, every member of the bus object, and the properties
# whose changes it announces. Then the script checks itself, on pages that it has damaged.
set -eu

build=${1:?usage: man.sh BUILD_DIR}
policies=$(dirname "$0")/../lib/policy/policies.def
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in mandoc groff; do
    command -v $tool >/dev/null || { echo "man.sh: $tool is missing" >&2; exit 1; }
done

fail() {
    echo "man.sh: $*" >&2
    return 1
}

clean() {
    mandoc -T lint -W warning "$1" >"$work/lint" 2>&1 || { cat "$work/lint" >&2; fail "$1 is not clean"; return; }
    groff -ww -z -man "$1" >"$work/lint" 2>&1
    [ ! -s "$work/lint" ] || { cat "$work/lint" >&2; fail "$1 is not clean"; return; }
    ! grep -q '@[A-Z]*@' "$1" || fail "$1: a table is missing"
}

# Prints the properties that the page calls announced, one on a line.
announced() {
    sed -n '/^\.Sh PROPERTIES/,/^are announced/s/^\.Cm //p' "$1" | tr -s ' ,' '\n'
}

# The section has the option as an item with its default; a word in the text does not count.
option() {
    awk -v head=".Ss [$2]" -v item=".It Cm $3" -v want="Default: ${4:-empty}." '
        /^\.S[sh]/ { there = $0 == head }
        /^\.It/ { mine = there && $0 == item }
        mine { gsub(/\\-/, "-"); if ($0 == want) found = 1 }
        END { exit !found }' "$1" || fail "$1: [$2] $3 with default '$4' is missing"
}

check() {
    for page in asymd.8 asymd-exporter.8 asymctl.1 asymd.conf.5 org.asymd.Manager.5 asym_rtx.3; do
        clean "$1/$page" || return
    done
    while read -r section key value; do
        option "$1/asymd.conf.5" "$section" "$key" "$value" || return
    done <"$work/options"
    while read -r row; do
        grep -qxF ".It Fl \\-$row" "$1/asymd.8" || fail "asymd.8: --$row is missing" || return
    done <"$work/rows"
    while read -r policy; do
        grep -qxF ".It Cm $policy" "$1/asymd.8" && grep -qxF ".It Cm $policy" "$1/asymctl.1" ||
            fail "policy $policy is missing" || return
    done <"$work/policies"
    while read -r call; do
        grep -q "^\.Fo $call\$\|^\.Fn $call\( \|\$\)" "$1/asym_rtx.3" || fail "asym_rtx.3: $call is missing" || return
    done <"$work/calls"
    while read -r member; do
        grep -q "^\.It Cm $member No " "$1/org.asymd.Manager.5" || fail "org.asymd.Manager.5: $member is missing" || return
    done <"$work/members"
    announced "$1/org.asymd.Manager.5" | sort | cmp -s - "$work/announced" ||
        fail "org.asymd.Manager.5: other properties are announced" || return
    while read -r verb; do
        grep -q "^\.It Cm $verb\( \|\$\)" "$1/asymctl.1" ||
            fail "man/asymctl.1.in does not describe the verb $verb: it needs an item '.It Cm $verb'" || return
        sed '1,/^\.Sh EXAMPLES/d; /^\.Sh/,$d' "$1/asymctl.1" | grep -q "^\.Dl [\$#] asymctl $verb\( \|\$\)" ||
            fail "man/asymctl.1.in: EXAMPLES has no line '.Dl \$ asymctl $verb'" || return
    done <"$work/verbs"
}

"$build/daemon/asymd" --config=/dev/null --print-config >"$work/config"
sed -n 's/^\[\(.*\)\]$/section \1/p; s/^\([a-z_]*\) = *\(.*\);.*/\1 \2/p' "$work/config" |
    awk '$1 == "section" { section = $2; next } { print section, $0 }' >"$work/options"
"$build/daemon/asymd" --help | sed -n 's/^  --\([^ ]*\) .*/\1/p' | sed 's/-/\\-/g; s/=/ Ns = Ns Ar /' >"$work/rows"
sed -n 's/^ASYM_POLICY(\(.*\))$/\1/p' "$policies" | tr _ - >"$work/policies"
"$build/daemon/asymctl" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' >"$work/verbs"
sed -n 's/^\(ASYM_RTX_API\|static inline\) .*\<\(asym_rtx_[a-z_]*\)(.*/\2/p' "$(dirname "$0")"/../lib/rtx/rtx-client.c \
    "$(dirname "$0")/../include/asym/rtx.h" >"$work/calls"
sed -n 's/^ *<\(property\|method\|signal\) name="\([A-Za-z]*\)".*/\2/p' "$(dirname "$0")/../dbus/org.asymd.Manager.xml" >"$work/members"
sed -n 's/^ *<property name="\([A-Za-z]*\)".*\/>$/\1/p' "$(dirname "$0")/../dbus/org.asymd.Manager.xml" | sort >"$work/announced"
for list in options rows policies verbs calls members announced; do
    [ -s "$work/$list" ] || { fail "no $list were found to look for"; exit 1; }
done

check "$build/man"

spoilt() {
    rm -rf "$work/pages"
    mkdir "$work/pages"
    cp "$build/man"/*.[1358] "$work/pages"
    sed "$3" "$build/man/$2" >"$work/pages/$2"
    ! cmp -s "$build/man/$2" "$work/pages/$2" || { fail "self-check: $1 changes nothing"; exit 1; }
    if check "$work/pages" 2>/dev/null; then
        fail "self-check: $1 is not noticed"
        exit 1
    fi
}
spoilt "a macro that does not exist" asymd.8 '$a .Xyzzy'
spoilt "a list that is not closed" asymd.8 '0,/^\.El/{/^\.El/d}'
spoilt "a missing option" asymd.conf.5 '/^\.It Cm settle$/d'
spoilt "an option in another section" asymd.conf.5 's/^\.Ss \[enforce\]$/.Ss [forced]/'
spoilt "another default" asymd.conf.5 's/^Default: 10s\.$/Default: 11s./'
spoilt "a missing row of the command line" asymd.8 '/^\.It Fl \\-restore$/d'
spoilt "a missing policy" asymctl.1 '/^\.It Cm mintlp$/d'
spoilt "a missing verb" asymctl.1 '/^\.It Cm help/d'
spoilt "a verb without an example" asymctl.1 '/^\.Dl . asymctl rules/d'
spoilt "a missing call" asym_rtx.3 '/^\.Fn asym_rtx_leave/d'
spoilt "a missing method" org.asymd.Manager.5 '/^\.It Cm SetProgram/d'
spoilt "a property that is said to be announced" org.asymd.Manager.5 's/^\.Cm Policy , /&Changes , /'
spoilt "a property that is not said to be announced" org.asymd.Manager.5 '/^\.Cm Policy , /s/PolicyReason , //'
spoilt "a table that was not filled in" asymd.8 's/^\.Sh POLICIES/@POLICIES@/'
echo "the manual is clean and holds every option, command-line row, policy, verb, call and member"
