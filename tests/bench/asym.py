#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""asym.py BUILD: writes docs/data/asym.md, what asym reaches in the scenarios of tests/bench/asym, beside what is asked of it. A row
that misses is bold."""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
POLICIES = ("pa", "serial-first", "asym")
SEEDS = 20

# Scenario: the least gain of the first program and the least change of the machine's work, per cent against the stock scheduler.
ASKED = {
    "pe-08": (23, None), "pe-10": (15, None), "pe-12": (9, None), "pe-14": (5, None), "pe-16": (2, None), "pe-20": (0, None),
    "pe-24": (-1, None), "pe-32": (-1, None),
    "pe-serial-12": (22, 4), "pe-serial-16": (22, 0), "pe-serial-24": (42, -3), "pe-serial-32": (60, -3),
    "laptop-game-build": (58, -3), "fps": (55, -3), "frame": (100, -3), "serial-8": (19, 20),
    "barrier-100": (25, None), "barrier-300": (42, None), "barrier-1000": (40, None), "barrier-spin-300": (39, None),
    "barrier-spin-1000": (40, None), "phone-app": (57, -2), "zen-06": (6, None), "zen-serial-12": (20, -2),
    "zen-game-build": (99, -4), "many-build": (35, -3), "io-build": (9, -2), "lock-build": (7, -3), "jobs": (25, -3),
    "serials": (None, -3), "alike": (None, -0.3),
}


def change(policy, stock, read):
    return 100 * (read(policy) / read(stock) - 1)


def shown(values):
    return " / ".join(f"{v:+.1f}".replace("-0.0", "+0.0") for v in values)


def asked(least):
    return " / ".join("-" if v is None else f"{v:+g}" for v in least)


def row(asymctl, name, least):
    """Returns the line of a scenario and whether asym reaches what is asked."""
    scenario = HERE / "asym" / f"{name}.ini"
    text = subprocess.run([asymctl, "sim", scenario, f"--policy={','.join(POLICIES)}", f"--repeat={SEEDS}", "--json"],
                          check=True, capture_output=True, text=True).stdout
    stock, *policies = json.loads(text)["policies"]
    reads = [lambda p: p["programs"][0]["performance"]["mean"], lambda p: p["throughput"]["mean"]]
    cells = [[change(p, stock, read) for read in reads] for p in policies]
    reached = all(wanted is None or round(got, 1) >= wanted for got, wanted in zip(cells[-1], least))
    last = shown(cells[-1]) if reached else f"**{shown(cells[-1])}**"
    sets = policies[-1]["changes_per_s"]["mean"]
    cells = " | ".join([shown(cell) for cell in cells[:-1]] + [asked(least), last, f"{sets:.0f}"])
    return f"| {name} | {cells} |", reached


def main():
    asymctl = pathlib.Path(sys.argv[1]) / "daemon/asymctl"
    rows = [row(asymctl, name, least) for name, least in ASKED.items()]
    lines = ["# What asym reaches in the simulator", "",
             f"First program / machine's work, per cent against the stock scheduler, means of {SEEDS} seeds; written by `./dev costs`. "
             f"{sum(reached for _, reached in rows)} of {len(rows)} rows reach what is asked; the others are bold. The scenarios stand "
             "in `tests/bench/asym`.", "",
             "| row | `pa` | `serial-first` | asked | `asym` | sets/s |", "| --- | --- | --- | --- | --- | --- |",
             *(line for line, _ in rows)]
    (HERE.parents[1] / "docs/data/asym.md").write_text("\n".join(lines) + "\n")


main()
