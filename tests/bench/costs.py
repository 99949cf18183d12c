#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""costs.py BUILD: writes docs/data/costs.md, what each policy gives to the first program of a scenario of tests/bench/costs, and
what that costs the others and the machine. Losses are bold."""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
POLICIES = "pa,serial-first,mintlp,busyfcs,rr,response-time,throughput,priority"
SEEDS = 10


def cell(policy, stock, read):
    change = 100 * (read(policy) / read(stock) - 1)
    shown = f"{change:+.1f} %".replace("-0.0", "+0.0")
    return f"**{shown}**" if change <= -1 else shown


def rows(asymctl, scenario):
    """Returns the lines of the table of one scenario."""
    text = subprocess.run([asymctl, "sim", scenario, f"--policy={POLICIES}", f"--repeat={SEEDS}", "--json"],
                          check=True, capture_output=True, text=True).stdout
    stock, *policies = json.loads(text)["policies"]
    reads = [lambda p: p["programs"][0]["performance"]["mean"], lambda p: p["programs"][1]["performance"]["mean"],
             lambda p: p["throughput"]["mean"]]
    for policy in policies:
        cells = [cell(policy, stock, read) for read in reads]
        yield f"| `{policy['name']}` | " + " | ".join(cells) + f" | {policy['changes_per_s']['mean']:.1f} |"


def main():
    asymctl = pathlib.Path(sys.argv[1]) / "daemon/asymctl"
    lines = ["# What it costs others", "", "Simulated, against the stock scheduler, means of "
             f"{SEEDS} seeds; written by `./dev costs`. A loss of 1 % or more is bold.", ""]
    for scenario in sorted((HERE / "costs").glob("*.ini")):
        says = scenario.read_text().splitlines()[0].lstrip("; ")
        lines += [f"## {scenario.stem}", "", says, "", "| policy | first program | others | machine's work | sets/s |",
                  "| --- | --- | --- | --- | --- |", *rows(asymctl, scenario), ""]
    (HERE.parents[1] / "docs/data/costs.md").write_text("\n".join(lines).rstrip() + "\n")


main()
