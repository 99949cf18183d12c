#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""costs.py BUILD: writes docs/data/costs.md, what each policy gives to the first program of a scenario of tests/bench/costs, and
what that costs the others and the machine. Losses are bold. Then come one program of so many threads on machines of two hardware
threads a core, and one beside a serial program; last the moves of a program of so many threads on the laptop, with hp_threshold as
fast cores + 1 and as fast CPUs + 1."""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
POLICIES = "asym,pa,serial-first,mintlp,busyfcs,rr,response-time,throughput,priority,static-ipc,hass,ipc-driven,eshmp"
SEEDS = 10
SHOWN = ("asym", "pa", "serial-first", "busyfcs", "rr")
SEATS = {"8 + 16": "counts = 8,16\nspeeds = 1.6,1\nsmt = 2,1", "4 + 8": "counts = 4,8\nspeeds = 1.35,1\nsmt = 2"}
ALONE = (("8 + 16", (8, 10, 12, 14, 16, 20, 24, 32)), ("4 + 8", (6, 12, 20, 24)))
BESIDE = (("8 + 16", (8, 12, 16, 24, 32)), ("4 + 8", (12,)))


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


def seat_reports(asymctl, cases, first):
    """Yields the machine, the threads and the report of each case. first: the program before that of so many threads, or ''."""
    for machine, numbers in cases:
        for threads in numbers:
            with tempfile.NamedTemporaryFile("w", suffix=".ini") as f:
                f.write(f"[machine]\n{SEATS[machine]}\nmax_ipc = 1.27\n[memory \"m\"]\nipc = 1\nworking_set = 64\n"
                        f"[run]\nduration = 20s\nuntil = time\n{first}[program \"app\"]\nthreads = {threads}\n"
                        "step = parallel 400G chunk=5M memory=m\n")
                f.flush()
                yield machine, threads, simulated(asymctl, f.name, POLICIES)


def seat_rows(asymctl):
    """Returns the lines of the table of one program: the machine's work, and the policy that has the least of it."""
    for machine, threads, (stock, *policies) in seat_reports(asymctl, ALONE, ""):
        work = lambda p: p["throughput"]["mean"]
        cells = [cell(p, stock, work) for name in SHOWN for p in policies if p["name"] == name]
        least = min(policies, key=work)
        yield f"| {machine} | {threads} | " + " | ".join(cells) + f" | {cell(least, stock, work)} (`{least['name']}`) |"


def beside_rows(asymctl):
    """Returns the lines of the table of a serial program beside one of so many threads: its gain, and the machine's work."""
    serial = '[program "first"]\nstep = serial 400G memory=m\n'
    for machine, threads, (stock, *policies) in seat_reports(asymctl, BESIDE, serial):
        reads = [lambda p: p["programs"][0]["performance"]["mean"], lambda p: p["throughput"]["mean"]]
        cells = [", ".join(cell(p, stock, read) for read in reads) for name in SHOWN for p in policies if p["name"] == name]
        yield f"| {machine} | {threads} | " + " | ".join(cells) + " |"


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
    shown = " | ".join(f"`{name}`" for name in SHOWN)
    lines += ["## Seats", "", "One program on 8 cores of speed 1.6 with two hardware threads each and 16 of speed 1, and on 4 of 1.35 and "
              "8 of 1 with two each: the machine's work, and the least of it under any of the policies above.", "",
              f"| machine | threads | {shown} | least |", "| --- " * (len(SHOWN) + 3) + "|", *seat_rows(asymctl), "",
              "A serial program beside such a program: the serial program, then the machine's work.", "",
              f"| machine | threads beside it | {shown} |", "| --- " * (len(SHOWN) + 2) + "|", *beside_rows(asymctl), ""]
    lines += ["## hp_threshold", "", "A program alone on the machine of laptop-game under `pa`: moves a second, and the machine's work, "
              "with `hp_threshold = auto` (6 fast cores + 1) and with one more than its 12 fast CPUs.", "",
              "| threads | auto: moves/s | machine's work | 13: moves/s | machine's work |", "| --- | --- | --- | --- | --- |",
              *threshold_rows(asymctl, HERE / "costs/laptop-game.ini")]
    (HERE.parents[1] / "docs/data/costs.md").write_text("\n".join(lines).rstrip() + "\n")


main()
