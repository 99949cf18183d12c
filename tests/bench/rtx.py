#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the OMPT tool costs OpenMP programs, and how soon asymd answers a serial phase. usage: rtx.py BUILD_DIR [PAIRS]"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1])
pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
tool = f"{build}/lib/rtx/ompt/libasym-ompt.so"
# Threads that are more than the CPUs, or that share them with another program, measure that program.
threads = str(min(2, os.cpu_count()))


def regions(us, seconds, env):
    out = subprocess.run([f"{build}/tests/omp/regions-clang", threads, str(us), str(seconds)], check=True,
                         capture_output=True, text=True, env=dict(os.environ, **env))
    return float(out.stdout)


def tool_cost(state):
    socket = {"ASYM_RTX_SOCKET": f"{state}/rtx", "KMP_BLOCKTIME": "infinite"}
    for us in (2, 10, 100):
        ratios = []
        for i in range(pairs):
            order = [{"OMP_TOOL": "disabled"}, {"OMP_TOOL_LIBRARIES": tool}]
            took = {}
            # Who goes first changes, so that a machine that grows slower favours neither.
            for k in (0, 1) if i % 2 else (1, 0):
                took[k] = regions(us, 0.5, socket | order[k])
            ratios.append(took[1] / took[0] - 1)
        ratios.sort()
        print(f"regions of {us:3} us on {threads} threads: with the tool {statistics.median(ratios) * 100:+.2f} % "
              f"(median of {pairs} pairs; quartiles {ratios[pairs // 4] * 100:+.2f} to "
              f"{ratios[pairs * 3 // 4] * 100:+.2f} %)")


def histogram(us):
    edges = [50, 100, 200, 500, 1000, 2000, 5000, float("inf")]
    for low, high in zip([0] + edges, edges):
        n = sum(low <= t < high for t in us)
        print(f"  {low:>6} to {high:>6} us  {n:5}  {'#' * round(60 * n / max(1, len(us)))}")


def latency(state, name, burners):
    load = [subprocess.Popen([f"{build}/tests/load-spin", "1", "60"]) for _ in range(burners)]
    env = dict(os.environ, ASYM_RTX_SOCKET=f"{state}/rtx")
    talker = subprocess.Popen([f"{build}/tests/load-talker", "3", "20", "20", "500"], stdout=subprocess.PIPE, text=True,
                              env=env)
    asymd = subprocess.Popen([f"{build}/daemon/asymd", "--interval=100ms", f"--slow={os.cpu_count() // 2}",
                              f"--set=asymd.state_dir={state}", f"--pid={talker.pid}", "--set=asymd.cpu_budget=100"],
                             stderr=subprocess.DEVNULL)
    said = [float(line) for line in talker.stdout]
    asymd.terminate()
    asymd.wait()
    for p in load:
        p.kill()
        p.wait()
    # The first ones are before the process has settled.
    said = said[150:]
    us = sorted(t for t in said if t >= 0)
    print(f"from the begin of a serial phase to masks and class, {name}: {len(us)} of {len(said)} phases, median "
          f"{statistics.median(us):.0f} us, 99 % {us[len(us) * 99 // 100]:.0f} us" if us else f"{name}: never")
    histogram(us)


print(f"load of the machine at the start: {os.getloadavg()[0]:.1f}")
with tempfile.TemporaryDirectory() as state:
    asymd = subprocess.Popen([f"{build}/daemon/asymd", "--policy=none", f"--set=asymd.state_dir={state}",
                              f"--pid={os.getpid()}"], stderr=subprocess.DEVNULL)
    time.sleep(1)
    tool_cost(state)
    asymd.terminate()
    asymd.wait()
with tempfile.TemporaryDirectory() as state:
    latency(state, "nothing else running", 0)
    latency(state, "all CPUs busy", os.cpu_count())
print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")
