#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# purity.sh libasym_core.a libasym_base.a
# Checks that the core and the policies read no clock, file or random source and keep no variables of their own: they may use
# only the outside symbols of the lists below.
set -eu
export LC_ALL=C

allowed='^(memcpy|memset|memchr|memcmp|bcmp|memmove|strlen|strcmp|strncmp|strnlen|strncasecmp|strstr|snprintf|vsnprintf'
allowed="$allowed|__(memcpy|memset|memmove|snprintf|vsnprintf)_chk|__isoc[0-9]+_[a-z0-9]+"
# calls that the compiler adds
allowed="$allowed|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(popcount|clz|ctz)[ds]i2"
# those functions of libm that depend on their arguments only
allowed="$allowed|(fabs|floor|ceil|round|lround|trunc|fmod|fmin|fmax|sqrt|cbrt|hypot|exp|exp2|log|log2|log10|pow)f?"
# symbols that the sanitizers and coverage add
allowed="$allowed|__(asan|ubsan|sanitizer|gcov|llvm)_.*)\$"
memory='^(malloc|calloc|realloc|reallocarray|free)$'
# The reader of INI texts calls the library that splits their lines.
libraries='^libasym_base\.a ini\.c\.o ini_parse_stream$'
# Archive and member: only these may allocate.
allocators='^libasym_core\.a (engine|overrides|task-table)\.c\.o$|^libasym_base\.a (hash|grow)\.c\.o$'

# Print "archive member symbol" for each symbol that none of these archives defines.
undefined()
{
    for archive; do
        nm -A -P -g --defined-only "$archive"
    done | awk '{print $2}' | sort -u >"$work/defined"
    for archive; do
        nm -A -P -u "$archive" | sed -E 's/^([^[]*)\[([^]]*)\]: *([^ ]*).*/\1 \2 \3/'
    done | awk -v known="$work/defined" 'BEGIN {while ((getline s <known) > 0) d[s] = 1} !($3 in d)'
}

# Print "archive member variable" for each writable variable. In an instrumented build some belong to the sanitizers.
mutable()
{
    for archive; do
        objdump -t "$archive" | awk -v archive="$archive" '
            / file format / {split($1, part, ":"); member = part[1]}
            {section = ""; for (i = 2; i < NF; i++) if ($i ~ /^\.(t?bss|t?data)/ || $i == "*COM*") {section = $i; break}}
            section == "" || section ~ /^\.data\.rel\.ro/ || $NF == section {next}
            $NF ~ /^(\.|__asan|__odr_asan|__gcov|__llvm)/ {next}
            section ~ /asan|ubsan|gcov|llvm/ {next}
            $NF ~ /^\.?Lubsan|^__unnamed/ {next}
            {print archive, member, $NF}'
    done
}

check()
{
    bad=0
    undefined "$@" >"$work/undefined"
    mutable "$@" >"$work/mutable"
    while read -r archive member symbol; do
        if echo "$symbol" | grep -Eq "$allowed"; then
            continue
        fi
        if echo "$symbol" | grep -Eq "$memory" && echo "${archive##*/} $member" | grep -Eq "$allocators"; then
            continue
        fi
        if echo "${archive##*/} $member $symbol" | grep -Eq "$libraries"; then
            continue
        fi
        echo "$archive: $member needs $symbol"
        bad=1
    done <"$work/undefined"
    while read -r archive member symbol; do
        echo "$archive: $member keeps the variable $symbol"
        bad=1
    done <"$work/mutable"
    return $bad
}

# Check that the check fails on faulty code: a check that cannot fail proves nothing.
check_itself()
{
    compiler=${CC:-cc}
    echo '#include <time.h>
long look(void); long look(void) { return (long)time(0); }' >"$work/clock.c"
    echo 'int count(void); int count(void) { static int n; return ++n; }' >"$work/variable.c"
    echo '#include <stdlib.h>
void *get(unsigned n); void *get(unsigned n) { return malloc(n); }' >"$work/memory.c"
    echo 'int sum(int a, int b); static const char *const t[] = {"a", "b"};
int sum(int a, int b) { return t[a & 1][0] + b; }' >"$work/pure.c"
    for name in clock variable memory pure; do
        "$compiler" -fPIC -c "$work/$name.c" -o "$work/$name.c.o"
        ar rc "$work/$name.a" "$work/$name.c.o"
    done
    for name in clock variable memory; do
        if check "$work/$name.a" >"$work/said"; then
            echo "purity.sh: does not see what is wrong with a $name" >&2
            exit 2
        fi
    done
    if ! check "$work/pure.a" >&2; then
        echo "purity.sh: finds fault with what is pure" >&2
        exit 2
    fi
}

if [ $# -ne 2 ]; then
    echo "usage: purity.sh libasym_core.a libasym_base.a" >&2
    exit 2
fi
for archive; do
    [ -f "$archive" ] || { echo "purity.sh: no such archive: $archive" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check_itself
check "$@"
echo "pure: $*"
