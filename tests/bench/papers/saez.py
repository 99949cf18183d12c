# SPDX-License-Identifier: GPL-2.0-or-later
"""Saez 2010: parallelism-aware scheduling on chips of fast and slow cores."""
import math
import re

import parameters as P
from common import absent, k10, mean, missing, percent, program, run_section

SAEZ = [("STCI-PSMI", "CI", "PS MI"), ("STCI-PSCI", "CI", "PS CI"), ("STCI-HPCI", "CI", "HP CI"),
        ("STMI-PSMI", "MI", "PS MI"), ("STMI-PSCI", "MI", "PS CI"), ("STMI-HPCI", "MI", "HP CI"),
        ("PSMI-PSCI", "PS MI", "PS CI"), ("PSMI-HPCI", "PS MI", "HP CI"), ("PSCI-HPCI", "PS CI", "HP CI")]
# Chips of four cores with an L3 and a memory of their own (its section 3): one fast core on a chip by itself and three
# chips of slow ones; four chips of one fast and three slow ones each; one such chip.
SAEZ_MACHINES = {"1FC-12SC": ("12,1", "1.15,2.3", "llc = 4\nnode = 1\n", 13),
                 "4FC-12SC": ("1,3,1,3,1,3,1,3", "2.3,1.15,2.3,1.15,2.3,1.15,2.3,1.15", "llc = 4\nnode = 1\n", 16)}
SAEZ_CHIP = ("3,1", "1.15,2.3", "llc = 4\n", 4)


def parallel_steps(kind, memory):
    serial = P.SEQUENTIAL[kind] * P.PARALLEL_WORK / P.PARALLEL_PHASES
    rest = (1 - P.SEQUENTIAL[kind]) * P.PARALLEL_WORK / P.PARALLEL_PHASES
    return [f"loop {P.PARALLEL_PHASES}", f"parallel {rest:.0f} chunk=2M memory={memory}",
            f"serial {serial:.0f} memory={memory}", "end"]


def saez_program(name, what, threads):
    kind = what.split()
    if len(kind) == 1:
        return program(name, P.SINGLE[kind[0]], passes=1, restart="yes")
    # GCC's libgomp spins for a while, then sleeps: adaptive (3.2).
    return program(name, parallel_steps(*kind), threads=threads, passes=1, restart="yes", spin="1ms")


def saez_text(shape, a, b):
    counts, speeds, more, cpus = shape
    first = 1 if len(a.split()) == 1 else cpus // 2
    text = k10(counts, speeds, more) + P.SCHEDULER + P.ENGINE + run_section("600s", "runs", alone=False) + P.MEMORY
    return text + saez_program("A", a, first) + saez_program("B", b, cpus - first)


def saez(lab):
    wanted = [p for p in ("pa", "mintlp", "rr", "busyfcs", "static-ipc") if lab.has(p)]
    table = [["workload", "machine"] + wanted]
    sums = {}
    for name, a, b in SAEZ:
        for m, shape in SAEZ_MACHINES.items():
            result = lab.run(saez_text(shape, a, b), wanted, P.SEEDS["saez"])
            line = [name, m]
            for p in wanted:
                gain = math.exp(mean([math.log(y["run_time_geometric_s"]["mean"] / x["run_time_geometric_s"]["mean"])
                                      for x, y in zip(result[p]["programs"], result["none"]["programs"])])) - 1
                sums.setdefault((m, p), []).append(gain)
                line.append(percent(gain))
            table.append(line)
    for m in SAEZ_MACHINES:
        table.append(["mean", m] + [percent(mean(sums[m, p])) for p in wanted])
    best = max(max(v) for (m, p), v in sums.items() if p == "pa")
    return ("Saez 2010, 3.3: multi-application workloads",
            "Speedup over Default: geometric means of completion times, programs restarted until each has run three "
            f"times; {P.SEEDS['saez']} seeds, stand-ins by class. Source: PA up to 40 % over Default, ahead of Static-IPC-"
            f"Driven and RR in mixed sets, MinTLP close to it. Ours: PA up to {percent(best)}.", table,
            why_saez(sums))


def why_saez(sums):
    """sums: gains by machine and policy, in the order of SAEZ."""
    cells = [(m, k) for m in SAEZ_MACHINES for k in range(len(SAEZ))]

    def gain(policy, cell):
        return sums[cell[0], policy][cell[1]]

    def named(cells, note=lambda cell: ""):
        return ", ".join(f"{SAEZ[k][0]} {m[:3]}{note((m, k))}" for m, k in cells) or "none"

    def apart(cell):
        return 100 * (gain("mintlp", cell) - gain("pa", cell))

    computing = [(m, k) for m, k in cells if "MI" not in SAEZ[k][1] + SAEZ[k][2]]
    level = {p: mean([gain(p, c) for c in computing]) for p in ("pa", "static-ipc")}
    memory = [c for c in cells if c not in computing]
    losing = [c for c in memory if gain("pa", c) < 0]
    before = [c for c in cells if gain("pa", c) > gain("static-ipc", c)]
    return WHY_SAEZ.format(
        ahead=sum(gain("pa", c) > gain("rr", c) for c in cells), all=len(cells), losing=named(losing), lost=len(losing),
        memory=len(memory), before=named(before),
        beyond=named([c for c in cells if abs(apart(c)) > 5], lambda c: f" ({apart(c):+.1f})"),
        count=len(before), pa=percent(level["pa"]), static=percent(level["static-ipc"]))


WHY_SAEZ = """PA gains most where the source has it gain, and is ahead of RR in {ahead} of {all} rows. MinTLP is within 5 points
of it but for {beyond}.
Of {memory} rows with a memory-bound program PA loses in {lost} ({losing}):
whom it moves to a fast core on another node has its memory behind it, by a rule of the model (see 3.4 below).
PA is ahead of Static-IPC-Driven in {count} of {all} rows ({before}).
With one fast core it is behind in the mean: that policy was told beforehand who gains there, and PA gives it to a
sequential phase whatever that gains. In the sets that only compute the two are level ({pa} and {static} over both
machines), and with four fast cores PA is ahead in the mean, as in the source. Our stand-ins of a class are alike, so that
the ranking is never wrong. How much of a program is sequential is known from the source only as above or below 7 %."""


def saez_waiting(lab):
    table = [["waiting", "source", "ours: PA over Default"]]
    text = k10(*SAEZ_MACHINES["1FC-12SC"][:3]) + P.SCHEDULER + P.ENGINE
    text += run_section("600s", "done", alone=False) + P.MEMORY
    source = {"sleep": "up to 40 %", "spin 1 ms": "up to 40 %", "spin for ever": "hardly any", "spin for ever, RTX": "as adaptive"}
    for name, keys in (("sleep", {"spin": "0ms"}), ("spin 1 ms", {"spin": "1ms"}), ("spin for ever", {"spin": "forever"}),
                       ("spin for ever, RTX", {"spin": "forever", "rtx": "yes"})):
        both = text + program("A", parallel_steps("PS", "CI"), threads=13, passes=3, **keys)
        result = lab.run(both, ["pa"], P.SEEDS["lab"])
        gain = result["none"]["programs"][0]["run_time_s"]["mean"] / result["pa"]["programs"][0]["run_time_s"]["mean"] - 1
        table.append([name, source[name], percent(gain)])
    return ("Saez 2010, 3.2: how a program's threads wait, and whether PA sees its sequential phases",
            "1FC-12SC, one partly sequential program (25 %) of 13 threads.", table,
            "The kernel, and so asymd, cannot tell a thread that spins from one that works: without RTX there is nothing "
            "to accelerate.")


def without(text, **keys):
    """The scenario with these keys of [scheduler] as given."""
    for key, value in keys.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.M)
    return text


def saez_overhead(lab):
    if absent(lab, "pa"):
        return missing("Saez 2010, 3.4", absent(lab, "pa"))
    table = [["program", "machine", "PA over Default", "moves a second", "lost by moving and cold caches",
              "lost by remote memory", "source: overhead"]]
    free = {"migrate_llc": "0us", "migrate_across": "0us", "migrate_node": "0us", "refill": "0"}
    for what in ("HP CI", "HP MI", "PS CI", "PS MI"):
        for name, (counts, speeds, more, cpus), source in (("1FC-3SC", SAEZ_CHIP, "about 0"),
                                                          ("1FC-12SC", SAEZ_MACHINES["1FC-12SC"], "up to 18 %")):
            times = []
            for keys, remote in (({}, 1.5), (free, 1.5), (free, 1)):
                text = k10(counts, speeds, more + f"remote = {remote}\n") + without(P.SCHEDULER, **keys) + P.ENGINE
                text += run_section("600s", "done", alone=False) + P.MEMORY
                text += program("A", parallel_steps(*what.split()), threads=cpus, passes=1, spin="1ms")
                result = lab.run(text, ["pa"], P.SEEDS["saez"])
                times.append(result["pa"]["programs"][0]["run_time_s"]["mean"])
                if len(times) == 1:
                    gain = result["none"]["programs"][0]["run_time_s"]["mean"] / times[0] - 1
                    moves = result["pa"]["migrations_per_s"]["mean"]
            table.append([what.replace(" ", ""), name, percent(gain), f"{moves:.1f}", percent(times[0] / times[1] - 1),
                          percent(times[1] / times[2] - 1), source])
    return ("Saez 2010, 3.4: what migrations cost", "One parallel program at a time, a thread a core, under PA; 1FC-3SC has its "
            "fast core on the chip of the slow ones, 1FC-12SC on a chip and node of its own. What is lost: run time over that "
            f"where moving, refilled caches, then remote memory, too, cost nothing; {P.SEEDS['saez']} seeds.", table, WHY_OVERHEAD)


WHY_OVERHEAD = """As in the source, nothing is lost on one chip, and what is lost depends on the other chip, not on how often a
thread moves: asymd looks every 100 ms and moves a thread about once a second, so that the moves and the caches they leave
cold cost next to nothing, whatever they cost each. What costs is memory that stays on the node where the thread first ran.
Up to 12 % but for PSMI, whose sequential quarter is nearly all misses (20 in 1000 instructions), every one of them remote on
the fast core, by a rule of the model: all of a thread's memory stays where it first ran. How it was spread in the source's
machine is not known."""

ROWS = [("saez", saez), ("waiting", saez_waiting), ("overhead", saez_overhead)]
