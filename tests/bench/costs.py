#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""costs.py BUILD: writes docs/data/costs.md, what each policy gives to the first program of a scenario of tests/bench/costs, and
what that costs the others and the machine. Losses are bold. Last come the moves of a program of so many threads on the laptop,
with hp_threshold as fast cores + 1 and as fast CPUs + 1."""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
POLICIES = "asym,pa,serial-first,mintlp,busyfcs,rr,response-time,throughput,priority,static-ipc,hass,ipc-driven,eshmp"
SEEDS = 10


def cell(policy, stock, read):
    change = 100 * (read(policy) / read(stock) - 1)
    shown = f"{change:+.1f} %".replace("-0.0", "+0.0")
    return f"**{shown}**" if change <= -1 else shown


def simulated(asymctl, scenario, policies):
    """Returns the policies of the report of a scenario, the first of which is the stock scheduler."""
    text = subprocess.run([asymctl, "sim", scenario, f"--policy={policies}", f"--repeat={SEEDS}", "--json"],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(text)["policies"]


def rows(asymctl, scenario):
    """Returns the lines of the table of one scenario."""
    stock, *policies = simulated(asymctl, scenario, POLICIES)
    reads = [lambda p: p["programs"][0]["performance"]["mean"], lambda p: p["programs"][1]["performance"]["mean"],
             lambda p: p["throughput"]["mean"]]
    for policy in policies:
        cells = [cell(policy, stock, read) for read in reads]
        yield f"| `{policy['name']}` | " + " | ".join(cells) + f" | {policy['changes_per_s']['mean']:.1f} |"


def threshold_rows(asymctl, scenario):
    """Returns the lines of the table of thresholds: moves of a program alone on this machine, and the machine's work."""
    machine = scenario.read_text().partition("[program")[0]
    for threads in (8, 10, 12):
        cells = []
        for threshold in ("auto", "13"):
            with tempfile.NamedTemporaryFile("w", suffix=".ini") as f:
                f.write(f"{machine}[classify]\nhp_threshold = {threshold}\n[program \"first\"]\nthreads = {threads}\n"
                        "step = parallel 1000G chunk=20M memory=m\n")
                f.flush()
                stock, pa = simulated(asymctl, f.name, "pa")
            cells += [f"{pa['migrations_per_s']['mean']:.1f}", cell(pa, stock, lambda p: p["throughput"]["mean"])]
        yield f"| {threads} | " + " | ".join(cells) + " |"


def main():
    asymctl = pathlib.Path(sys.argv[1]) / "daemon/asymctl"
    lines = ["# What it costs others", "", "Simulated, against the stock scheduler, means of "
             f"{SEEDS} seeds; written by `./dev costs`. A loss of 1 % or more is bold.", ""]
    for scenario in sorted((HERE / "costs").glob("*.ini")):
        says = scenario.read_text().splitlines()[0].lstrip("; ")
        lines += [f"## {scenario.stem}", "", says, "", "| policy | first program | others | machine's work | sets/s |",
                  "| --- | --- | --- | --- | --- |", *rows(asymctl, scenario), ""]
    lines += ["## hp_threshold", "", "A program alone on the machine of laptop-game under `pa`: moves a second, and the machine's work, "
              "with `hp_threshold = auto` (6 fast cores + 1) and with one more than its 12 fast CPUs.", "",
              "| threads | auto: moves/s | machine's work | 13: moves/s | machine's work |", "| --- | --- | --- | --- | --- |",
              *threshold_rows(asymctl, HERE / "costs/laptop-game.ini")]
    (HERE.parents[1] / "docs/data/costs.md").write_text("\n".join(lines).rstrip() + "\n")


main()
