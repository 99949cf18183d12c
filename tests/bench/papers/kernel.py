# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulator against the kernel, in virtual machines."""
import math
import os
import re
import statistics

import parameters as P
from common import SERIAL, absent, machine, mean, missing, parallel, percent, program, run_section

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
CPU takes it. With one on each CPU, 0.5 M instructions about every 100 ms, it happens more often than on that machine: 8
copies come out half as long, the rest within 26 %. How often it happened there was not measured."""

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


def longest(cell):
    return float(cell.split(" to ")[1])


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


def vm_row(lab):
    title = "The simulator against the kernel: copies of one task on eight speeds, in the virtual machine of tests/vm"
    figures, runs = measured("Avg s")
    if not figures or absent(lab, *MODES.values()):
        return missing(title, absent(lab, *MODES.values()) or "the virtual machine's table (`./dev vm papers`)")
    counts = sorted({n for _, n in figures})
    speeds, tasks = measured_speeds()
    # By suffix of the columns' names: the speeds, and how long the task takes on the fastest CPU.
    kinds = {"": (NOMINAL, task_seconds(lab, figures, counts, NOMINAL))}
    if speeds:
        kinds[AS_MEASURED] = speeds, task_seconds(lab, figures, counts, speeds)
    columns = [(mode + kind, mode, kind) for mode in MODES for kind in kinds]
    table, ours, unsure = [["copies", *(name for name, _, _ in columns)]], {}, {}
    for n in counts:
        line = [str(n)]
        for name, mode, kind in columns:
            speed, seconds = kinds[kind]
            values = simulate(lab, mode, n, seconds, speed)
            ours[name, n], unsure[name, n] = mean(values), 1.96 * statistics.pstdev(values) / math.sqrt(runs)
            sure = f" +- {unsure[name, n]:.2f}" if unsure[name, n] >= 0.05 * ours[name, n] else ""
            line.append(f"{figures[mode, n]:.2f} / {ours[name, n]:.2f}{sure} ({percent(ours[name, n] / figures[mode, n] - 1, 0)})")
        table.append(line)
    means, off, noise = ["mean Avg"], {}, {}
    for name, mode, _ in columns:
        there, here = mean([figures[mode, n] for n in counts]), mean([ours[name, n] for n in counts])
        off[name] = here / there - 1
        noise[name] = math.sqrt(sum(unsure[name, n] ** 2 for n in counts)) / len(counts) / here
        means.append(f"{there:.2f} / {here:.2f} ({percent(off[name], 0)})")
    table += [means, ["mean difference"] + [percent(mean([ours[name, n] / figures[mode, n] - 1 for n in counts]), 0)
                                            for name, mode, _ in columns]]
    stocks = ["stock" + kind for kind in kinds]
    said = (f"Avg in seconds: measured there (Röhrich's Table 5.2, below: {runs} runs of each) / ours, {P.SEEDS['vm']} seeds "
            f"(difference). The task takes {' s (as measured '.join(f'{seconds:.2f}' for _, seconds in kinds.values())} s"
            f"{')' * (len(kinds) - 1)} on the fastest CPU, by the copies that were pinned there; everything else is the "
            "configuration of `tests/vm/papers.py`. "
            "+-: how far the mean of as many runs as were measured strays by chance, where that is above 5 %; of the stock "
            f"scheduler's mean Avg it is {', as measured '.join(f'{100 * noise[stock]:.0f} %' for stock in stocks)}.")
    return (title, said, table, why(off, kinds, tasks) + "\n" + by_chance(figures, ours, unsure, counts))


def span(values):
    return f"{percent(min(values), 0)} to {percent(max(values), 0)}"


def listed(counts):
    words = [str(n) for n in counts]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "no"


def by_chance(figures, ours, unsure, counts):
    """What of the single figures is further off than +- says. By (mode, copies); ours and unsure by (column, copies)."""
    def beyond(column):
        return listed([n for n in counts if abs(figures["stock", n] - ours[column, n]) > unsure[column, n]])
    policies = [mode for mode, policy in MODES.items() if policy != "none"]
    lines = [f"Chance, which is what +- says, does not explain stock's figures of {beyond('stock')} copies."]
    kind = AS_MEASURED if ("stock" + AS_MEASURED, counts[0]) in ours else ""
    if kind:
        longer = {(p, n): ours[p + kind, n] / ours[p, n] - 1 for p in policies for n in counts}
        p, n = max(longer, key=longer.get)
        lines[0] = (f"As measured, chance, which is what +- says, does not explain stock's figures of {beyond('stock' + kind)} "
                    "copies.")
        lines.append(f"The policies take at most {100 * longer[p, n]:.0f} % longer there than with the speeds that are set ({p}, "
                     f"copies: {n}).")
    few, more = [n for n in counts if n <= 2], [n for n in counts if n > 2]
    if few and more:
        there, here = (mean([by[name, n] for n in more]) for by, name in ((figures, "stock"), (ours, "stock" + kind)))
        lines.append(f"Its mean Avg of {listed(more)} copies alone is {there:.2f} s / {here:.2f} s ({percent(here / there - 1, 0)}): "
                     f"with {listed(few)} what decides is on which CPU they happen to start.")
    off = {(mode, n): ours[mode + kind, n] / figures[mode, n] - 1 for mode in MODES for n in counts}
    lines.append(f"Single figures of the policies{kind} are {span([off[p, n] for p in policies for n in counts])} off; those of "
                 f"one copy {span([off[p, 1] for p in policies])}, where the pinned one, which nobody schedules, is "
                 f"{percent(off['pinned', 1], 0)} off.")
    return " ".join(lines)


def verdict(off):
    """Which columns' mean Avg is within 15 %. off: by column."""
    within = [name for name in off if abs(off[name]) <= 0.15]
    beyond = [f"{name} ({percent(off[name], 0)})" for name in off if name not in within]
    return f"within 15 %: {', '.join(within) or 'none'}" + (f"; beyond: {', '.join(beyond)}" if beyond else "")


# One copy under the stock scheduler in the virtual machine, 2026-11-21: how many of these runs were on CPU 0, by their time
# (the others: at most 3.1 times as long as the fastest).
STARTS = (14, 24)


def why(off, kinds, tasks):
    """off: by column, of the mean Avg; kinds: by suffix of the columns, speeds and length of the task; tasks: on each CPU."""
    nominal = {name: x for name, x in off.items() if not name.endswith(AS_MEASURED)}
    if AS_MEASURED not in kinds:
        return f"Mean Avg {verdict(nominal)}."
    speeds, seconds = kinds[AS_MEASURED]
    as_measured = {name.removesuffix(AS_MEASURED): x for name, x in off.items() if name not in nominal}
    slow, last, most = 8 * seconds / min(speeds), *(measured(what, read)[0].get(("stock", n), 0) for what, read, n in (
        ("Total s", float, 8), ("Avg, from to", longest, 1)))
    lines = [f"Mean Avg on the machine as measured {verdict(as_measured)}. With the speeds that are set, {verdict(nominal)}.",
             f"As measured: a task on each CPU alone, {tasks} runs of each (below), gives speeds of "
             f"{', '.join(f'{speed:.2f}' for speed in speeds)} where 1 to 8 are set, and every mode is simulated on these. A copy "
             f"that stays on the slowest CPU takes {slow:.0f} s there, not {8 * kinds[''][1]:.0f} s. Speeds and the length of the "
             "task come from these measurements, not from parameters.py."]
    on_first, starts = STARTS
    uneven = 8 * seconds * (on_first / starts / speeds[0] + (1 - on_first / starts) * mean([1 / x for x in speeds[1:]]))
    lines.append(f"Where a copy starts is not even there: of {starts} starts of one copy (a task of 0.2 s, another boot, nobody "
                 f"steering) {on_first} took 6 to 12 times as long as the fastest, as on CPU 0 only; by that share one copy "
                 f"would take {uneven:.1f} s in the mean. A thread of another program began there in 8 of 40 starts. The model "
                 "starts a copy on any CPU alike.")
    if most > slow:
        lines.append(f"The longest that one copy took under the stock scheduler, {most:.1f} s, is {percent(most / slow - 1, 0)} "
                     "off what the slowest CPU takes: one run, with the noise of one.")
    if 0 < last < slow:
        lines.append(f"With eight copies it was better there: the last ended after {last:.1f} s on the average, "
                     f"{slow - last:.0f} s before one that stays on the slowest CPU. The kernel moves a copy that has a CPU to "
                     "itself at times, which the model never does.")
    return "\n".join(lines)


ROWS = [("vm", vm_row), ("lab", lab_row)]
