# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how far pa accelerates the serial phases of OpenMP programs, by how their threads wait, with and without runtime
extensions (Saez 2010, 2.2 and 3.2). A row of papers.py."""
import collections
import itertools
import json
import re
import statistics

import machines
from lab import figures, online

# Online CPUs of the machine big-little; 0 to 3 have speed 1, the others speed 2. CPU 0 has the kernel's chores.
MACHINES = {"4 + 4": 8, "4 + 1": 5}
# CPUs without a thread of the program. On an emulated CPU the samples of asymd take a sixth of a slow CPU, where on a real one
# they take a few thousandths, and a barrier would wait for them.
SPARE = 1
SLOW, FAST, RATIO = 1, 4, 2
SHARES = (0, 10, 30, 50)
# asymd steers no other program of the guest: the agent that listens to the host takes a CPU at times, and asymd once gave it a
# fast one to itself.
# All times of the programs, of asymd and of the runtime are ten times as long as usual, because an emulated CPU is some 15
# times as slow. Eight of them share two CPUs of the host, which gives them turns by ticks of 4 ms. A thread that spins uses up
# its turn, and no barrier comes sooner than after 50 to 100 ms.
CONFIG = """[asymd]
group = process
policy = {policy}
interval = 1s
cpu_budget = 100
[classify]
amp_boost = 10s
[enforce]
settle = 1s
swap_period = 1s
fork_holdoff = 0ms
[rtx]
spin_notify = 200us
[rule "measured"]
match_comm = load-openmp
action = steer
[rule "the guest's own"]
match_comm = *
action = ignore"""
WAITS = {"sleep": "0", "adaptive": "2000", "spin": "infinite"}
# Milliseconds of a slow CPU between two barriers: barriers in a region, and the least milliseconds of one on this host.
INTERVALS = {10: (20, 60), 100: (4, 130), 1000: (1, 1010)}
# The policy, and the command before the program.
STEERINGS = {"stock": ("stock", ""), "pa": ("pa", ""), "RTX": ("pa", "ASYM_RTX_NOTIFY_MIN=10000 asymctl run -- ")}
# Seconds of a program at best; seconds after which asymd has seen it (settle, one sample that the program was not there for
# all of, one whole sample, and their own time); and the seconds to wait where asymd does not run.
CELL_S, SEEN_S, NOT_SEEN_S = 2.0, 4.2, 0.9
PROGRAM = "/opt/load-openmp"

# The measurements of each case: the steering, how threads wait, and the CPU on which the initial thread begins. The stock
# scheduler leaves that thread there, so a program that begins on a fast CPU has nothing to gain, and something to lose.
CELLS = {f"{name} {waits}": (name, waits, SLOW) for name in STEERINGS for waits in WAITS}
CELLS |= {f"{name} spin from fast": (name, "spin", FAST) for name in ("stock", "RTX")}

Case = collections.namedtuple("Case", "run machine share interval")
# Arguments of load-openmp, in thousands of steps.
Work = collections.namedtuple("Work", "threads rounds serial barriers slice")


def work(case, rate):
    """The same for every policy and every kind of wait. rate: thousands of steps that a slow CPU counts in 1 ms."""
    threads, (barriers, least_ms) = MACHINES[case.machine] - SPARE, INTERVALS[case.interval]
    each = max(1, round(rate * case.interval))
    serial = round(threads * barriers * each * case.share / (100 - case.share))
    round_s = (barriers * least_ms + serial / rate / RATIO) / 1000
    return Work(threads, max(1, round(CELL_S / round_s)), serial, barriers, each)


def parse(text):
    """The report of a program: its seconds, those of its serial phases, both as they would be if every CPU had its nominal
    speed, and the percentage of its serial phases for which it had a fast CPU."""
    said = figures(text)
    shares = re.findall(r"(\d+):([\d.]+)", text.rpartition("cpus=")[2])
    return {**{key: said[key] for key in ("time", "serial", "due", "dueserial")},
            "fast": sum(float(s) for cpu, s in shares if int(cpu) >= FAST)}


def cases(args):
    return [Case(*each) for each in itertools.product(range(args.runs), MACHINES, SHARES, INTERVALS)]


def speeds(rate):
    """The speed of each CPU, as an argument of load-openmp."""
    return ",".join(f"{rate * (RATIO if cpu >= FAST else 1):.3f}" for cpu in range(machines.CPUS))


def speed(lab, cpu):
    """Thousands of steps that this CPU counts in 1 ms, alone: the figure holds whichever CPUs the programs get later."""
    once = figures(lab.timed(f"taskset -c {cpu} {PROGRAM} 1 {cpu} 0 1 10000 1 1 {speeds(1)}"))
    return 10000 / once["serial"] / 1000


def calibrate(lab):
    slow, fast = (statistics.median(speed(lab, cpu) for _ in range(3)) for cpu in (SLOW, FAST))
    print(f"a slow CPU counts {slow:.1f} thousand steps in 1 ms, a fast one {fast:.1f}", flush=True)
    # The slow rate is half of the fast one, because a slow CPU that does little runs up to a third faster than its share of the
    # host.
    return fast / RATIO


class Record:
    """Keeps every case as soon as it is measured, so that --resume can continue a run that was ended early."""

    def __init__(self, path=None, resume=False):
        self.path, self.rate, self.found, self.left_alone = path, None, {}, {}
        if not path:
            return
        text = path.read_text() if resume and path.exists() else ""
        # The last line may be incomplete.
        whole = text[:text.rfind("\n") + 1]
        path.write_text(whole)
        for line in whole.splitlines():
            self.keep(json.loads(line))

    def entries(self):
        """Returns what keep() takes, one entry of each measurement."""
        return [{"rate": self.rate}] + [{"case": case, "cells": cells, "left_alone": self.left_alone[case]}
                                        for case, cells in self.found.items()]

    def keep(self, entry):
        if "rate" in entry:
            self.rate = entry["rate"]
        else:
            case = Case(*entry["case"])
            self.found[case], self.left_alone[case] = entry["cells"], entry["left_alone"]

    def add(self, entry):
        self.keep(entry)
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def measure_case(lab, case, rate):
    """The report of the program for every cell."""
    cells, policy, left = {}, None, work(case, rate)
    # Sort by steering, so that asymd starts once for each policy.
    for cell, (name, waits, cpu) in sorted(CELLS.items(), key=lambda each: list(STEERINGS).index(each[1][0])):
        steered_by, before = STEERINGS[name]
        if steered_by != policy:
            policy = steered_by
            lab.policy(policy, CONFIG)
        after = NOT_SEEN_S if policy == "stock" else SEEN_S
        arguments = " ".join(map(str, (left.threads, cpu, round(1000 * after), *left[1:], speeds(rate))))
        cells[cell] = parse(lab.timed_after(f"env KMP_BLOCKTIME={WAITS[waits]} {before}{PROGRAM} {arguments}", after))
    return cells


def left_alone(lab):
    """Threads of which asymd says that another process has changed their affinity. The number must be 0."""
    return len(re.findall(r"left alone: .*\(load-openmp\)", lab.s.journal()))


def measure(lab, args):
    """Measures all cases that are not on record yet. The work is the same for all runs."""
    record, cpus, alone = Record(args.build / "vm-rtx.jsonl", args.resume), None, 0
    if record.rate is None:
        lab.policy("stock")
        record.add({"rate": calibrate(lab)})
    left = [case for case in cases(args) if case not in record.found]
    for n, case in enumerate(left):
        if MACHINES[case.machine] != cpus:
            cpus = MACHINES[case.machine]
            lab.policy("stock")
            online(lab, cpus)
        cells = measure_case(lab, case, record.rate)
        alone, before = left_alone(lab), alone
        record.add({"case": case, "cells": cells, "left_alone": alone - before})
        said = ", ".join(f"{name} {cell['due']:.2f} ({cell['time']:.2f})" for name, cell in cells.items())
        if alone > before:
            said += f"; asymd left {alone - before} threads alone"
        print(f"{n + 1} of {len(left)}: run {case.run + 1}, {case.machine}, {case.share} % serial, {case.interval} ms: "
              f"{said}", flush=True)
    return Results(record, cases(args))


class Results:
    """Medians over runs."""

    def __init__(self, record, wanted):
        self.record = record
        self.rows = list(dict.fromkeys(case[1:] for case in wanted))
        self.runs = sorted({case.run for case in wanted})

    def values(self, row, name, key="due"):
        return [self.record.found[Case(run, *row)][name][key] for run in self.runs]

    def time(self, row, name, key="due"):
        return statistics.median(self.values(row, name, key))

    def interval(self, row, name):
        """Measured milliseconds from one barrier to the next."""
        left = work(Case(0, *row), self.record.rate)
        parallel = self.time(row, name, "time") - self.time(row, name, "serial")
        return 1000 * parallel / left.rounds / left.barriers

    def gain(self, rows, name, waits, key="due"):
        """Gain over the stock scheduler with threads that wait in the same way, in percent: the geometric mean."""
        return 100 * (statistics.geometric_mean(self.time(r, f"stock {waits}", key) / self.time(r, f"{name} {waits}", key)
                                                for r in rows) - 1)

    def fast(self, rows, name):
        return statistics.mean(self.time(row, name, "fast") for row in rows)


def dump(results):
    """Returns the measurements as lists and dicts; restore() makes the results from them."""
    return results.record.entries()


def restore(entries):
    record = Record()
    for entry in entries:
        record.keep(entry)
    return Results(record, list(record.found))


def spread(values):
    """The median and the range."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def show(results):
    ways = ", ".join(f"{waits} (KMP_BLOCKTIME={blocktime})" for waits, blocktime in WAITS.items())
    yield ("A program has one thread fewer than the machine has CPUs. RTX means policy pa with a program that `asymctl run` "
           f"starts. Waits: {ways}. The initial thread begins on a slow CPU, or on a fast one where the column says so. Everything "
           "runs ten times slower than usual, asymd too (interval and swap_period 1 s, amp_boost 10 s). The first table has "
           "computed seconds, the median and the range: the steps counted on each CPU give the time at the speeds that are set, "
           "and the threads' waits for a CPU count for the time in which that CPU had a core of the host; a barrier ends when the "
           "last thread would reach it. The last columns are the milliseconds from barrier to barrier under the stock scheduler, "
           "by the clock. The second table has the times by the clock: the host runs the eight CPUs in turn on two cores, 4 ms "
           "at a time, and a barrier waits until the last CPU has had enough turns. A fast CPU counts "
           f"{RATIO * results.record.rate:.0f} steps in a microsecond.")
    yield ""
    yield ("| CPUs | serial % | barrier, ms | " + " | ".join(name.replace(" ", ", ", 1) for name in CELLS) +
           " | " + " | ".join(f"ms, {waits}" for waits in WAITS) + " |")
    yield "|---|---|---|" + "---|" * (len(CELLS) + len(WAITS))
    for row in results.rows:
        cells = [spread(results.values(row, name)) for name in CELLS]
        cells += [f"{results.interval(row, f'stock {waits}'):.1f}" for waits in WAITS]
        yield f"| {' | '.join(map(str, row))} | {' | '.join(cells)} |"
    yield ""
    yield "Medians of the times by the clock, which have the noise of the host."
    yield ""
    yield "| CPUs | serial % | barrier, ms | " + " | ".join(name.replace(" ", ", ", 1) for name in CELLS) + " |"
    yield "|---|---|---|" + "---|" * len(CELLS)
    for row in results.rows:
        clock = [f"{results.time(row, name, 'time'):.2f}" for name in CELLS]
        yield f"| {' | '.join(map(str, row))} | {' | '.join(clock)} |"
    yield ""
    yield from show_gains(results)


def show_gains(results):
    yield ("Gain over the stock scheduler with the same waits, from the computed times / by the clock, and the part of the serial "
           "phases that fast CPUs ran with spinning waits. All are in percent, over all intervals.")
    yield ""
    steered = list(STEERINGS)[1:]
    yield ("| CPUs | serial % | " + " | ".join(f"{name}, {waits}" for name in steered for waits in WAITS) + " | " +
           " | ".join(f"fast, {name}" for name in STEERINGS) + " |")
    yield "|---|---|" + "---|" * (len(steered) * len(WAITS) + len(STEERINGS))
    for machine, share in dict.fromkeys(row[:2] for row in results.rows):
        rows = [row for row in results.rows if row[:2] == (machine, share)]
        cells = [f"{results.gain(rows, name, waits):+.1f} / {results.gain(rows, name, waits, 'time'):+.0f}"
                 for name in steered for waits in WAITS]
        cells += [f"{results.fast(rows, f'{name} spin'):.0f}" if share else "" for name in STEERINGS]
        yield f"| {machine} | {share} | {' | '.join(cells)} |"


def judge(results):
    """The bars, and whether the results reach them."""
    for machine in MACHINES:
        rows = [row for row in results.rows if row[0] == machine]
        good = {r: min(results.time(r, f"pa {waits}") for waits in WAITS) / results.time(r, "RTX spin") for r in rows}
        yield verdict(f"{machine}: RTX with spinning waits, of the best of pa's three, at least 95 %", good,
                      lambda part: part >= 0.95, lambda part: f"{100 * part:.1f} %")
        alone = {r: min(results.time(r, f"pa {waits}", "dueserial") for waits in WAITS) /
                 results.time(r, "RTX spin", "dueserial")
                 for r in rows if r[1]}
        yield verdict(f"{machine}: the same of the serial phases alone, in which no thread waits for a barrier", alone,
                      lambda part: part >= 0.95, lambda part: f"{100 * part:.1f} %")
        for begins in ("", " from fast"):
            behind = {r: results.time(r, f"RTX spin{begins}") / results.time(r, f"stock spin{begins}") - 1 for r in rows}
            yield verdict(f"{machine}: RTX with spinning waits{begins}, behind stock with the same by at most 4 %", behind,
                          lambda part: part <= 0.04, lambda part: f"{100 * part:+.1f} %")
    yield verdict_left_alone(results)


def verdict_left_alone(results):
    """Over all cases."""
    counts = [results.record.left_alone[Case(run, *row)] for run in results.runs for row in results.rows]
    text = f"asymd left no thread alone: so in {counts.count(0)} of {len(counts)} cases"
    if any(counts):
        text += f"; {sum(counts)} threads in the others"
    return text, counts.count(0) == len(counts)


def verdict(asked, found, good, shown):
    missed = [f"{share} % serial, {interval} ms: {shown(value)}" for (_, share, interval), value in found.items()
              if not good(value)]
    text = f"{asked}: so in {len(found) - len(missed)} of {len(found)} rows"
    return text + (f"; not with {'; '.join(missed)}" if missed else ""), not missed
