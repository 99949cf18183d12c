# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the simulator with the kernel in virtual machines."""
import json
import math
import os
import re
import statistics

import marks
import parameters as P
from common import SERIAL, T_975, machine, mean, parallel, percent, program, run_section, target
from sources import SPEEDS as NOMINAL, ideal

EIGHT = ("1,1,1,1,1,1,1,1", "1,2,3,4,5,6,7,8")
RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "data", "kernel.md")


# The modes of the measured table, and the policy of each in the simulator.
MODES = {"stock": "none", "response-time": "response-time", "throughput": "throughput", "priority": "priority",
         "pinned": "none"}


def block(name):
    """Returns the rows that `./dev vm papers` wrote between these marks, each a list of cells, and the number of runs."""
    with open(RESULTS, encoding="utf-8") as f:
        lines = marks.block(f.read(), name)
    return marks.tables(lines), int(re.search(r"(\d+) runs of each", lines)[1])


def measured(what, read=float):
    """Returns a figure of Table 5.2 by mode and number of copies, and the number of runs."""
    rows, runs = block("table-5.2")
    return {(mode, int(row[0])): read(cell) for row in rows[1:] if row[1] == what
            for mode, cell in zip(rows[0][2:], row[2:])}, runs


def measured_speeds():
    """Returns the speed of each CPU, the fastest being 8, and the number of runs."""
    rows, runs = block("speeds")
    return [float(row[rows[0].index("measured")]) for row in rows[1:]], runs


def vm_text(mode, copies, seconds, speeds):
    """
    The scenario of tests/vm's virtual machine: two packages of four cores, the same configuration, copies that take these
    seconds on a CPU of speed 8. As there, the nominal speeds give the CPUs of pinned copies, and the kernel's threads run on
    CPU 0 (nohz_full=1-7 of tests/vm/vm.py).
    """
    text = machine(EIGHT[0], ",".join(map(str, speeds)), "llc = 4\nnode = 1\n") + P.SCHEDULER + "housekeeping = 0\n" + P.ENGINE
    text += "[enforce]\nsettle = 0ms\nfork_holdoff = 0ms\n" + run_section("200s", alone=False)
    task = [f"serial {8 * seconds:.3f}G"]
    if mode != "pinned":
        return text + program("task", task, passes=1, count=copies)
    return text + "".join(program(f"task {cpu}", task, passes=1, count=n, affinity=cpu)
                          for cpu, n in enumerate(ideal(copies)) if n > 0)


def simulate(lab, mode, copies, seconds, speeds):
    """Returns by seed the turnaround and the end of the last copy, and the mean CPU time of a copy."""
    policy = MODES[mode]
    seeds = 1 if mode == "pinned" else P.SEEDS["vm"]
    result = lab.run(vm_text(mode, copies, seconds, speeds), [policy], seeds)[policy]
    counts = [n for n in ideal(copies) if n > 0] if mode == "pinned" else [copies]
    cpu = sum(n * p["cpu_time_s"]["mean"] for n, p in zip(counts, result["programs"])) / copies
    return result["turnaround_s"]["values"], result["total_s"]["values"], cpu


def task_seconds(lab, figures, counts, speeds):
    """The length of the task, from pinned copies only: nothing moves them, so that their times show it."""
    return mean([figures["pinned", n] / mean(simulate(lab, "pinned", n, 1, speeds)[0]) for n in counts])


# The suffix of a column with measured speeds, one CPU at a time.
AS_MEASURED = " (as measured)"
# Modes in which asymd steers; and the modes whose figures did not give the length of the task.
STEERED = [mode for mode, policy in MODES.items() if policy != "none"]
FREE = ["stock", *STEERED]

# The mean of a sample's range over the standard deviation, by the sample's size (normal distribution).
RANGE = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704, 8: 2.847, 9: 2.970, 10: 3.078}


def by_share(values, ends, slow_s):
    """
    Returns the mean of the values if this share of the seeds were those whose last copy ends so late that it was on the slowest CPU
    from its start: that of the trace. If all seeds are of one kind, the mean stays.
    """
    slow = [value for value, end in zip(values, ends) if end >= slow_s]
    others = [value for value, end in zip(values, ends) if end < slow_s]
    if not slow or not others:
        return mean(values)
    share = TRACE["first copy on the slowest CPU"] / TRACE["starts"]
    return share * mean(slow) + (1 - share) * mean(others)


class Held:
    """Compares turnaround in the virtual machine with the model's. kind: the speeds of the model; "" means nominal."""

    def __init__(self, lab):
        self.there, self.runs = measured("Turnaround s")
        self.ranges, _ = measured("Turnaround, from to", ends)
        self.counts = sorted({n for _, n in self.there})
        speeds, self.tasks = measured_speeds()
        self.speeds = {"": NOMINAL, AS_MEASURED: speeds}
        # Seconds of the task on the fastest CPU, by kind.
        self.seconds = {kind: task_seconds(lab, self.there, self.counts, s) for kind, s in self.speeds.items()}
        # By mode, kind and number of copies. cpu: mean CPU time of a copy, the source's Avg; cpu_there: of the same kind.
        self.here, self.strays, self.cpu = {}, {}, {}
        # Stock's mean turnaround if a copy is on the slowest CPU from start to end in as many starts as in the trace.
        self.shared = {}
        self.cpu_there, _ = measured("Avg s")
        for mode in MODES:
            for kind in self.speeds:
                for n in self.counts:
                    values, last, self.cpu[mode, kind, n] = simulate(lab, mode, n, self.seconds[kind], self.speeds[kind])
                    self.here[mode, kind, n] = mean(values)
                    if mode == "stock":
                        self.shared[kind, n] = by_share(values, last, 0.95 * 8 * self.seconds[kind] / min(self.speeds[kind]))
                    self.strays[mode, kind, n] = max(self.stray_there(mode, n),
                                                     1.96 * statistics.pstdev(values) / math.sqrt(self.runs))

    def stray_there(self, mode, n):
        """Returns the 95 % error of the mean of the runs, from their range."""
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
        """Says which modes' mean turnaround is within 15 %."""
        within = [mode for mode in FREE if abs(self.mean_off(mode, kind)) <= 0.15]
        beyond = [f"{mode} ({percent(self.mean_off(mode, kind), 0)})" for mode in FREE if mode not in within]
        return f"within 15 %: {', '.join(within) or 'none'}" + (f"; beyond: {', '.join(beyond)}" if beyond else "")


def ends(cell):
    return tuple(float(x) for x in cell.split(" to "))


def vm_row(lab):
    title = "The simulator against the kernel: copies of one task on eight speeds, in the virtual machine of tests/vm"
    held = Held(lab)
    target("in the virtual machine mean turnaround of stock and of each policy within 15 %",
           all(abs(held.mean_off(mode, AS_MEASURED)) <= 0.15 for mode in FREE),
           ", ".join(f"{mode} {percent(held.mean_off(mode, AS_MEASURED), 0)}" for mode in FREE) +
           f" at the speeds measured; chance alone is {100 * held.noise('stock', AS_MEASURED):.0f} % of stock's")
    return title, vm_said(held), vm_table(held), "\n".join(vm_why(held) + vm_single(held, AS_MEASURED) + vm_cpu(held, AS_MEASURED))


def vm_said(held):
    task = f"{held.seconds['']:.2f} s (as measured {held.seconds[AS_MEASURED]:.2f} s)"
    noise = ", as measured ".join(f"{100 * held.noise('stock', kind):.0f} %" for kind in held.speeds)
    return (f"Turnaround in seconds, the mean from start to end of a copy: measured there (Röhrich's Table 5.2, [kernel.md](kernel.md): {held.runs} runs of each) / ours, "
            f"{P.SEEDS['vm']} seeds (difference). The task takes {task} on the fastest CPU, by the copies that were pinned there; everything "
            "else is the configuration of `tests/vm/papers.py`. +-: how far the mean of as many runs strays by chance (95 %), "
            "by the model's spread or by that of the runs, whichever is wider, where that is above 5 %; of the stock "
            f"scheduler's mean turnaround it is {noise}.")


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
    table.append(["mean turnaround"] + [f"{there:.2f} / {here:.2f} ({percent(off, 0)})" for there, here, off in means])
    table.append(["mean difference"] + [percent(mean([held.off(mode, kind, n) for n in held.counts]), 0)
                                        for mode, kind in columns])
    return table


def span(values):
    return f"{percent(min(values), 0)} to {percent(max(values), 0)}"


def listed(counts):
    words = [str(n) for n in counts]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "no"


def agreed(trace, what):
    return f"{trace[f'{what} as the rules say']} of {trace[what]}"


def starts_text(trace):
    """Returns the sentences on where copies start; {traced} stands for a share that the caller knows."""
    boots = trace["boots"]
    right = agreed(trace, "choices of a node's CPU")
    slow = [boot.get("first copy on the slowest CPU", 0) for boot in boots]
    return ("Where copies start follows the kernel's rules for a fork (`lib/sim/sim-internal.h`), and `nohz_full=1-7` leaves the kernel's "
            "threads to CPU 0, the slowest. `rcu_preempt` runs there every 6 ms, so CPU 0 mostly is the CPU of its node that went "
            f"idle last, which the kernel prefers. A trace of {trace['starts']} starts in {len(boots)} boots (`./dev vm starts`) agrees with "
            f"the rules in {agreed(trace, 'choices of a node')} choices of a node and in "
            f"{right} choices of its CPU; why not in all, is open. "
            f"The first copy starts on CPU 0 in {sum(slow)} of the {trace['starts']} starts, and in half of the seeds. It depends on the boot: "
            f"of {boots[0]['starts']} starts in a boot there are {min(slow)} to {max(slow)}. The boot mostly decides which CPU starts the copies, and "
            "the model draws it. With the share of the trace, stock's mean turnaround would be off by {traced}. "
            "The measured runs are of one other boot, so chance is wider than +- says.")


with open(os.path.join(os.path.dirname(RESULTS), "kernel", "starts.json"), encoding="utf-8") as trace_file:
    TRACE = json.load(trace_file)
STARTS = starts_text(TRACE)


def vm_why(held):
    """Returns sentences about the means."""
    fitted = "Pinned does not count: the length of the task comes from it."
    speeds, seconds = held.speeds[AS_MEASURED], held.seconds[AS_MEASURED]
    slow = 8 * seconds / min(speeds)
    lines = [f"Mean turnaround on the machine as measured {held.verdict(AS_MEASURED)}. With the speeds that are set, "
             f"{held.verdict('')}. {fitted}",
             f"A task alone on each CPU, {held.tasks} runs of each ([kernel.md](kernel.md)), measures speeds of "
             f"{', '.join(f'{speed:.2f}' for speed in speeds)} where 1 to 8 are set; the simulator runs every mode with them. A copy "
             f"that stays on the slowest CPU takes {slow:.0f} s there, not {8 * held.seconds['']:.0f} s. The speeds and the "
             "length of the task come from these measurements, not from parameters.py."]
    traced = mean([held.shared[AS_MEASURED, n] for n in held.counts]) / held.means("stock", AS_MEASURED)[0] - 1
    lines.append(STARTS.format(traced=percent(traced, 0)))
    most = held.ranges["stock", 1][1]
    if most > slow:
        lines.append(f"The longest time of one copy under the stock scheduler, {most:.1f} s, differs by {percent(most / slow - 1, 0)} "
                     "from the time on the slowest CPU. It is one run, with the noise of one.")
    last = measured("Total s")[0].get(("stock", 8), 0)
    if 0 < last < slow:
        lines.append(f"Eight copies did better on the kernel: the last ended after {last:.1f} s on average, "
                     f"{slow - last:.0f} s before a copy that stays on the slowest CPU. The kernel sometimes moves a copy that has "
                     "a CPU to itself; the model never does.")
    return lines


def vm_single(held, kind):
    """Returns sentences about the single figures, at the speeds of that kind."""
    beyond = [n for n in held.counts if abs(held.there["stock", n] - held.here["stock", kind, n]) > held.strays["stock", kind, n]]
    lines = [f"Single figures{kind}: chance (+-) does not explain those of stock with {listed(beyond)} copies."]
    if 1 not in beyond:
        least, most = held.ranges["stock", 1]
        lines.append(f"(Chance explains that of one copy: its runs took {least:.1f} to {most:.1f} s.)")
    more = [n for n in held.counts if n > 2]
    there, here = held.means("stock", kind, more)
    apart = ", ".join(percent(held.off("stock", kind, n), 0) for n in more)
    lines.append(f"Stock's mean turnaround of {listed(more)} copies alone is {there:.2f} s / {here:.2f} s "
                 f"({percent(here / there - 1, 0)}): differences that make up for one another ({apart}).")
    longer = {(p, n): held.here[p, kind, n] / held.here[p, "", n] - 1 for p in STEERED for n in held.counts}
    p, n = max(longer, key=longer.get)
    lines.append(f"The policies take at most {100 * longer[p, n]:.0f} % longer on these speeds than on those that are set "
                 f"({p}, copies: {n}).")
    every = [held.off(p, kind, n) for p in STEERED for n in held.counts]
    one = [held.off(p, kind, 1) for p in STEERED]
    lines.append(f"Their figures differ by {span(every)}, those of one copy by {span(one)}; that of the pinned copy, which nothing "
                 f"moves, differs by {percent(held.off('pinned', kind, 1), 0)}.")
    return [" ".join(lines)]


def vm_cpu(held, kind):
    """Returns a sentence about Avg by CPU time, the source's."""
    off = {mode: mean([held.cpu[mode, kind, n] for n in held.counts]) /
           mean([held.cpu_there[mode, n] for n in held.counts]) - 1 for mode in FREE}
    return [f"Mean Avg by CPU time, the source's{kind}, is off by: " + ", ".join(f"{m} {percent(x, 0)}" for m, x in off.items()) + "."]


# The modes of the measured table of four CPUs of speed 1 and four of speed 2, as they stand in its first column.
BESIDE = ("stock", "pa", "serial-first")


def lab_row(lab):
    """Compares the CPU time of a serial program beside one of 8 threads with that in the virtual machine."""
    title = "The simulator against the kernel: a serial program beside 8 threads on four CPUs of speed 1 and four of speed 2"
    rows, runs = block("big-little")
    there = {row[0]: row[1:] for row in rows[1:]}
    text = machine("4,4", "1,2", "llc = 4\nnode = 1\n") + P.SCHEDULER + P.ENGINE + "[enforce]\nsettle = 0ms\nfork_holdoff = 0ms\n"
    text += run_section("20s", alone=False) + program("parallel", parallel("10M"), threads=8)
    text += program("serial", SERIAL)
    results = lab.run(text, BESIDE[1:], P.SEEDS["lab"])
    by_mode = {mode: [v / 2e9 for v in results[MODES.get(mode, mode)]["programs"][1]["performance"]["values"]] for mode in BESIDE}
    table = [["policy", "virtual machine", "from to", "ours", "from to", "difference"]]
    for mode, values in by_mode.items():
        measured_there = float(there[mode][0])
        table.append([mode, f"{measured_there:.2f}", there[mode][1], f"{mean(values):.2f}", f"{min(values):.2f} to {max(values):.2f}",
                      percent(mean(values) / measured_there - 1)])
    stray = 1.96 * statistics.pstdev(by_mode["stock"]) / math.sqrt(runs)
    return (title, f"Speed of the serial program, in units of a fast CPU: CPU time there ([kernel.md](kernel.md), {runs} runs of each), "
            f"instructions here ({P.SEEDS['lab']} seeds of 20 s).", table,
            "The stock scheduler gives the program a fast CPU, a slow one, or half of one, as chance has it, here and there. By the "
            f"model's spread the mean of {runs} such runs strays by {stray:.2f} (95 %).")


ROWS = [("vm", vm_row), ("lab", lab_row)]
