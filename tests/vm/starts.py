#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces where the kernel starts copies of a task on the machine of Roehrich 2007, Table 5.2, in several boots of the guest, and
writes docs/data/kernel/starts.json. The simulator's rules for a new thread (lib/sim/sim-internal.h) are compared with it."""
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
N_COPIES, MILLIONS = 8, 20
TRACING = "/sys/kernel/tracing"
EVENTS = "sched/sched_switch sched/sched_wakeup sched/sched_wakeup_new"
BEGIN = (f"mountpoint -q {TRACING} || mount -t tracefs none {TRACING}; cd {TRACING}; echo 0 >tracing_on; echo 8192 >buffer_size_kb; "
         "echo global >trace_clock; "
         f"for event in {EVENTS}; do echo 1 >events/$event/enable; done; echo >trace; echo 1 >tracing_on")
END = f"echo 0 >{TRACING}/tracing_on; cat {TRACING}/trace >/host/trace"

LINE = re.compile(r"\s*(?P<task>.+)-\d+\s+\[(?P<cpu>\d+)\]\s+\S+\s+(?P<time>[\d.]+): (?P<event>sched_\w+): (?P<rest>.*)")
WAKEUP = re.compile(r"comm=(?P<comm>.+) pid=(?P<pid>\d+) prio=\d+ target_cpu=(?P<target>\d+)")
SWITCH = re.compile(r"prev_comm=.* prev_pid=(?P<prev>\d+) .* next_pid=(?P<next>\d+) ")

Choice = collections.namedtuple("Choice", "by comm pid source target idle since")


def choices(lines):
    """
    Yields each choice of a CPU for a new thread: the name of the thread that starts it, the new one's name and number, the CPU of the
    first, the chosen CPU, which CPUs were idle, and since when each was. A CPU for which a thread was woken is not idle. One without
    an event before counts as idle since ever.
    """
    idle, since = {cpu: True for node in NODES for cpu in node}, collections.defaultdict(float)
    for line in lines:
        match = LINE.fullmatch(line.rstrip("\n"))
        if not match:
            continue
        cpu, at = int(match["cpu"]), float(match["time"])
        if match["event"] == "sched_switch" and (switch := SWITCH.match(match["rest"] + " ")):
            idle[cpu], since[cpu] = switch["next"] == "0", at
        elif match["event"] != "sched_switch" and (woken := WAKEUP.match(match["rest"])):
            target = int(woken["target"])
            if match["event"] == "sched_wakeup_new":
                idle[cpu] = False
                yield Choice(match["task"].strip(), woken["comm"], int(woken["pid"]), cpu, target,
                             frozenset(each for each in idle if idle[each]), dict(since))
            idle[target] = False


def node_of(cpu):
    return next(node for node in NODES if cpu in node)


def wanted(choice):
    """The node that the rules choose, and whether it is another one than that of the thread that starts the new one."""
    home = node_of(choice.source)
    other = next(node for node in NODES if node is not home)
    moves = len(choice.idle.intersection(other)) > len(choice.idle.intersection(home))
    return (other if moves else home), moves


def counts(lines):
    """What one start of copies adds to the record."""
    found = collections.Counter({"starts": 1})
    starts = [choice for choice in choices(lines) if choice.comm == "load-copies" or choice.by == "load-copies"]
    placed = [choice for choice in starts if choice.by == "load-copies"]
    if len(placed) != N_COPIES:
        raise run.Wrong(f"the trace has {len(placed)} starts of copies, and {N_COPIES} were started")
    found["first copy on the slowest CPU"] += placed[0].target == SLOWEST
    found[f"copies started by a thread on CPU {placed[0].source}"] += 1
    for choice in placed:
        if not choice.idle:
            continue
        node, moves = wanted(choice)
        found["choices of a node"] += 1
        found["choices of a node as the rules say"] += choice.target in node
        if moves and choice.target in node:
            last = max(choice.idle.intersection(node), key=lambda cpu: choice.since.get(cpu, 0))
            found["choices of a node's CPU"] += 1
            found["choices of a node's CPU as the rules say"] += choice.target == last
    return found


def trace_boot(share, n_starts):
    """Counts of a guest that boots anew."""
    snapshot, found = pathlib.Path(share) / "boot.snapshot", collections.Counter()
    vm.save_snapshot(MACHINE, snapshot)
    with vm.Guest(MACHINE, share, 3600, snapshot=snapshot) as guest:
        guest.begin()
        lab = Lab(guest)
        lab.policy("stock")
        for _ in range(n_starts):
            lab.s.sh(BEGIN)
            lab.timed(f"/opt/load-copies {N_COPIES} {MILLIONS}")
            lab.s.sh(END)
            with open(pathlib.Path(share) / "trace", encoding="utf-8", errors="replace") as lines:
                found += counts(lines)
        return found, lab.s.sh("uname -r")


def main():
    parser = argparse.ArgumentParser(prog="./dev vm starts", description=__doc__)
    parser.add_argument("--boots", type=int, default=6)
    parser.add_argument("--starts", type=int, default=20, help="of each boot")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    vm.stop_on_signals()
    boots = []
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        run.stage(args.build, pathlib.Path(share))
        for n in range(args.boots):
            found, kernel = trace_boot(share, args.starts)
            boots.append(dict(sorted(found.items())))
            print(f"boot {n + 1} of {args.boots}: {json.dumps(boots[-1])}", flush=True)
    total = sum(map(collections.Counter, boots), collections.Counter())
    about = {"what": "where copies start in the machine of tests/vm, traced with sched_wakeup_new and sched_switch",
             "measured": f"./dev vm starts, {datetime.date.today()}, Linux {kernel}: {N_COPIES} copies in each start"}
    RECORD.write_text(json.dumps(about | dict(sorted(total.items())) | {"boots": boots}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
