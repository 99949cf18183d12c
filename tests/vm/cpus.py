# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the speed of each CPU of the machine of eight speeds, by the task of Table 5.2 alone on the CPU, and what takes the
rest of its nominal speed. A row of papers.py; the simulator takes its machine from it."""
import collections
import io
import math
import pathlib
import re
import statistics
import time

import machines
import speeds
from lab import figures

MACHINE = "eight-speeds"
# Length of the task on the fastest CPU. On the slowest it takes eight times as long, more than 200 periods of its quota.
TASK_S = 1.0
NOMINAL = [max(states) / max(machines.MACHINES[MACHINE][-1]) * machines.CPUS for states in machines.MACHINES[MACHINE]]

# Length of a measurement without a task: it gives the cost of an idle CPU.
IDLE_S = 3
# One task: its seconds, the share of a core of the host that its CPU had meanwhile, and the interrupts a second of its CPU.
One = collections.namedtuple("One", "seconds host interrupts")


def host_seconds(threads):
    """CPU time of each of these threads of the host so far, in seconds."""
    return [int(pathlib.Path(f"/proc/{thread}/schedstat").read_text().split()[0]) / 1e9 for thread in threads]


class Watch(io.BytesIO):
    """Takes the output of a load as it comes. Several times a second it reads the CPU time of the guest's CPUs, until the load
    has ended."""

    def __init__(self, had, ended, clock=time.monotonic):
        super().__init__()
        self.had, self.ended, self.clock, self.samples = had, ended, clock, []

    def write(self, text):
        super().write(text)
        if not self.ended(self.getvalue().decode()):
            self.samples.append((self.clock(), self.had()))

    def rates(self, seconds):
        """CPU time a second of each CPU while the load ran: over so many seconds before the last sample."""
        inside = [sample for sample in self.samples if sample[0] > self.samples[-1][0] - seconds + 0.25]
        (begin, before), (end, after) = inside[0], inside[-1]
        return [(b - a) / (end - begin) if end > begin else math.nan for a, b in zip(before, after)]


def interrupts(text):
    """For each copy of /proc/interrupts in text: the time, from the line of /proc/uptime before it, and interrupts by CPU."""
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"(\d+\.\d+) \d+\.\d+", line):
            found.append((float(match[1]), [0] * machines.CPUS))
        elif match := re.match(r" *\w+: +((\d+ +){%d})" % machines.CPUS, line + " "):
            for cpu, n in enumerate(match[1].split()):
                found[-1][1][cpu] += int(n)
    return found


def watch(lab, threads, command, ended, took):
    """By CPU, host time and interrupts a second while the command runs; took gets the command's seconds from its output."""
    seen, look = Watch(lambda: host_seconds(threads), ended), "cat /proc/uptime /proc/interrupts"
    with lab.s.speeds():
        status = lab.s.guest.run(f"{look} && {command} && {look}", seen)
    text = seen.getvalue().decode()
    if status != 0:
        raise SystemExit(f"{command}: ends with status {status} and says:\n{text}")
    (begin, before), (end, after) = interrupts(text)
    seconds = took(text)
    return [One(seconds, host, (b - a) / (end - begin)) for host, a, b in zip(seen.rates(seconds), before, after)]


def task(lab, threads, cpu, millions):
    return watch(lab, threads, f"nice -n 10 /opt/load-copies 1 {millions} {cpu}", lambda text: "total=" in text,
                 lambda text: figures(text[text.index("total="):].splitlines()[0])["total"])[cpu]


def idle(lab, threads):
    return watch(lab, threads, f"sleep {IDLE_S}", lambda text: len(interrupts(text)) > 1, lambda text: IDLE_S)


def measure(lab, args):
    """By CPU, its tasks and its idle time. Each run goes over all CPUs, every other one in reverse, so that a host that becomes
    slower slows all of them."""
    threads = lab.s.guest.qemu.cpu_threads()
    lab.policy("stock")
    once = figures(lab.timed(f"/opt/load-copies 1 20 {machines.CPUS - 1}"))["total"]
    millions, found = max(1, round(20 * TASK_S / once)), {"task": [[] for _ in NOMINAL], "idle": [[] for _ in NOMINAL]}
    for n in range(args.runs):
        for cpu in sorted(range(machines.CPUS), reverse=n % 2 == 0):
            found["task"][cpu].append(task(lab, threads, cpu, millions))
        for cpu, one in enumerate(idle(lab, threads)):
            found["idle"][cpu].append(one)
        print(f"run {n + 1}, seconds: " + ", ".join(f"{each[-1].seconds:.2f}" for each in found["task"]), flush=True)
    return found


def restore(found):
    """Returns the measurements from lists, which named tuples become in a file."""
    return {kind: [[One(*one) for one in runs] for runs in each] for kind, each in found.items()}


def median(runs, key):
    return statistics.median(getattr(one, key) for one in runs)


def relative(tasks):
    """By CPU, the speed of each run, in units in which the median of the fastest CPU is its nominal speed."""
    unit = NOMINAL[-1] * median(tasks[-1], "seconds")
    return [[unit / one.seconds for one in runs] for runs in tasks]


def quota(cpu):
    """The share of a core of the host that this CPU is meant to have."""
    return speeds.HOST_CORES / machines.CPUS * NOMINAL[cpu] / statistics.mean(NOMINAL)


def had(runs, cpu):
    return median(runs, "host") / quota(cpu)


def work(tasks):
    """By CPU, its work in a second of host time, where the fastest does 1."""
    each = [1 / (median(runs, "seconds") * median(runs, "host")) for runs in tasks]
    return [one / each[-1] for one in each]


def show(found):
    yield ("| CPU | nominal | measured | from to | seconds | host time with the task, of its quota | idle | work a second of "
           "host time | interrupts a second with the task | idle |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    tasks, without = found["task"], found["idle"]
    for cpu, (runs, each, rest, did) in enumerate(zip(tasks, relative(tasks), without, work(tasks))):
        yield (f"| {cpu} | {NOMINAL[cpu]:.0f} | {statistics.median(each):.2f} | {min(each):.2f} to {max(each):.2f} "
               f"| {median(runs, 'seconds'):.2f} | {had(runs, cpu):.2f} | {had(rest, cpu):.2f} | {did:.2f} "
               f"| {median(runs, 'interrupts'):.0f} | {median(rest, 'interrupts'):.0f} |")
    yield ""
    yield from explain(tasks, without)


def explain(tasks, without):
    """Explains the speed that CPU 0 lacks: only CPU 0 has the guest's tick. Milliseconds are of host time."""
    shares, did = [had(runs, cpu) for cpu, runs in enumerate(tasks)], work(tasks)
    others = max(had(rest, cpu) for cpu, rest in enumerate(without) if cpu > 0)
    taken, rate = median(without[0], "interrupts"), median(tasks[0], "interrupts")
    price = 1000 * median(without[0], "host") / taken
    lacks = 1 - did[0] / statistics.median(did[1:])
    yield (f"Medians; speeds in units in which the fastest is {NOMINAL[-1]:.0f}. Every CPU has {min(shares):.2f} to "
           f"{max(shares):.2f} of its quota of the host's time, so a lack of time makes none slow. In a second of that time CPUs 1 to 7 do "
           f"{min(did[1:]):.2f} to {max(did[1:]):.2f} of the fastest's work, CPU 0 {did[0]:.2f}. With `nohz_full=1-7` the tick and "
           f"the housekeeping of the guest's kernel are on CPU 0: idle it takes {taken:.0f} interrupts a second and "
           f"{100 * had(without[0], 0):.0f} % of its quota, the others {100 * others:.0f} % at most of theirs.")
    yield (f"That is {price:.2f} ms an interrupt. Beside the task the quota stops CPU 0 most of the time, and it takes {rate:.0f} a "
           f"second, {100 * rate * price / 1000 / quota(0):.0f} % of its quota at that price. It does {100 * lacks:.0f} % less than "
           f"CPUs 1 to 7: if interrupts were the whole reason, one would cost {1000 * lacks * quota(0) / rate:.2f} ms.")
