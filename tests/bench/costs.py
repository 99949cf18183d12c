#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""costs.py BUILD: writes docs/data/costs.md, what each policy gives to the first program of a scenario, and what that costs the
others and the machine. Losses are bold. Then come one program of so many threads on machines of two hardware threads a core, and
one beside a serial program; last the moves of a program of so many threads on the laptop, with hp_threshold as fast cores + 1 and
as fast CPUs + 1."""
import json
import pathlib
import subprocess
import sys

from scenarios import SCENARIOS, SERIAL, app, program, scenario, simulated

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Its title on the page, the scenario, and what it is.
COSTS = (
    ("frame-loop", "frame", "A loop of frames without a sleep, beside busy threads: 4 fast and 4 slow CPUs."),
    ("game-60hz", "fps", "A game that sleeps to the next frame, beside a build: 8 fast and 16 slow CPUs."),
    ("laptop-game", "laptop-game-build", "A game beside a build on 6 fast cores with two hardware threads each, and 8 slow ones."),
    ("phone-app", "phone-app", "An application beside background work on three types of cores."),
    ("serial", "serial-8", "A serial program beside a parallel one with barriers."),
    ("sleeping-build", "io-build", "A game beside a build that waits for its disk."),
)
SEEDS = 10
SHOWN = ("asym", "pa", "serial-first", "busyfcs", "rr")
SEATS = {"8 + 16": "desktop, SMT", "4 + 8": "zen"}
ALONE = (("8 + 16", (8, 10, 12, 14, 16, 20, 24, 32)), ("4 + 8", (6, 12, 20, 24)))
BESIDE = (("8 + 16", (8, 12, 16, 24, 32)), ("4 + 8", (12,)))


def cell(policy, stock, read):
    change = 100 * (read(policy) / read(stock) - 1)
    shown = f"{change:+.1f} %".replace("-0.0", "+0.0")
    return f"**{shown}**" if change <= -1 else shown


def policies(asymctl):
    """Returns the names of all policies that steer and need no SMT, asym first."""
    text = subprocess.run([asymctl, "policies", "--json"], check=True, capture_output=True, text=True).stdout
    names = [p["name"] for p in json.loads(text)["policies"] if p["name"] != "none" and "smt" not in p["needs"]]
    return sorted(names, key=lambda name: name != "asym")


def rows(asymctl, name):
    """Returns the lines of the table of one scenario."""
    stock, *found = simulated(asymctl, scenario(*SCENARIOS[name]), policies(asymctl), SEEDS)
    reads = [lambda p: p["programs"][0]["performance"]["mean"], lambda p: p["programs"][1]["performance"]["mean"],
             lambda p: p["throughput"]["mean"]]
    for policy in found:
        cells = [cell(policy, stock, read) for read in reads]
        yield f"| `{policy['name']}` | " + " | ".join(cells) + f" | {policy['changes_per_s']['mean']:.1f} |"


def seat_reports(asymctl, cases, first):
    """Yields the machine, the threads and the report of each case. first: the program before that of so many threads, or ''."""
    for machine, numbers in cases:
        for threads in numbers:
            yield machine, threads, simulated(asymctl, scenario(SEATS[machine], first + app(threads)), policies(asymctl), SEEDS)


def seat_rows(asymctl):
    """Returns the lines of the table of one program: the machine's work, and the policy that has the least of it."""
    for machine, threads, (stock, *found) in seat_reports(asymctl, ALONE, ""):
        work = lambda p: p["throughput"]["mean"]
        cells = [cell(p, stock, work) for name in SHOWN for p in found if p["name"] == name]
        least = min(found, key=work)
        yield f"| {machine} | {threads} | " + " | ".join(cells) + f" | {cell(least, stock, work)} (`{least['name']}`) |"


def beside_rows(asymctl):
    """Returns the lines of the table of a serial program beside one of so many threads: its gain, and the machine's work."""
    for machine, threads, (stock, *found) in seat_reports(asymctl, BESIDE, SERIAL):
        reads = [lambda p: p["programs"][0]["performance"]["mean"], lambda p: p["throughput"]["mean"]]
        cells = [", ".join(cell(p, stock, read) for read in reads) for name in SHOWN for p in found if p["name"] == name]
        yield f"| {machine} | {threads} | " + " | ".join(cells) + " |"


def threshold_rows(asymctl):
    """Returns the lines of the table of thresholds: moves of a program alone on the laptop, and the machine's work."""
    for threads in (8, 10, 12):
        cells = []
        for threshold in ("auto", "13"):
            text = f"[classify]\nhp_threshold = {threshold}\n" + program("first", "parallel 1000G chunk=20M", threads=threads)
            stock, pa = simulated(asymctl, scenario("laptop", text), ["pa"], SEEDS)
            cells += [f"{pa['migrations_per_s']['mean']:.1f}", cell(pa, stock, lambda p: p["throughput"]["mean"])]
        yield f"| {threads} | " + " | ".join(cells) + " |"


def main():
    asymctl = pathlib.Path(sys.argv[1]) / "daemon/asymctl"
    lines = ["# What it costs others", "", "Simulated, against the stock scheduler, means of "
             f"{SEEDS} seeds; written by `./dev costs`. A loss of 1 % or more is bold.", ""]
    for title, name, says in COSTS:
        lines += [f"## {title}", "", says, "", "| policy | first program | others | machine's work | sets/s |",
                  "| --- | --- | --- | --- | --- |", *rows(asymctl, name), ""]
    shown = " | ".join(f"`{name}`" for name in SHOWN)
    lines += ["## Seats", "", "One program on 8 cores of speed 1.6 with two hardware threads each and 16 of speed 1, and on 4 of 1.35 and "
              "8 of 1 with two each: the machine's work, and the least of it under any of the policies above.", "",
              f"| machine | threads | {shown} | least |", "| --- " * (len(SHOWN) + 3) + "|", *seat_rows(asymctl), "",
              "A serial program beside such a program: the serial program, then the machine's work.", "",
              f"| machine | threads beside it | {shown} |", "| --- " * (len(SHOWN) + 2) + "|", *beside_rows(asymctl), ""]
    lines += ["## hp_threshold", "", "A program alone on the machine of laptop-game under `pa`: moves a second, and the machine's work, "
              "with `hp_threshold = auto` (6 fast cores + 1) and with one more than its 12 fast CPUs.", "",
              "| threads | auto: moves/s | machine's work | 13: moves/s | machine's work |", "| --- | --- | --- | --- | --- |",
              *threshold_rows(asymctl)]
    (ROOT / "docs/data/costs.md").write_text("\n".join(lines).rstrip() + "\n")


main()
