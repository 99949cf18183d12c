# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulator against the kernel, in virtual machines."""
import math
import os
import re
import statistics

import parameters as P
from common import SERIAL, T_975, absent, machine, mean, missing, parallel, percent, program, run_section, target

EIGHT = ("1,1,1,1,1,1,1,1", "1,2,3,4,5,6,7,8")
RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "results.md")


def kernel_threads():
    """One on each of eight CPUs: for as long as it runs, whoever was there waits, and an idle CPU may take it. Assumed."""
    return "".join(program(f"kernel {cpu}", P.KERNEL_THREAD, affinity=cpu) for cpu in range(8))


def lab_cases():
    """Name, figure of the virtual machine in words and as a number, scenario, and what is taken of its result."""
    text = machine("4,4", "1,2") + P.SCHEDULER + P.ENGINE + run_section("20s", alone=False)
    text += program("serial", SERIAL) + program("parallel", parallel("10M"), threads=8)
    yield ("big.LITTLE 4 + 4: a serial program beside 8 threads, of its speed alone on a fast CPU", "0.57 (0.42 to 0.84)",
           0.57, text, lambda r: [v / 2e9 for v in r["programs"][0]["performance"]["values"]])
    for copies, total in ((1, 4.55), (2, 7.92), (4, 8.34), (8, 15.29), (12, 11.75)):
        text = machine(*EIGHT) + P.SCHEDULER + P.ENGINE + run_section("100s", alone=False)
        # One program a copy: the last end is then that of the copies, whatever else runs.
        text += "".join(program(f"task {k}", ["serial 15600M"], passes=1) for k in range(copies))
        yield (f"eight speeds, {copies} copies of a task of 1.95 s: Total, seconds", f"{total:.2f}", total, text,
               lambda r: r["total_s"]["values"])


def lab_row(lab):
    """What the stock scheduler of Linux 7.2 does in a virtual machine, against the model's."""
    table = [["case", "virtual machine", "ours", "difference", "with kernel threads", "difference"]]
    for name, shown, figure, text, take in lab_cases():
        line = [name, shown]
        for more in ("", kernel_threads()):
            values = take(lab.run(text + more, seeds=P.SEEDS["lab"])["none"])
            line += [f"{mean(values):.2f} ({min(values):.2f} to {max(values):.2f})", percent(mean(values) / figure - 1)]
        table.append(line)
    return ("The stock scheduler: the model's against Linux 7.2 in a virtual machine",
            "Speeds there are made by quotas of CPU time; noise about 10 %. With a kernel's own threads: see below.",
            table, WHY_LAB)


WHY_LAB = """Ours without anything else to run never moves a thread that has a CPU to itself, and comes out within the noise for
2 and 8 copies only. A thread of the kernel that runs for a moment is enough to move one: whoever was there waits, and an idle
CPU takes it. With one on each CPU, 0.5 M instructions about every 100 ms, 8 copies come out half as long, which says that it
happens more often than on that machine; the rest comes out within 26 %, on both sides, and says nothing of that. How often it
happened there was not measured."""

# Modes of the measured table, with the policy that each is here.
MODES = {"stock": "none", "response-time": "response-time", "throughput": "throughput", "priority": "priority",
         "pinned": "none"}


def block(name):
    """The rows that `./dev vm papers` wrote between these marks, each a list of cells, and how many runs they are of."""
    with open(RESULTS, encoding="utf-8") as f:
        found = re.search(rf"<!-- {name}: begin -->(.*?)<!-- {name}: end -->", f.read(), re.S)
    if not found:
        return [], 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found[1].splitlines() if line.startswith("|")]
    return rows, int(re.search(r"(\d+) runs of each", found[1])[1])


def measured(what, read=float):
    """Of Table 5.2: one figure by mode and number of copies, and how many runs it is of. ({}, 0): nothing was measured."""
    rows, runs = block("table-5.2")
    return {(mode, int(row[0])): read(cell) for row in rows[2:] if row[1] == what
            for mode, cell in zip(rows[0][2:], row[2:])}, runs


def measured_speeds():
    """By CPU, in units in which the fastest is 8, and how many runs they are of. ([], 0): nothing was measured."""
    rows, runs = block("speeds")
    return [float(row[rows[0].index("measured")]) for row in rows[2:]], runs


def ideal(n):
    """Where load + its own is least by speed, as the virtual machine's copies are pinned: by CPU, how many."""
    load = [0] * 8
    for _ in range(n):
        load[min(range(8), key=lambda cpu: ((load[cpu] + 1) / (cpu + 1), -cpu))] += 1
    return load


def vm_text(mode, copies, seconds, speeds):
    """
    The virtual machine of tests/vm: two packages of four cores, the same configuration, copies that take so long on a CPU of
    speed 8. Pinned are the copies where the nominal speeds say, as there.
    """
    text = machine(EIGHT[0], ",".join(map(str, speeds)), "llc = 4\nnode = 1\n") + P.SCHEDULER + P.ENGINE
    text += "[enforce]\nsettle = 0ms\nfork_holdoff = 0ms\n" + run_section("200s", alone=False)
    task = [f"serial {8 * seconds:.3f}G"]
    if mode != "pinned":
        return text + program("task", task, passes=1, count=copies)
    return text + "".join(program(f"task {cpu}", task, passes=1, count=n, affinity=cpu)
                          for cpu, n in enumerate(ideal(copies)) if n > 0)


def simulate(lab, mode, copies, seconds, speeds):
    """Avg by seed: mean time from start to end of the copies."""
    policy = MODES[mode]
    seeds = 1 if mode == "pinned" else P.SEEDS["vm"]
    return lab.run(vm_text(mode, copies, seconds, speeds), [policy], seeds)[policy]["turnaround_s"]["values"]


def task_seconds(lab, figures, counts, speeds):
    """Where copies are pinned nobody schedules: what they take there says how long the task is. Nothing else does."""
    return mean([figures["pinned", n] / mean(simulate(lab, "pinned", n, 1, speeds)) for n in counts])


NOMINAL = range(1, 9)
# What a column's name has where the speeds are those that were measured, one CPU at a time.
AS_MEASURED = " (as measured)"
# Modes in which somebody steers; and those whose figures the length of the task was not taken from.
STEERED = [mode for mode, policy in MODES.items() if policy != "none"]
FREE = ["stock", *STEERED]

# A sample's range over the standard deviation, in the mean, by its size (normal distribution).
RANGE = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704, 8: 2.847, 9: 2.970, 10: 3.078}

# One copy under the stock scheduler in the virtual machine, 2026-11-21: how many of these runs were on CPU 0, by their time
# (the others: at most 3.1 times as long as the fastest).
STARTS = (14, 24)


class Held:
    """Avg as measured in the virtual machine, held against the model's. A kind: which speeds the model has; "" nominal."""

    def __init__(self, lab):
        self.there, self.runs = measured("Avg s")
        self.ranges, _ = measured("Avg, from to", ends)
        self.counts = sorted({n for _, n in self.there})
        speeds, self.tasks = measured_speeds()
        self.speeds = {"": NOMINAL} | ({AS_MEASURED: speeds} if speeds else {})
        # How long the task takes on the fastest CPU, by kind.
        self.seconds = {kind: task_seconds(lab, self.there, self.counts, s) for kind, s in self.speeds.items()}
        # By mode, kind and number of copies.
        self.here, self.strays = {}, {}
        for mode in MODES:
            for kind in self.speeds:
                for n in self.counts:
                    values = simulate(lab, mode, n, self.seconds[kind], self.speeds[kind])
                    self.here[mode, kind, n] = mean(values)
                    self.strays[mode, kind, n] = max(self.stray_there(mode, n),
                                                     1.96 * statistics.pstdev(values) / math.sqrt(self.runs))

    def stray_there(self, mode, n):
        """How far the mean of the runs strays, 95 %, by how far they are apart."""
        least, most = self.ranges[mode, n]
        return T_975[self.runs - 2] * (most - least) / RANGE[self.runs] / math.sqrt(self.runs)

    def off(self, mode, kind, n):
        return self.here[mode, kind, n] / self.there[mode, n] - 1

    def means(self, mode, kind, counts=None):
        counts = counts or self.counts
        return mean([self.there[mode, n] for n in counts]), mean([self.here[mode, kind, n] for n in counts])

    def mean_off(self, mode, kind, counts=None):
        there, here = self.means(mode, kind, counts)
        return here / there - 1

    def noise(self, mode, kind):
        squares = sum(self.strays[mode, kind, n] ** 2 for n in self.counts)
        return math.sqrt(squares) / len(self.counts) / self.means(mode, kind)[0]

    def verdict(self, kind):
        """Which modes' mean Avg is within 15 %."""
        within = [mode for mode in FREE if abs(self.mean_off(mode, kind)) <= 0.15]
        beyond = [f"{mode} ({percent(self.mean_off(mode, kind), 0)})" for mode in FREE if mode not in within]
        return f"within 15 %: {', '.join(within) or 'none'}" + (f"; beyond: {', '.join(beyond)}" if beyond else "")


def ends(cell):
    return tuple(float(x) for x in cell.split(" to "))


def vm_row(lab):
    title = "The simulator against the kernel: copies of one task on eight speeds, in the virtual machine of tests/vm"
    if not measured("Avg s")[0] or absent(lab, *MODES.values()):
        return missing(title, absent(lab, *MODES.values()) or "the virtual machine's table (`./dev vm papers`)")
    held = Held(lab)
    kind = list(held.speeds)[-1]
    target("in the virtual machine mean Avg of stock and of each policy within 15 %",
           all(abs(held.mean_off(mode, kind)) <= 0.15 for mode in FREE),
           ", ".join(f"{mode} {percent(held.mean_off(mode, kind), 0)}" for mode in FREE) +
           f" at the speeds measured; chance alone is {100 * held.noise('stock', kind):.0f} % of stock's")
    return title, vm_said(held), vm_table(held), "\n".join(vm_why(held) + vm_single(held, kind))


def vm_said(held):
    nominal, as_measured = held.seconds[""], held.seconds.get(AS_MEASURED)
    task = f"{nominal:.2f} s" + (f" (as measured {as_measured:.2f} s)" if as_measured else "")
    noise = ", as measured ".join(f"{100 * held.noise('stock', kind):.0f} %" for kind in held.speeds)
    return (f"Avg in seconds: measured there (Röhrich's Table 5.2, below: {held.runs} runs of each) / ours, {P.SEEDS['vm']} "
            f"seeds (difference). The task takes {task} on the fastest CPU, by the copies that were pinned there; everything "
            "else is the configuration of `tests/vm/papers.py`. +-: how far the mean of as many runs strays by chance (95 %), "
            "by the model's spread or by that of the runs, whichever is wider, where that is above 5 %; of the stock "
            f"scheduler's mean Avg it is {noise}.")


def vm_table(held):
    columns = [(mode, kind) for mode in MODES for kind in held.speeds]
    table = [["copies", *(mode + kind for mode, kind in columns)]]
    for n in held.counts:
        line = [str(n)]
        for mode, kind in columns:
            there, here, strays = held.there[mode, n], held.here[mode, kind, n], held.strays[mode, kind, n]
            sure = f" +- {strays:.2f}" if strays >= 0.05 * there else ""
            line.append(f"{there:.2f} / {here:.2f}{sure} ({percent(here / there - 1, 0)})")
        table.append(line)
    means = [(*held.means(mode, kind), held.mean_off(mode, kind)) for mode, kind in columns]
    table.append(["mean Avg"] + [f"{there:.2f} / {here:.2f} ({percent(off, 0)})" for there, here, off in means])
    table.append(["mean difference"] + [percent(mean([held.off(mode, kind, n) for n in held.counts]), 0)
                                        for mode, kind in columns])
    return table


def span(values):
    return f"{percent(min(values), 0)} to {percent(max(values), 0)}"


def listed(counts):
    words = [str(n) for n in counts]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "no"


def share_of(k, n):
    """Between what the true share is, 95 % (Wilson)."""
    z = 1.96
    middle, half = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return middle - half, middle + half


def vm_why(held):
    """Of the means."""
    fitted = "Pinned is not counted: the task's length comes from it."
    if AS_MEASURED not in held.speeds:
        return [f"Mean Avg {held.verdict('')}. {fitted}"]
    speeds, seconds = held.speeds[AS_MEASURED], held.seconds[AS_MEASURED]
    slow = 8 * seconds / min(speeds)
    lines = [f"Mean Avg on the machine as measured {held.verdict(AS_MEASURED)}. With the speeds that are set, "
             f"{held.verdict('')}. {fitted}",
             f"As measured: a task on each CPU alone, {held.tasks} runs of each (below), gives speeds of "
             f"{', '.join(f'{speed:.2f}' for speed in speeds)} where 1 to 8 are set, and every mode is simulated on these. A copy "
             f"that stays on the slowest CPU takes {slow:.0f} s there, not {8 * held.seconds['']:.0f} s. Speeds and the length "
             "of the task come from these measurements, not from parameters.py."]
    lines.append(vm_starts(held, speeds, seconds))
    most = held.ranges["stock", 1][1]
    if most > slow:
        lines.append(f"The longest that one copy took under the stock scheduler, {most:.1f} s, is {percent(most / slow - 1, 0)} "
                     "off what the slowest CPU takes: one run, with the noise of one.")
    last = measured("Total s")[0].get(("stock", 8), 0)
    if 0 < last < slow:
        lines.append(f"With eight copies it was better there: the last ended after {last:.1f} s on the average, "
                     f"{slow - last:.0f} s before one that stays on the slowest CPU. The kernel moves a copy that has a CPU to "
                     "itself at times, which the model never does.")
    return lines


def vm_starts(held, speeds, seconds):
    """What one copy would take, began it on the first CPU as often as was seen there; and stock's mean Avg then."""
    first, others = 1 / speeds[0], mean([1 / x for x in speeds[1:]])

    def takes(share):
        return 8 * seconds * (share * first + (1 - share) * others)

    on_first, starts = STARTS
    least, most = share_of(on_first, starts)
    uneven = takes(on_first / starts)
    there, _ = held.means("stock", AS_MEASURED)
    here = mean([uneven if n == 1 else held.here["stock", AS_MEASURED, n] for n in held.counts])
    return (f"Where a copy starts is not even there: of {starts} starts of one copy (a task of 0.2 s, another boot, nobody "
            f"steering) {on_first} took 6 to 12 times as long as the fastest, as on CPU 0 only ({100 * least:.0f} to "
            f"{100 * most:.0f} % of starts, 95 %); by that share one copy would take {uneven:.1f} s in the mean "
            f"({takes(least):.0f} to {takes(most):.0f} s). The model starts a copy on any CPU alike. With {uneven:.1f} s in "
            f"place of the model's one copy, and nothing else changed, stock's mean Avg would be {here:.1f} s "
            f"({percent(here / there - 1, 0)}).")


def vm_single(held, kind):
    """Of the single figures, at the speeds of that kind."""
    beyond = [n for n in held.counts if abs(held.there["stock", n] - held.here["stock", kind, n]) > held.strays["stock", kind, n]]
    lines = [f"Single figures{kind}: chance, which is what +- says, does not explain stock's of {listed(beyond)} copies."]
    if 1 not in beyond:
        least, most = held.ranges["stock", 1]
        lines.append(f"(That of one copy it does: its runs took {least:.1f} to {most:.1f} s.)")
    more = [n for n in held.counts if n > 2]
    there, here = held.means("stock", kind, more)
    apart = ", ".join(percent(held.off("stock", kind, n), 0) for n in more)
    lines.append(f"Stock's mean Avg of {listed(more)} copies alone is {there:.2f} s / {here:.2f} s "
                 f"({percent(here / there - 1, 0)}): differences that make up for one another ({apart}).")
    if kind:
        longer = {(p, n): held.here[p, kind, n] / held.here[p, "", n] - 1 for p in STEERED for n in held.counts}
        p, n = max(longer, key=longer.get)
        lines.append(f"The policies take at most {100 * longer[p, n]:.0f} % longer on these speeds than on those that are set "
                     f"({p}, copies: {n}).")
    every = [held.off(p, kind, n) for p in STEERED for n in held.counts]
    one = [held.off(p, kind, 1) for p in STEERED]
    lines.append(f"Theirs are {span(every)} off; those of one copy {span(one)}, where the pinned one, which nobody schedules, is "
                 f"{percent(held.off('pinned', kind, 1), 0)} off.")
    return [" ".join(lines)]


ROWS = [("vm", vm_row), ("lab", lab_row)]
