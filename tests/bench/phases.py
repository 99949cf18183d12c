#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how soon asymd serves the serial phase of a program that tells nothing, by each observer.

usage: phases.py BUILD_DIR [ROUNDS]
"""
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200
# The first phases come before the program has settled.
SKIP = 30
# Serial milliseconds, parallel ones.
PHASES = {5: 40, 10: 40, 20: 40, 50: 50}
LOADS = {"nothing else running": 0, "all CPUs busy": os.cpu_count()}
OBSERVERS = ("procfs", "bpf")
# What is asked of bpf: of the phases of that length on the fast CPU, per cent; median and 99 % of the answers, us, by load.
SHARES = {5: 80, 10: 90, 20: 95, 50: 98}
ANSWERS = {"nothing else running": (150, 1000), "all CPUs busy": (300, 2000)}
NEVER = float("inf")


def measure(observer, serial, parallel, burners):
    """The microseconds until each serial phase had its answer, and the mean share of one on CPU 0, which is fast."""
    with tempfile.TemporaryDirectory() as state:
        load = [subprocess.Popen([f"{build}/tests/load-spin", "1", "600"]) for _ in range(burners)]
        program = subprocess.Popen([f"{build}/tests/load-silent", str(os.cpu_count() - 1), str(serial), str(parallel), str(rounds)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # asymd skips a process that has just called exec(2), so it starts after the first output.
        lines = [program.stdout.readline()]
        asymd = subprocess.Popen([f"{build}/daemon/asymd", "--service", "--policy=pa", f"--slow={os.cpu_count() // 2}",
                                  f"--set=asymd.state_dir={state}", f"--set=asymd.observer={observer}", "--set=asymd.cpu_budget=100",
                                  f"--pid={program.pid}"], stderr=subprocess.DEVNULL)
        lines += program.stdout
        asymd.terminate()
        asymd.wait()
        for p in load:
            p.kill()
            p.wait()
    share = float(program.stderr.read())
    program.wait()
    return sorted(NEVER if took < 0 else took for took in map(float, lines[SKIP:])), share


def shown(us):
    return "never" if us == NEVER else f"{us:.0f} us"


def main():
    print(f"load of the machine at the start: {os.getloadavg()[0]:.1f}; {os.cpu_count()} CPUs, the first ones fast; policy pa")
    for beside, burners in LOADS.items():
        for observer in OBSERVERS:
            for serial, parallel in PHASES.items():
                took, share = measure(observer, serial, parallel, burners)
                median, late = took[len(took) // 2], took[len(took) * 99 // 100]
                asked = (f" (asked {ANSWERS[beside][0]} us, {ANSWERS[beside][1]} us, {SHARES[serial]} %)" if observer == "bpf" else "")
                print(f"{beside}, {observer}, serial phases of {serial} ms: answered after {shown(median)} in the median, "
                      f"99 % {shown(late)}; {share:.1f} % of them on the fast CPU{asked}", flush=True)
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")


main()
