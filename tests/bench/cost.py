#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the cost of a policy to a program that has nothing to gain: one thread per CPU, run natively with and without asymd
in turn. Prints the median of the paired ratios of the work done, and their quartiles, per policy."""
import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile
import time


def work(build, seconds, policy, state):
    """Steps per microsecond of a program with a thread per CPU. With a policy, asymd steers this program only."""
    load = subprocess.Popen([build / "tests/load-rate", str(os.cpu_count()), str(seconds + 1), "1"], stdout=subprocess.PIPE,
                            text=True)
    asymd = None
    if policy:
        asymd = subprocess.Popen([build / "daemon/asymd", "--service", f"--policy={policy}", f"--pid={load.pid}",
                                  f"--set=asymd.state_dir={state}", "--set=enforce.settle=100ms"], stderr=subprocess.DEVNULL)
    out, _ = load.communicate()
    if asymd:
        asymd.send_signal(signal.SIGTERM)
        asymd.wait()
    return sum(float(rate) for rate in re.findall(r"rate=([\d.]+)", out))


def policies(build):
    text = subprocess.run([build / "daemon/asymctl", "policies", "--json"], capture_output=True, text=True, check=True).stdout
    return [p["name"] for p in json.loads(text)["policies"] if p["can_run"] and p["name"] != "none"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("policy", nargs="*", help="default: all that can run here")
    args = parser.parse_args()
    started = time.monotonic()
    print(f"{'policy':16} {'with / without, median':>24}  middle half  (pairs: {args.pairs})")
    with tempfile.TemporaryDirectory(prefix="asymd-cost.") as state:
        for policy in args.policy or policies(args.build):
            ratios = []
            for i in range(args.pairs):
                order = (None, policy) if i % 2 else (policy, None)
                done = {each: work(args.build, args.seconds, each, state) for each in order}
                ratios.append(done[policy] / done[None])
            low, median, high = statistics.quantiles(ratios, n=4)
            print(f"{policy:16} {median:24.4f}  {low:.4f} to {high:.4f}", flush=True)
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
