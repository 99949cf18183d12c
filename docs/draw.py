#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the JSON of asymctl sim or replay with matplotlib, a bar for each policy:

    asymctl sim scenarios/big-little.ini --policy=pa,rr --json | docs/draw.py big-little.svg
"""
import json
import sys

import matplotlib.pyplot as plt

report = json.load(sys.stdin)
names, means, halves = [], [], []
for policy in report["policies"]:
    names.append(policy["name"])
    if report["schema"].startswith("asymctl.sim/"):
        of, figure = "mean speedup (95 % interval)", policy["mean_speedup"]
        if figure["mean"] is None:  # programs without an end
            of, figure = "instructions per second (95 % interval)", policy["throughput"]
        means.append(figure["mean"] or 0)
        halves.append(figure["confidence"] or 0)
    else:
        of = "share of the running time on fast CPUs"
        means.append(policy["fast_share"]["all"] or 0)
        halves.append(0)
plt.barh(names, means, xerr=halves if any(halves) else None)
plt.gca().invert_yaxis()
plt.xlabel(of)
plt.title(report.get("scenario", report.get("record")))
plt.savefig(sys.argv[1], bbox_inches="tight")
