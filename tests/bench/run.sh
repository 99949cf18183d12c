#!/bin/sh
# Runs every benchmark of a build tree, one after another. usage: run.sh BUILD_DIR
set -eu
build=$1
grep -m1 'model name' /proc/cpuinfo || true
uname -sr
echo "== the cost of a plan"
"$build/tests/bench/bench-plan"
echo "== the cost of a sample"
"$build/tests/bench/bench-scan"
echo "== the speed of the simulator"
"$build/tests/bench/bench-sim"
echo "== the cost of RTX: programs report what their threads do"
"$build/tests/bench/bench-rtx"
[ ! -e "$build/tests/omp/regions-clang" ] || python3 "$(dirname "$0")/rtx.py" "$build"
echo "== the cost of the idle service: 1,000 sleeping threads, interval 100 ms"
"$build/tests/load-sleepers" 1000 20 60 >/dev/null & load=$!
state=$(mktemp -d)
"$build/daemon/asymd" --service --pid=$load --interval=100ms --set=asymd.state_dir="$state" & asymd=$!
trap 'kill $load $asymd 2>/dev/null || true; wait || true; rm -rf "$state"' EXIT
sleep 3
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$asymd/stat"; }
# shellcheck disable=SC2046
set -- $(ticks)
sleep 20
echo "CPU $(awk -v a="$1" -v b="$(ticks)" -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.2f", (b - a) / hz / 20 * 100 }') % of one core; $(grep VmRSS "/proc/$asymd/status" | tr -s '\t ' ' ')"
