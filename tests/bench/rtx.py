#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the cost of the OMPT tool to OpenMP programs, and how soon asymd answers a serial phase.

usage: rtx.py BUILD_DIR [PAIRS]
"""
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1])
pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
tool = f"{build}/lib/rtx/ompt/libasym-ompt.so"
empty = f"{build}/tests/omp/ompt-empty.so"
# With more threads than CPUs, or with another program on these CPUs, the times would be those of the other threads.
threads = str(min(2, os.cpu_count()))

# The time of an answer to a serial phase: programs that print the microseconds of each, CPU budgets of asymd, other load.
NEVER = float("inf")
PHASES = ["3", "20", "20", "500"]
PROGRAMS = {
    "a C program": [f"{build}/tests/load-talker", *PHASES],
    "an OpenMP program": [f"{build}/daemon/asymctl", "run", f"--tool={tool}", "--", f"{build}/tests/omp/talker-clang",
                          *PHASES],
}
BUDGETS = {"cpu_budget = 100": ["--set=asymd.cpu_budget=100"], "the default budget": []}
LOADS = {"nothing else running": 0, "all CPUs busy": os.cpu_count()}


def regions(us, seconds, env):
    out = subprocess.run([f"{build}/tests/omp/regions-clang", threads, str(us), str(seconds)], check=True,
                         capture_output=True, text=True, env=dict(os.environ, **env))
    return float(out.stdout)


def percent(ratios):
    ratios = sorted(ratios)
    return (f"{statistics.median(ratios) * 100:+.2f} % (quartiles {ratios[len(ratios) // 4] * 100:+.2f} to "
            f"{ratios[len(ratios) * 3 // 4] * 100:+.2f} %)")


def tool_cost(state):
    """Compares the tool with no tool, and with an empty tool, which shows the runtime's own cost of having a tool."""
    where = {"ASYM_RTX_DIR": f"{state}/rtx", "KMP_BLOCKTIME": "infinite"}
    ways = [{"OMP_TOOL": "disabled"}, {"OMP_TOOL_LIBRARIES": tool}, {"OMP_TOOL_LIBRARIES": empty}]
    for us in (2, 10, 100):
        took = []
        for i in range(pairs):
            # The order rotates, so that a machine that grows slower favours none of them.
            order = [(i + k) % len(ways) for k in range(len(ways))]
            took.append({k: regions(us, 0.5, where | ways[k]) for k in order})
        print(f"regions of {us:3} us on {threads} threads, medians of {pairs} rounds: with the tool "
              f"{percent([t[1] / t[0] - 1 for t in took])}; with one that does nothing "
              f"{percent([t[2] / t[0] - 1 for t in took])}; the tool over that one "
              f"{percent([t[1] / t[2] - 1 for t in took])}")


def histogram(us):
    edges = [50, 100, 200, 500, 1000, 2000, 5000, NEVER]
    for low, high in zip([0] + edges, edges):
        n = sum(low <= t < high for t in us)
        print(f"  {low:>6} to {high:>6} us  {n:5}  {'#' * round(60 * n / len(us))}")
    print(f"  {'over before that':>19}  {us.count(NEVER):5}")


def shown(us):
    return "never" if us == NEVER else f"{us:.0f} us"


def answers(state, program, budget, burners):
    """The microseconds until each serial phase got its answer; NEVER: the phase ended before. The first phases do not count:
    they come before the process has settled."""
    load = [subprocess.Popen([f"{build}/tests/load-spin", "1", "60"]) for _ in range(burners)]
    env = dict(os.environ, ASYM_RTX_DIR=f"{state}/rtx", KMP_BLOCKTIME="infinite")
    talker = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=env)
    # asymd skips a process that has just called exec(2), as asymctl run does, so asymd starts after the first output.
    said = [talker.stdout.readline()]
    asymd = subprocess.Popen([f"{build}/daemon/asymd", "--service", "--interval=100ms", f"--slow={os.cpu_count() // 2}",
                              f"--set=asymd.state_dir={state}", f"--pid={talker.pid}", *budget],
                             stderr=subprocess.DEVNULL)
    said += talker.stdout
    asymd.terminate()
    asymd.wait()
    for p in load:
        p.kill()
        p.wait()
    if talker.wait() != 0:
        raise RuntimeError(f"{program}: {talker.returncode}")
    return sorted(NEVER if t < 0 else t for t in map(float, said[150:]))


def least(burners):
    """The same of a program that only sets the masks: the least time on this machine."""
    load = [subprocess.Popen([f"{build}/tests/load-spin", "1", "60"]) for _ in range(burners)]
    said = subprocess.run([f"{build}/tests/bench/bench-answer", f"{build}/tests/load-talker", *PHASES], check=True,
                          capture_output=True, text=True).stdout.splitlines()
    for p in load:
        p.kill()
        p.wait()
    return sorted(NEVER if t < 0 else t for t in map(float, said[150:]))


def show(what, us):
    print(f"{what}: {len(us)} phases, median {shown(statistics.median(us))}, 99 % {shown(us[len(us) * 99 // 100])}")
    histogram(us)
    sys.stdout.flush()


def latency(state):
    for beside, burners in LOADS.items():
        show(f"for comparison: masks set by one that does nothing else, a C program, {beside}", least(burners))
    for (name, program), (with_budget, budget), (beside, burners) in itertools.product(
            PROGRAMS.items(), BUDGETS.items(), LOADS.items()):
        show(f"from the begin of a serial phase to masks and class, {name}, {beside}, with {with_budget}",
             answers(state, program, budget, burners))


print(f"load of the machine at the start: {os.getloadavg()[0]:.1f}")
# A tmpfs, as /run is: a program would wait for the disk when it wakes asymd.
with tempfile.TemporaryDirectory(dir="/dev/shm") as state:
    asymd = subprocess.Popen([f"{build}/daemon/asymd", "--service", "--policy=none", f"--set=asymd.state_dir={state}",
                              f"--pid={os.getpid()}"], stderr=subprocess.DEVNULL)
    time.sleep(1)
    tool_cost(state)
    asymd.terminate()
    asymd.wait()
with tempfile.TemporaryDirectory(dir="/dev/shm") as state:
    latency(state)
print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")
