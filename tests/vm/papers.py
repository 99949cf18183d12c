#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the papers measured, measured on a stock kernel in the virtual machine: Roehrich 2007, Table 5.2, Morad 2008, Figures
6 and 7, and Saez 2010, 3.2; and how fast the CPUs are that it was measured on. The tables go between their marks in
docs/results.md."""
import argparse
import datetime
import importlib
import pathlib
import re
import statistics
import sys
import tempfile

import cpus
import openmp
import run
import vm
from lab import CONFIG, Lab, figures, online

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results.md"
COUNTS = (1, 2, 4, 8, 10, 12)
SPEEDS = range(1, 9)
# Gain in percent, Roehrich 2007, Table 5.2.
SOURCE = {
    "response-time": (52.4, 51.7, 44.7, 45.1, 38.4, 34.6),
    "throughput": (47.9, 41.2, 32.2, 28.6, 26.4, 21.5),
    "priority": (39.3, 32.1, 30.4, 27.2, 24.6, 15.6),
}
# Total over that of one copy on the fastest CPU, the better of scx_bpfland 1.1.4 and scx_lavd 1.1.4 on Linux 7.2 in a
# laboratory like this one (eight speeds, noise about 10 %).
OTHERS = {1: 2.09 / 1.95, 2: 2.35 / 1.95, 4: 4.67 / 1.95, 8: 6.16 / 1.95, 12: 7.16 / 1.95}


def ideal(n):
    """Each copy where load + its own is least by speed: the formula of Roehrich 2007, 3.1.1, from the start."""
    load = [0] * len(SPEEDS)
    for _ in range(n):
        best = min(range(len(SPEEDS)), key=lambda cpu: ((load[cpu] + 1) / SPEEDS[cpu], -SPEEDS[cpu]))
        load[best] += 1
    return ",".join(str(cpu) for cpu in range(len(SPEEDS)) for _ in range(load[cpu]))


def calibrate(lab, seconds):
    """Millions of steps that take the fastest CPU so long."""
    once = figures(lab.timed("/opt/load-copies 1 200 7"))["total"]
    return max(10, round(200 * seconds / once))


def table_5_2(lab, runs, seconds, counts):
    """Per mode and count: the runs, each with total and avg."""
    millions = calibrate(lab, seconds)
    found = {mode: {n: [] for n in counts} for mode in ("stock", *SOURCE, "pinned")}
    for n in counts:
        for _ in range(runs):
            for mode in found:
                lab.policy("stock" if mode == "pinned" else mode)
                where = ideal(n) if mode == "pinned" else ""
                found[mode][n].append(figures(lab.timed(f"/opt/load-copies {n} {millions} {where}")))
        note = ", ".join(f"{mode} {mean(found[mode][n], 'avg'):.2f}" for mode in found)
        print(f"{n} copies, Avg in s: {note}", flush=True)
    return found


def mean(runs, key):
    return statistics.mean(each[key] for each in runs)


def spread(runs):
    values = [each["avg"] for each in runs]
    return max(values) - min(values)


def show_5_2(found, counts):
    yield "| copies | | " + " | ".join(found) + " |"
    yield "|---|---|" + "---|" * len(found)
    for n in counts:
        for title, cell in (
                ("Total s", lambda runs: f"{mean(runs, 'total'):.2f}"), ("Avg s", lambda runs: f"{mean(runs, 'avg'):.2f}"),
                ("Avg, from to", lambda runs: f"{min(r['avg'] for r in runs):.2f} to {max(r['avg'] for r in runs):.2f}")):
            yield f"| {n} | {title} | " + " | ".join(cell(found[mode][n]) for mode in found) + " |"
        yield f"| {n} | Gain % | 0 | " + " | ".join(f"{gain(found, mode, n):.1f}" for mode in list(found)[1:]) + " |"
        source = (f"{SOURCE[mode][COUNTS.index(n)]:.1f}" for mode in SOURCE)
        yield f"| {n} | Gain % in the source | | " + " | ".join(source) + " | |"


def gain(found, mode, n):
    return 100 * (1 - mean(found[mode][n], "avg") / mean(found["stock"][n], "avg"))


def judge_5_2(found, counts):
    """What it must reach, and whether it does."""
    for n in counts:
        allowed = gain(found, "pinned", n)
        good = mean(found["pinned"][n], "avg") / mean(found["response-time"][n], "avg")
        yield (f"response-time, {n} copies: {100 * good:.0f} % as good as pinned from the start", good >= 0.9)
        steady, loose = spread(found["response-time"][n]), spread(found["stock"][n])
        if len(found["stock"][n]) > 1:
            yield (f"response-time, {n} copies: its runs are {steady:.2f} s apart, the stock scheduler's {loose:.2f} s (pinned, "
                   f"which is the noise of the laboratory: {spread(found['pinned'][n]):.2f} s)", steady <= loose / 10)
        for mode in SOURCE:
            if n in OTHERS:
                total = mean(found[mode][n], "total") / mean(found["pinned"][1], "total")
                yield (f"{mode}, {n} copies: Total {total:.3f} times that of one copy on the fastest CPU, the better of "
                       f"scx_bpfland and scx_lavd {OTHERS[n]:.3f}", total <= OTHERS[n])
            wanted = min(SOURCE[mode][COUNTS.index(n)], allowed)
            limit = "" if wanted < allowed else ", of which pinned from the start allows no more than it has itself"
            yield (f"{mode}, {n} copies: gain {gain(found, mode, n):.1f} %, the source's {SOURCE[mode][COUNTS.index(n)]} %, "
                   f"pinned {allowed:.1f} %{limit}", gain(found, mode, n) >= wanted)


def first(text):
    """What the first line of load-rate says."""
    return figures(text.split(" cpus=", 1)[0])


def rate(text):
    return first(text)["rate"]


# Two threads are parallel here, as in the source; serial_max_threads = 2 is for OpenMP programs, which flicker.
FIGURES_CONFIG = CONFIG + """
[classify]
serial_max_threads = 1"""


def figures_6_7(lab, runs, seconds):
    """A serial program beside a parallel one; n: CPUs of one speed. What it keeps of its speed alone, where CPUs are alike,
    is its share of a CPU's time, which the guest counts without the noise of the host; the speed itself stands beside."""
    found = {}
    for n in range(8, 1, -1):
        online(lab, n)
        lab.policy("stock")
        alone, each = [], {"stock": [], "serial-first": []}
        for _ in range(runs):
            for mode in each:
                lab.policy(mode, FIGURES_CONFIG)
                if mode == "stock":
                    alone.append(rate(lab.timed(f"/opt/load-rate 1 {seconds} 1")))
                each[mode].append(first(lab.timed(f"sh -c '/opt/load-rate {n} {seconds + 3} 1 >/dev/null & "
                                                  f"sleep 0.3; /opt/load-rate 1 {seconds + 2} 2; wait'")))
        # One figure alone has the noise of any other.
        unit = statistics.median(alone)
        found[n] = {mode: [{"share": run["own"], "speed": run["rate"] / unit} for run in values]
                    for mode, values in each.items()}
        found[n]["alone"] = [{"speed": value / unit} for value in alone]
        for mode in each:
            shares, speeds = (" ".join(f"{v[key]:.2f}" for v in found[n][mode]) for key in ("share", "speed"))
            print(f"{n} CPUs, {mode}: {shares}; speed {speeds}", flush=True)
    online(lab, 8)
    return found


def big_little(lab, runs):
    """Four CPUs of speed 1, four of speed 2: one serial program beside one of 8 threads, in units of a fast CPU."""
    measure = importlib.import_module("scenarios.s2_serial").measure
    found, alone = {mode: [] for mode in ("stock", "pa", "serial-first")}, []
    for _ in range(runs):
        for mode, each in found.items():
            lab.policy(mode)
            if mode == "stock":
                alone.append(rate(lab.timed("taskset -c 7 /opt/load-rate 1 8 2")))
            one = measure(lab.s)
            each.append({"serial": one["had"], "total": one["had"] + one["parallel_had"], "serial rate": one["rate"],
                         "total rate": one["rate"] + one["parallel_rate"]})
            print(f"big.LITTLE, {mode}: {', '.join(f'{key} {value:.2f}' for key, value in each[-1].items())}; "
                  f"alone {alone[-1]:.1f} steps/us", flush=True)
    unit = statistics.median(alone)
    for each in found.values():
        for one in each:
            one.update({key: one[key] / unit for key in one if key.endswith("rate")})
    return found


def show_big_little(found):
    """What was had by the guest's clocks; and by the work done, over that alone, with the host's noise."""
    yield "| | serial: mean | min to max | total: mean | min to max | by work done: serial | total |"
    yield "|---|---|---|---|---|---|---|"
    for mode, each in found.items():
        cells = []
        for key in ("serial", "total"):
            values = column(each, key)
            cells += [f"{statistics.mean(values):.2f}", f"{min(values):.2f} to {max(values):.2f}"]
        cells += [f"{mean(each, 'serial rate'):.2f}", f"{mean(each, 'total rate'):.2f}"]
        yield f"| {mode} | " + " | ".join(cells) + " |"


def judge_big_little(found):
    for mode in list(found)[1:]:
        serial, total = mean(found[mode], "serial"), mean(found[mode], "total") / mean(found["stock"], "total")
        yield f"{mode}: the serial program has {serial:.2f} of its speed alone on a fast CPU", serial >= 0.95
        yield f"{mode}: the total work is {total:.2f} of the stock scheduler's", total >= 0.97


def jitter(values):
    """Morad 2008, eq. 6, of times: 1 / speed."""
    times = [1 / v for v in values]
    average = statistics.mean(times)
    return statistics.mean((t / average - 1) ** 2 for t in times) ** 0.5


def column(runs, key):
    return [one[key] for one in runs]


def show_6_7(found):
    yield ("| CPUs | n/(n+1) | stock: mean | min to max | jitter | serial-first: mean | min to max | jitter "
           "| speed over alone: stock | serial-first | alone, min to max |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for n in sorted(found):
        cells, speeds = [], []
        for mode in ("stock", "serial-first"):
            values = column(found[n][mode], "share")
            cells += [f"{statistics.mean(values):.3f}", f"{min(values):.2f} to {max(values):.2f}", f"{jitter(values):.3f}"]
            speeds.append(f"{mean(found[n][mode], 'speed'):.2f}")
        noise = column(found[n]["alone"], "speed")
        cells += [*speeds, f"{min(noise):.2f} to {max(noise):.2f}"]
        yield f"| {n} | {n / (n + 1):.2f} | " + " | ".join(cells) + " |"


def judge_6_7(found):
    for n in sorted(found):
        stock, steered = (column(found[n][mode], "share") for mode in ("stock", "serial-first"))
        yield (f"serial-first, {n} CPUs: the serial program has {statistics.mean(steered):.3f} of a CPU's time",
               statistics.mean(steered) >= 0.95)
        speed = mean(found[n]["serial-first"], "speed")
        yield f"serial-first, {n} CPUs: the serial program keeps {speed:.3f} of its speed alone", speed >= 0.95
        if len(stock) > 1:
            yield (f"serial-first, {n} CPUs: jitter {jitter(steered):.3f}, the stock scheduler's {jitter(stock):.3f}",
                   jitter(steered) <= jitter(stock) / 3)


def write(name, lines):
    """Between the marks of that name; what else is in the file stays."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = RESULTS.read_text() if RESULTS.exists() else "# Results\n"
    block = "\n".join((begin, *lines, end))
    if begin in text:
        text = text[:text.index(begin)] + block + text[text.index(end) + len(end):]
    else:
        text += f"\n{block}\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def host():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{cpu.group(1) if cpu else 'unknown CPU'}, {datetime.date.today()}"


def report(name, args, guest, found):
    _, title, _, show, judge, why = TABLES[name]
    verdicts = list(judge(found))
    kernel = guest.sh("uname -r")
    boots = "more than one boot" if args.resume and name == "rtx" else "one boot"
    lines = [f"## {title}", "", f"`./dev vm papers`: {args.runs} runs of each in {boots}, Linux {kernel} in the virtual "
             f"machine of tests/vm on {host()}. {NOISE}", "", *show(found)]
    lines += ["", "What it is to reach:", ""] if verdicts else []
    lines += [f"- {'reached' if ok else 'MISSED'}: {text}" for text, ok in verdicts]
    if why and not all(ok for _, ok in verdicts):
        lines += ["", f"Why what is missed is missed: {why}"]
    if not args.short:
        write(name, lines)
    print("\n".join(lines[2:]))
    return sum(not ok for _, ok in verdicts)


def main():
    parser = argparse.ArgumentParser(prog="./dev vm papers", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.5, help="of the task on the fastest CPU (default: as the source)")
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--short", action="store_true", help="rtx alone, 30 %% serial work only; docs/results.md stays")
    parser.add_argument("--resume", action="store_true", help="rtx: go on from what a run that was ended has measured")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    for option in ("short", "resume"):
        if getattr(args, option) and args.only not in (None, "rtx"):
            parser.error(f"--{option} is for rtx, not for {args.only}")
    if args.short:
        args.only = "rtx"
    vm.stop_on_signals()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        run.stage(args.build, pathlib.Path(share))
        for name in [args.only] if args.only else TABLES:
            machine, _, measure, *_ = TABLES[name]
            with vm.Guest(machine, share, 4 * 3600) as guest:
                guest.begin()
                lab = Lab(guest)
                missed += report(name, args, lab.s, measure(lab, args))
    return 1 if missed else 0


# What the laboratory was seen to do.
NOISE = ("Its own noise is 5 to 10 % on a quiet host, and more beside others: one program alone was seen at 0.60 to 1.32 of its "
         "median. Where a table has `alone` or `pinned`, from where to where, that shows it.")

# Machine, title, how it is measured, shown and judged, and why what is missed is missed: "" where there is nothing to say.
TABLES = {
    "table-5.2": ("eight-speeds", "Röhrich 2007, Table 5.2: copies of one task on eight speeds",
                  lambda lab, args: table_5_2(lab, args.runs, args.seconds, COUNTS), lambda found: show_5_2(found, COUNTS),
                  lambda found: judge_5_2(found, COUNTS),
                  "pinned copies, which nobody moves, show the noise of the laboratory: where their own runs are further apart "
                  "than a tenth of the stock scheduler's, no policy can be as steady as is asked, and the Total of one copy is "
                  "no surer than they are."),
    "speeds": (cpus.MACHINE, "The machine of Table 5.2: how fast each of its CPUs is",
               cpus.measure, cpus.show, lambda found: (), ""),
    "figures-6-7": ("eight-equal", "Morad 2008, Figures 6 and 7: one serial beside one parallel program",
                    lambda lab, args: figures_6_7(lab, args.runs, 4), show_6_7, judge_6_7,
                    "a CPU's time is what a scheduler has to give; the speed that comes of it has the noise of a host that has two "
                    "cores for all these CPUs and is shared itself, as the column of those alone shows."),
    "big-little": ("big-little", "Four CPUs of speed 1 and four of speed 2: one serial program beside one of 8 threads",
                   lambda lab, args: big_little(lab, args.runs), show_big_little, judge_big_little, ""),
    "rtx": ("big-little", "Saez 2010, 3.2: OpenMP programs by how their threads wait, without and with runtime extensions",
            openmp.measure, openmp.show, openmp.judge,
            "single runs lose 0.1 to 0.23 s in the parallel part, and 0.02 to 0.06 s before phases are answered. That two threads "
            "shared a CPU after a mask had changed was most of it before (up to 118 %), and is mended where asymd knows which "
            "CPUs are idle; what is left was not traced. A look of asymd takes a sixth of a slow CPU here, and a barrier waits "
            "for the thread beside it."),
}

if __name__ == "__main__":
    sys.exit(main())
