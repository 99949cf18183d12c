#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces where the kernel starts copies of a task on the machine of Roehrich 2007, Table 5.2, in several boots of the guest, and
writes docs/data/kernel/starts.json, unless fewer are asked for. It compares each choice with the simulator's rules for a new thread
(lib/sim/sim-internal.h)."""
import argparse
import collections
import datetime
import json
import pathlib
import re
import sys
import tempfile

import run
import vm
from lab import Lab

MACHINE = "eight-speeds"
RECORD = pathlib.Path(__file__).resolve().parents[2] / "docs" / "data" / "kernel" / "starts.json"
# The nodes of the machine: a new thread is placed in one of them first.
NODES = (range(4), range(4, 8))
SLOWEST = 0
N_COPIES, MILLIONS = 8, 100
BOOTS, STARTS = 6, 20
TRACING = "/sys/kernel/tracing"
EVENTS = "sched/sched_switch sched/sched_wakeup sched/sched_wakeup_new"
BEGIN = (f"mountpoint -q {TRACING} || mount -t tracefs none {TRACING}; cd {TRACING}; echo 0 >tracing_on; echo 8192 >buffer_size_kb; "
         "echo global >trace_clock; "
         f"for event in {EVENTS}; do echo 1 >events/$event/enable; done; echo >trace; echo 1 >tracing_on")
END = f"echo 0 >{TRACING}/tracing_on; cat {TRACING}/trace >/host/trace"

LINE = re.compile(r"\s*(?P<task>.+)-\d+\s+\[(?P<cpu>\d+)\]\s+\S+\s+(?P<time>[\d.]+): (?P<event>sched_\w+): (?P<rest>.*)")
WOKEN = re.compile(r"comm=.+ pid=\d+ prio=-?\d+ target_cpu=(?P<target>\d+)")
SWITCH = re.compile(r"prev_comm=.* next_pid=(?P<next>\d+) ")
LOST = re.compile(r"LOST \d+ EVENTS|entries-in-buffer/entries-written: (?P<kept>\d+)/(?P<written>\d+)")

Choice = collections.namedtuple("Choice", "by source target idle since")

# What a start adds to the record.
FIRST, SOURCE = "first copy on the slowest CPU", "copies started by a thread on CPU {}"
OF_NODE, OF_CPU, RIGHT = "choices of a node", "choices of a node's CPU", " as the rules say"
KEYS = ("starts", FIRST, *(SOURCE.format(cpu) for node in NODES for cpu in node),
        *(f"{what}{right}" for what in (OF_NODE, OF_CPU) for right in ("", RIGHT)))


def check_whole(line):
    lost = LOST.search(line)
    if lost and (lost["kept"] is None or lost["kept"] != lost["written"]):
        raise run.Wrong(f"the trace has lost events: {line.strip()}")


def choices(lines):
    """
    Yields each choice of a CPU for a new thread: the name of the thread that starts it, that one's CPU, the chosen CPU, which CPUs were
    idle, and since when each was. A CPU for which a thread was woken is not idle. One without an event before counts as idle, and
    has no time.
    """
    idle, since = {cpu: True for node in NODES for cpu in node}, {}
    for line in lines:
        check_whole(line)
        match = LINE.fullmatch(line.rstrip("\n"))
        if not match:
            continue
        cpu, at = int(match["cpu"]), float(match["time"])
        if match["event"] == "sched_switch" and (switch := SWITCH.match(match["rest"] + " ")):
            idle[cpu], since[cpu] = switch["next"] == "0", at
        elif match["event"] != "sched_switch" and (woken := WOKEN.match(match["rest"])):
            target = int(woken["target"])
            if match["event"] == "sched_wakeup_new":
                idle[cpu] = False
                yield Choice(match["task"].strip(), cpu, target, frozenset(each for each in idle if idle[each]), dict(since))
            idle[target] = False


def node_of(cpu):
    return next(node for node in NODES if cpu in node)


def wanted(choice):
    """The node that the rules choose, and whether it is another one than that of the thread that starts the new one."""
    home = node_of(choice.source)
    other = next(node for node in NODES if node is not home)
    moves = len(choice.idle.intersection(other)) > len(choice.idle.intersection(home))
    return (other if moves else home), moves


def last_idle(choice, node):
    """The CPUs of the node that went idle last: those that are idle since before the trace are equal."""
    times = {cpu: choice.since.get(cpu, 0) for cpu in choice.idle.intersection(node)}
    return {cpu for cpu, time in times.items() if time == max(times.values())}


def counts(lines):
    """What one start of copies adds to the record."""
    found = dict.fromkeys(KEYS, 0)
    placed = [choice for choice in choices(lines) if choice.by == "load-copies"]
    if len(placed) != N_COPIES:
        raise run.Wrong(f"the trace has {len(placed)} starts of copies, and {N_COPIES} were started")
    found["starts"] += 1
    found[FIRST] += placed[0].target == SLOWEST
    found[SOURCE.format(placed[0].source)] += 1
    for choice in placed:
        if not choice.idle:
            continue
        node, moves = wanted(choice)
        found[OF_NODE] += 1
        found[OF_NODE + RIGHT] += choice.target in node
        if moves and choice.target in node:
            found[OF_CPU] += 1
            found[OF_CPU + RIGHT] += choice.target in last_idle(choice, node)
    return found


def add(records):
    return {key: sum(record[key] for record in records) for key in KEYS}


def trace_boot(share, n_starts):
    """The counts of a guest that boots anew, and its kernel."""
    snapshot, found = pathlib.Path(share) / "boot.snapshot", []
    vm.save_snapshot(MACHINE, snapshot)
    with vm.Guest(MACHINE, share, 3600, snapshot=snapshot) as guest:
        guest.begin()
        lab = Lab(run.Scenario(guest).install())
        lab.policy("stock")
        for _ in range(n_starts):
            lab.s.sh(BEGIN)
            lab.timed(f"/opt/load-copies {N_COPIES} {MILLIONS}")
            lab.s.sh(END)
            with open(pathlib.Path(share) / "trace", encoding="utf-8", errors="replace") as lines:
                found.append(counts(lines))
        return add(found), lab.s.sh("uname -r")


def record(boots, kernel):
    about = {"what": "where copies start in the machine of tests/vm, traced with sched_switch, sched_wakeup and sched_wakeup_new",
             "measured": f"./dev vm starts, {datetime.date.today()}, Linux {kernel}: {N_COPIES} copies in each start"}
    return about | add(boots) | {"boots": boots}


def main():
    parser = argparse.ArgumentParser(prog="./dev vm starts", description=__doc__)
    parser.add_argument("--boots", type=int, default=BOOTS)
    parser.add_argument("--starts", type=int, default=STARTS, help="of each boot")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    vm.stop_on_signals()
    boots, kernel = [], ""
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        run.stage(args.build, pathlib.Path(share))
        for n in range(args.boots):
            found, kernel = trace_boot(share, args.starts)
            boots.append(found)
            print(f"boot {n + 1} of {args.boots}: {json.dumps({key: value for key, value in found.items() if value})}", flush=True)
    if args.boots < BOOTS or args.starts < STARTS:
        print(f"{RECORD.name} stays: it has {BOOTS} boots of {STARTS} starts")
    else:
        RECORD.write_text(json.dumps(record(boots, kernel), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
