#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What policies give programs, and what they cost the machine, on a kernel: in the guest, on four fast CPUs and four of half their
speed, stock and policies in turn in one boot. Writes the rows that it measured into docs/data/real.md."""
import argparse
import collections
import datetime
import json
import pathlib
import re
import statistics
import tempfile
import time

import programs
import run
import vm
from boost import build_module, hurry
from lab import Lab, figures

DATA = pathlib.Path(__file__).resolve().parents[2] / "docs" / "data"
PAGE, RECORD = DATA / "real.md", DATA / "kernel" / "real.json"
SPEEDS = "500,500,500,500,1000,1000,1000,1000"
CONFIG = """[asymd]
policy = {policy}
cpu_budget = 100"""
MODES = ("stock", "pa", "serial-first", "asym")
# Before it begins, asymd has seen the programs for some plans.
SKIP_MS, SECONDS = 4000, 6
# Only a guest that hangs takes so much longer than a row.
HANGS_S = 60
# autogroup: whether each session is a scheduling group of its own. figure: the program's figure that is compared, and its unit. on: the
# CPUs of the program; "": all.
Row = collections.namedtuple("Row", "title other program figure autogroup seconds modes on", defaults=(0, SECONDS, MODES, ""))
HOGS, GAME, GAME_60 = "hog 8", "frames 6 6000 6000 1000 0 0", "frames 6 8000 6000 500 16667 0"
GAME_SLEEPS = "frames 6 8000 6000 500 0 8000"
FPS, SPEED = ("fps", "frames a second"), ("work", "speed, of a fast CPU")
BESIDE = "beside 8 busy threads"
ALONE = ("stock", "asym")
# asymd runs on CPU 0, for a tenth of the time and more: an emulated CPU takes about 15 times as long for a sample.
NOT_ASYMD = "1-7"
BUILD, BARRIERS = "make 8 400000 1200000", "barrier 8 150000"
WAKES, LATE = "wakes 1 1000", ("late", "99 % of its latencies are below, us")
ROWS = {
    "frames": Row(f"frame loop of 6 threads {BESIDE}", HOGS, GAME, FPS),
    "frames-60": Row(f"the same with sleep to 60 Hz {BESIDE}", HOGS, GAME_60, FPS),
    "frames-sleep": Row(f"the same with sleep of 8 ms {BESIDE}", HOGS, GAME_SLEEPS, FPS),
    "serial": Row(f"serial program {BESIDE}", HOGS, "hog 1", SPEED),
    "build": Row("serial program beside a build of short processes", BUILD, "hog 1", SPEED),
    "barriers": Row("8 threads with barriers, 300 ms on a slow CPU", "", BARRIERS, ("rounds", "rounds"), 0, 8),
    "barriers-1000": Row("the same with 1000 ms", "", "barrier 8 500000", ("rounds", "rounds"), 0, 15),
    "frames-autogroup": Row(f"frame loop of 6 threads {BESIDE}, autogroup on", HOGS, GAME, FPS, 1),
    "frames-60-autogroup": Row(f"the same with sleep to 60 Hz {BESIDE}, autogroup on", HOGS, GAME_60, FPS, 1),
    "frames-sleep-autogroup": Row(f"the same with sleep of 8 ms {BESIDE}, autogroup on", HOGS, GAME_SLEEPS, FPS, 1),
    "latency": Row(f"thread that sleeps for 1 ms, in the manner of cyclictest, {BESIDE}", HOGS, WAKES, LATE, 0, SECONDS, ALONE, NOT_ASYMD),
    "latency-build": Row("the same beside a build of short processes", BUILD, WAKES, LATE, 0, SECONDS, ALONE, NOT_ASYMD),
    "latency-barriers": Row("the same beside 8 threads with barriers", BARRIERS, WAKES, LATE, 0, SECONDS, ALONE, NOT_ASYMD),
    "busy": Row("4 busy threads alone", "", "hog 4", SPEED, 0, 60, ALONE),
    "equals": Row("8 busy threads alone", "", "hog 8", SPEED, 0, 60, ALONE),
    "idle": Row("idle machine", "", "", None, 0, 60, ALONE),
}
# asymd stays on a slow CPU: a sample takes an emulated CPU 15 times as long, and would take a fast one from the programs.
SCRIPT = """echo $BASHPID >/sys/fs/cgroup/cgroup.procs
echo {autogroup} >/proc/sys/kernel/sched_autogroup_enabled
at() {{ read -r now _ </proc/uptime; echo $((10#${{now/./}} * 10 + $1)); }}
rest() {{ local left=$(($1 - $(at 0))); [ $left -le 0 ] || sleep ${{left}}e-3; }}
asymd=$(pidof asymd) && for p in $(pidof asymd asymd-helper); do taskset -ap 1 $p; done >/dev/null
state() {{
    [ -n "$asymd" ] || return
    set -- $1 $(asymctl status --json | grep -oE '"changes": *[0-9]+' | grep -oE '[0-9]+') $(cut -d' ' -f14,15 /proc/$asymd/stat)
    echo "state $1 $(at 0) $2 $(($3 + $4))"
}}
begin=$(at {skip}) end=$((begin + {seconds} * 1000))
start() {{ [ -z "$2" ] || setsid $3 /opt/load-burn $begin $end $2 >/run/$1 & }}
rm -f /run/other /run/program
start other "{other}"
sleep 0.3
start program "{program}" "{on}"
rest $((begin - 400)); state begin; rest $end; state end
wait
for each in program other; do echo $each: $(cat /run/$each 2>/dev/null); done
"""
TEXT = """# Programs on a kernel

Written by `./dev vm real` ({measured}): the guest of tests/vm, four fast CPUs and four of half their speed, stock and policies in turn in
one boot, with the default configuration. The threads run by tests/vm/burn, whose CPUs halt meanwhile, so that a busy host delays little. A figure is the mean of the runs; a policy's gain is against stock in the same turn, with the range of the runs. The machine's
work is that of both programs, in fast CPUs of six. asymd's own time is that of an emulated CPU, which takes about 15 times as long;
asymd stays on CPU 0, a slow one. docs/data/kernel/real.json has all values. What stands below the table is written by hand.

"""
PROGRAMS_TEXT = """
Debian's programs, alone, in the same guest. They compute, so a CPU has its speed as a share of a host's core, and a busy host changes
the figures. A gain is that of the rate, or of the time, against stock in the same turn, with the range of the runs. asymd's own time
is that of an emulated CPU, about 15 times as much as on a real one; what it takes is missing from the program.
"""
NOTES = "\n## "
HEAD = f"| row | figure | {' | '.join(MODES)} | runs |\n|{' --- |' * (len(MODES) + 3)}"


def parse(text):
    """The figures of both programs, the machine's work, and what asymd did a second."""
    found = {}
    for name in ("program", "other"):
        found[name] = figures(next(line for line in text.splitlines() if line.startswith(f"{name}:")))
    found["work"] = sum(found[name].get("work", 0) for name in ("program", "other"))
    states = [list(map(int, each)) for each in re.findall(r"^state \w+ (\d+) (\d+) (\d+)$", text, re.MULTILINE)]
    if len(states) == 2:
        (begun, changes, ticks), (ended, more_changes, more_ticks) = states
        seconds = (ended - begun) / 1000
        found["changes"], found["cost"] = (more_changes - changes) / seconds, (more_ticks - ticks) / seconds
    return found


def measure(lab, name, mode):
    lab.policy(mode, CONFIG)
    if name in programs.PROGRAMS:
        lab.s.guest.deadline = time.monotonic() + programs.HANGS_S
        return programs.measure(lab.s, programs.PROGRAMS[name])
    row = ROWS[name]
    on = f"taskset -c {row.on}" if row.on else ""
    command = SCRIPT.format(autogroup=row.autogroup, skip=SKIP_MS, seconds=row.seconds, other=row.other, program=row.program, on=on)
    lab.s.guest.deadline = time.monotonic() + row.seconds + HANGS_S
    text = lab.s.sh(command)
    found = parse(text)
    if row.program and row.figure[0] not in found["program"]:
        raise run.Wrong(f"the program says nothing: {text}")
    return found


def collect(lab, names, runs):
    """Measures the rows. Yields the name of each row with its runs by mode after each of its turns."""
    found = {name: {mode: [] for mode in (ROWS[name].modes if name in ROWS else programs.MODES)} for name in names}
    for turn in range(runs):
        for name, each in found.items():
            modes = list(each)
            for mode in modes[turn % len(modes):] + modes[:turn % len(modes)]:
                one = measure(lab, name, mode)
                each[mode].append(one)
                print(time.strftime("%H:%M:%S"), name, mode, json.dumps(one), flush=True)
            yield name, each


def spread(values, form):
    span = f" ({form.format(min(values))} to {form.format(max(values))})" if len(values) > 1 else ""
    return form.format(statistics.mean(values)) + span


def gains(runs, value):
    """Yields a cell for each mode: its mean, and a policy's gain against stock in the same turn."""
    stock = [value(one) for one in runs["stock"]]
    for mode in MODES:
        mine = [value(one) for one in runs.get(mode, [])]
        if mode == "stock":
            yield spread(mine, "{:.2f}")
        elif mine:
            gain = spread([100 * (each / base - 1) for each, base in zip(mine, stock)], "{:+.1f}")
            yield f"{statistics.mean(mine):.2f}: {gain} %"
        else:
            yield ""


def plain(runs, value, form):
    """Yields a cell for each mode; an empty one where nothing was measured."""
    for mode in MODES:
        values = [value(one) for one in runs.get(mode, [])]
        yield spread(values, form) if values and None not in values else ""


def lines(name, runs):
    """Yields the lines of a row of the page."""
    row = ROWS[name]
    n = min(map(len, runs.values()))
    runs = {mode: each[:n] for mode, each in runs.items()}

    def line(title, figure, cells):
        return f"| {title} | {figure} | {' | '.join(cells)} | {n} |"

    if row.program:
        yield line(f"{name}: {row.title}", row.figure[1], gains(runs, lambda one: one["program"][row.figure[0]]))
        yield line("", "machine's work", gains(runs, lambda one: one["work"]))
    if "fps" in (row.figure or ()):
        yield line("", "99 % frame time, ms", plain(runs, lambda one: one["program"]["p99"], "{:.1f}"))
    yield line("" if row.program else f"{name}: {row.title}", "changes a second", plain(runs, lambda one: one.get("changes"), "{:.2f}"))
    yield line("", "asymd's own time, % of CPU 0", plain(runs, lambda one: one.get("cost"), "{:.1f}"))


def page(record):
    rows = [line for name in ROWS if name in record for line in lines(name, record[name]["runs"])]
    real = [programs.line(name, record[name]["runs"]) for name in programs.PROGRAMS if name in record]
    measured = sorted({record[name]["about"] for name in record})
    text = TEXT.format(measured="; ".join(measured)) + "\n".join([HEAD, *rows]) + "\n"
    return text + ("\n".join([PROGRAMS_TEXT, programs.HEAD, *real]) + "\n" if real else "")


def write(name, about, runs):
    """Keeps the row in the record, and writes the page from the record: rows that were not measured stay."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record[name] = {"about": about, "runs": runs}
    text = ",\n".join(f'"{name}": {json.dumps(record[name])}' for name in (*ROWS, *programs.PROGRAMS) if name in record)
    RECORD.write_text(f"{{\n{text}\n}}\n")
    notes = PAGE.read_text().partition(NOTES)[2] if PAGE.exists() else ""
    PAGE.write_text(page(record) + (NOTES + notes if notes else ""))


def prepare_burn(lab):
    hurry(lab.s.guest.qemu.process.pid)
    lab.s.sh(f"insmod burn.ko speed={SPEEDS}")


def prepare_programs(lab):
    """They have the CPU time of the host that the speeds of the guest's CPUs say: no other priority."""
    for archive in programs.PACKS:
        lab.s.unpack(archive)
    lab.s.sh(programs.PREPARE)


def main():
    parser = argparse.ArgumentParser(prog="./dev vm real", description=__doc__)
    parser.add_argument("--only", choices=(*ROWS, *programs.PROGRAMS), action="append", metavar="ROW",
                        help=f"may be repeated; of {', '.join((*ROWS, *programs.PROGRAMS))}")
    parser.add_argument("--runs", type=int, default=5, help="turns of each row (default: %(default)s)")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.only or (*ROWS, *programs.PROGRAMS)
    vm.stop_on_signals()
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        share = pathlib.Path(share)
        run.stage(args.build, share)
        about = f"{datetime.date.today()}, Linux {build_module(share)}"
        for prepare, kind, machine in ((prepare_burn, ROWS, "burn"), (prepare_programs, programs.PROGRAMS, "big-little")):
            chosen = [name for name in names if name in kind]
            if not chosen:
                continue
            for archive in programs.PACKS if kind is programs.PROGRAMS else ():
                run.fetch(archive, share)
            with vm.Guest(machine, share, 4 * 3600) as guest:
                guest.begin()
                lab = Lab(run.Scenario(guest).install())
                prepare(lab)
                for name, runs in collect(lab, chosen, args.runs):
                    write(name, about, runs)


if __name__ == "__main__":
    main()
