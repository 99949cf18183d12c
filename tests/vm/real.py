#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What policies give programs, and what they cost the machine, on a kernel: in the guest, on four fast CPUs and four of half their
speed, stock and policies in turn in one boot; on arm64 the kernel knows which CPUs are fast. Writes the rows that it measured into
docs/data/real.md; with the kernel of Debian sid, stock, asym and schedulers of sched_ext into docs/data/head-to-head.md."""
import argparse
import collections
import contextlib
import datetime
import json
import pathlib
import re
import statistics
import tempfile
import time

import machines
import programs
import run
import vm
from boost import build_module, hurried
from lab import Lab, figures

DATA = pathlib.Path(__file__).resolve().parents[2] / "docs" / "data"
# Per mille of the fastest, by machine and CPU.
SPEEDS = {machine: (500,) * 4 + (1000,) * 4 for machine in ("burn", "arm64")} | {"burn-eight": tuple(125 * (cpu + 1) for cpu in range(8))}
CONFIG = """[asymd]
policy = {policy}
cpu_budget = 100"""
MODES = ("stock", "pa", "serial-first", "asym")
SKIP_MS, SECONDS = 4000, 6
# Only a guest that hangs takes so much longer than a row.
HANGS_S = 60
# Schedulers of sched_ext, with their own defaults. The kernel's verifier takes an emulated CPU 40 s for scx_lavd.
SCHEDULERS, STARTS_S = ("scx_lavd", "scx_bpfland"), 200
START_SCHEDULER = """systemd-run -q --collect --unit=scx /opt/scx/ld-linux-x86-64.so.2 --library-path /opt/scx /opt/scx/{name}
for ((i = 0; i < 300; i++)); do grep -qx enabled /sys/kernel/sched_ext/state && exec cat /sys/kernel/sched_ext/root/ops; sleep 0.5; done
journalctl --sync; journalctl -u scx --no-pager; exit 1"""
# The kernel ends one that lets a thread wait for long.
STOP_SCHEDULER = "grep -x enabled /sys/kernel/sched_ext/state && systemctl stop scx"
PEERS = ("stock", "asym", *SCHEDULERS)
# autogroup: whether each session is a scheduling group of its own. figure: the program's figure that is compared, and its unit. on: the
# CPUs of the program; "": all. scope: the cgroup of both programs, with the controller cpu; "": the root.
# skip_ms: before it begins, asymd has seen the programs for some plans.
Row = collections.namedtuple("Row", "title other program figure autogroup seconds modes on machine skip_ms scope",
                             defaults=(0, SECONDS, MODES, "", "burn", SKIP_MS, ""))
HOGS, GAME, GAME_60 = "hog 8", "frames 6 6000 6000 1000 0 0", "frames 6 8000 6000 500 16667 0"
GAME_SLEEPS = "frames 6 8000 6000 500 0 8000"
FPS, SPEED = ("fps", "frames a second"), ("work", "speed, of a fast CPU")
BESIDE = "beside 8 busy threads"
ALONE = ("stock", "asym")
# asymd runs on CPU 0, for a tenth of the time and more: an emulated CPU takes about 15 times as long for a sample.
NOT_ASYMD = "1-7"
BUILD, BARRIERS = "make 8 400000 1200000", "barrier 8 150000"
WAKES, LATE = "wakes 1 1000", ("late", "99 % of its latencies are below, us")
# Röhrich, Table 5.2: the Total is at most 1.10 T*, so the speed until the last one has ended is at least this part of the most possible.
COPIES = {n: Row(f"{n} copies of a serial program of 6 s, CPUs of eight speeds; at most {min(n, 8) * (17 - min(n, 8)) / 16:.2f}", "",
                 f"copies {n} 6000000", ("work", "speed until the last has ended, in fast CPUs"), 0, 24, ALONE, "", "burn-eight")
          for n in (1, 2, 4, 8, 12)}
# What asym loses without one of its steps: an option that switches it off.
ABLATED = ("asym", "asym boost=0", "asym budget=0%", "asym fluid=0%")
# By what asymd observes: samples of /proc, and counts of BPF programs.
OBSERVERS = ("stock", "asym asymd.observer=procfs", "asym asymd.observer=bpf")
AUTO = ("stock", "auto")
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
    **{f"copies-{n}": row for n, row in COPIES.items()},
}
ROWS |= {f"arm64-{name}": row._replace(modes=AUTO, machine="arm64") for name, row in ROWS.items() if row.machine == "burn"}
ROWS |= {f"{name}-login": ROWS[name]._replace(title=f"{ROWS[name].title}, in two sessions of a login", autogroup=1, scope="session-1.scope")
         for name in ("frames-60", "frames-sleep")}
ROWS |= {f"{name}-without": ROWS[name]._replace(modes=ABLATED) for name in ("frames", "frames-60", "build")}
ROWS |= {f"{name}-observers": ROWS[name]._replace(modes=OBSERVERS)
         for name in ("frames", "frames-60", "frames-sleep", "serial", "build", "barriers", "barriers-1000", "latency")}
ROWS["phases-observers"] = Row("8 threads alone, who wait asleep; 30 % of the work is serial, 20 ms at a time", "",
                               "frames 8 20000 373000 46600 0 0", FPS, modes=OBSERVERS)
# As OpenMP's threads wait: they sleep, spin for 200 us and then sleep, or spin. In the last case the program may report it (RTX).
# asymd's own time alone delays a barrier: none observes, and steers nothing. asym tries turns for some seconds.
WAITING = ("stock", "none", "pa", "asym asymd.observer=procfs", "asym asymd.observer=bpf")
TRIED_MS = 15000
WAITS = {"sleep": ("asleep", "0 0"), "mixed": ("awake for 200 us, then asleep", "200 0"), "spin": ("awake", "-1 0"),
         "spin-rtx": ("awake, and report it", "-1 1")}
ROWS |= {f"wait-{ms}-{kind}": Row(f"8 threads with barriers, {ms} ms on a slow CPU, which wait {how}", "", f"barrier 8 {ms * 500} {numbers}",
                                  ("rounds", "rounds"), 0, 8 if ms < 1000 else 15, WAITING, skip_ms=TRIED_MS if ms < 100 else SKIP_MS)
         for ms in (1, 10, 100, 1000) for kind, (how, numbers) in WAITS.items()}
ROWS |= {f"{name}-peers": ROWS[name]._replace(modes=PEERS) for name in ("frames", "frames-60", "frames-sleep", "serial", "build")}
ROWS |= {f"{name}-eight": ROWS[name]._replace(title=f"{ROWS[name].title}, CPUs of eight speeds", machine="burn-eight")
         for name in ("frames-peers", "serial-peers")}
# The programs that are measured beside schedulers of sched_ext, too.
BESIDE_PEERS = ("make",)
# asymd stays on a slow CPU: a sample takes an emulated CPU 15 times as long, and would take a fast one from the programs.
SCRIPT = """cd /sys/fs/cgroup && mkdir -p ./{scope} && echo {sign}cpu >cgroup.subtree_control && echo $BASHPID >./{scope}/cgroup.procs || exit 1
echo {autogroup} >/proc/sys/kernel/sched_autogroup_enabled
at() {{ read -r now _ </proc/uptime; echo $((10#${{now/./}} * 10 + $1)); }}
rest() {{ local left=$(($1 - $(at 0))); [ $left -le 0 ] || sleep ${{left}}e-3; }}
asymd=$(pidof asymd) && for p in $(pidof asymd asymd-helper); do taskset -ap 1 $p; done >/dev/null
state() {{
    [ -n "$asymd" ] || return
    set -- $1 $(asymctl status --json | grep -oE '"changes": *[0-9]+' | grep -oE '[0-9]+') $(cut -d' ' -f14,15 /proc/$asymd/stat)
    echo "state $1 $(at 0) $2 $(($3 + $4))"
}}
begin=$(at {skip_ms}) end=$((begin + {seconds} * 1000))
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
PEERS_TEXT = """# Beside schedulers of sched_ext

Written by `./dev vm head-to-head` ({measured}): a guest with the kernel of Debian sid, four fast CPUs and four of half their speed, or
CPUs of eight speeds, an eighth of the fastest to the fastest. Stock, asym and the schedulers are measured in turn in one boot of a machine, with their default
configurations. The schedulers have the CPUs' speeds from cpufreq, as asymd has. The threads run by tests/vm/burn, whose CPUs halt meanwhile, so that a busy
host delays little. A figure is the mean of the runs; a gain is against stock in the same turn, with the range of the runs. The machine's work is that of both
programs, in fast CPUs: six at most, and 4.5 on eight speeds. An emulated CPU takes about 15 times as long as a real one for what the kernel, a scheduler or asymd does itself;
asymd stays on CPU 0, the slowest. docs/data/kernel/head-to-head.json has all values. What stands below the tables is written by hand.

"""
NOTES = "\n## "
# By the guest's kernel: the name of the page, and how it begins.
Page = collections.namedtuple("Page", "name text")
PAGES = {"": Page("real", TEXT), "sid": Page("head-to-head", PEERS_TEXT)}
WITHOUT_TEXT = """
What asym loses without one of its steps; gains are against the first column: `boost=0`: no nice boost; `budget=0%`: no CPU alone, no core
with an idle sibling; `fluid=0%`: sleepers of the crowd keep to a core type.

"""
OBSERVERS_TEXT = """
By what asymd observes: samples of /proc (`procfs`), or counts of BPF programs at each switch of a thread, and an early plan when a
program has come down to one runnable thread (`bpf`, which is `auto` where the kernel allows it).

"""
WAITING_TEXT = """
By how the threads of a program wait at its barriers, as OpenMP's runtimes let users choose. `none`: asymd observes, and steers nothing. A
barrier waits for the thread on CPU 0, where asymd takes its emulated time: compare with `none`. Rounds of 1 and 10 ms are measured
after asym has tried turns.

"""
ARM64_TEXT = """
On a kernel that knows its cores (`./dev vm arm64`): a guest of arm64, whose four fast CPUs have capacity 1024, and the others 512, in the
device tree (SD_ASYM_CPUCAPACITY); stock and `policy = auto`, which is asym there, with the default configuration.

"""


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


def configuration(mode):
    """The policy of a mode, and a configuration for it: options of the policy may follow its name, and others as asymd.KEY=VALUE."""
    policy, *options = mode.split()
    general = [each.removeprefix("asymd.") for each in options if each.startswith("asymd.")]
    own = [each for each in options if not each.startswith("asymd.")]
    return policy, "\n".join([CONFIG, *general] + ([f"[policy.{policy}]", *own] if own else []))


@contextlib.contextmanager
def scheduled(lab, mode):
    """Stock, asymd or a scheduler of sched_ext schedules meanwhile. Yields what is to be noted of it."""
    lab.s.guest.deadline = time.monotonic() + STARTS_S
    if mode not in SCHEDULERS:
        lab.policy(*configuration(mode))
        yield {}
        return
    lab.policy("stock")
    yield {"scheduler": lab.s.sh(START_SCHEDULER.format(name=mode))}
    lab.s.sh(STOP_SCHEDULER)


def measure(lab, name, mode):
    with scheduled(lab, mode) as noted:
        found = measure_one(lab, name)
    if name.endswith("-rtx") and mode != "stock" and not found["program"]["rtx"]:
        raise run.Wrong(f"{name}: the program did not report to asymd")
    return found | noted


def measure_one(lab, name):
    if name in programs.PROGRAMS:
        lab.s.guest.deadline = time.monotonic() + programs.HANGS_S
        return programs.measure(lab.s, programs.PROGRAMS[name])
    row = ROWS[name]
    started = row._replace(on=row.on and f"taskset -c {row.on}")._asdict()
    command = SCRIPT.format(sign="+" if row.scope else "-", **started)
    lab.s.guest.deadline = time.monotonic() + row.seconds + HANGS_S
    with hurried(lab.s.guest.qemu.process.pid):
        text = lab.s.sh(command)
    found = parse(text)
    if row.program and row.figure[0] not in found["program"]:
        raise run.Wrong(f"the program says nothing: {text}")
    return found


def collect(lab, modes_of, runs):
    """Measures rows, each with its modes. Yields the name of each row with its runs by mode after each of its turns."""
    found = {name: {mode: [] for mode in modes} for name, modes in modes_of.items()}
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


def columns(row):
    """The modes of the row's table."""
    return MODES if set(row.modes) <= set(MODES) else row.modes


def gains(runs, modes, value, more=True):
    """Yields a cell for each mode: its mean, and its gain against the first mode in the same turn. more: whether more of it is better."""
    first = [value(one) for one in runs[modes[0]]]
    for mode in modes:
        mine = [value(one) for one in runs.get(mode, [])]
        if mode == modes[0]:
            yield spread(mine, "{:.2f}")
        elif mine:
            gain = spread([100 * ((each / base if more else base / each) - 1) for each, base in zip(mine, first)], "{:+.1f}")
            yield f"{statistics.mean(mine):.2f}: {gain} %"
        else:
            yield ""


def plain(runs, modes, value, form):
    """Yields a cell for each mode; an empty one where nothing was measured."""
    for mode in modes:
        values = [value(one) for one in runs.get(mode, [])]
        yield spread(values, form) if values and None not in values else ""


def lines(name, runs):
    """Yields the lines of a row of the page."""
    row = ROWS[name]
    modes = columns(row)
    n = min(map(len, runs.values()))
    runs = {mode: each[:n] for mode, each in runs.items()}

    def line(title, figure, cells):
        return f"| {title} | {figure} | {' | '.join(cells)} | {n} |"

    if row.program:
        yield line(f"{name}: {row.title}", row.figure[1], gains(runs, modes, lambda one: one["program"][row.figure[0]]))
        if all("woken" in one["program"] for each in runs.values() for one in each):
            yield line("", "the same from the timer's interrupt on", gains(runs, modes, lambda one: one["program"]["woken"]))
        yield line("", "machine's work", gains(runs, modes, lambda one: one["work"]))
    if "fps" in (row.figure or ()):
        yield line("", "99 % frame time, ms", plain(runs, modes, lambda one: one["program"]["p99"], "{:.1f}"))
    yield line("" if row.program else f"{name}: {row.title}", "changes a second", plain(runs, modes, lambda one: one.get("changes"), "{:.2f}"))
    yield line("", "asymd's own time, % of CPU 0", plain(runs, modes, lambda one: one.get("cost"), "{:.1f}"))


def program_line(name, runs):
    """The line of one of Debian's programs in the table of rows."""
    program, n = programs.PROGRAMS[name], min(map(len, runs.values()))
    cells = gains({mode: each[:n] for mode, each in runs.items()}, tuple(runs), lambda one: one["figure"], program.more)
    return f"| {name}: {program.title} | {program.unit} | {' | '.join(cells)} | {n} |"


def modes_in(record, names):
    return {name: tuple(record[name]["runs"]) for name in names if name in record}


def table(record, modes):
    """The rows of the record that have these columns; an empty text if there is none."""
    rows = [line for name in ROWS if name in record and columns(ROWS[name]) == modes for line in lines(name, record[name]["runs"])]
    rows += [program_line(name, record[name]["runs"]) for name, mine in modes_in(record, programs.PROGRAMS).items() if mine == modes]
    head = f"| row | figure | {' | '.join(modes)} | runs |\n|{' --- |' * (len(modes) + 3)}"
    return "\n".join([head, *rows]) + "\n" if rows else ""


def about(record):
    """When and where the record was measured, and what the kernel called the schedulers of sched_ext."""
    every = [one for row in record.values() for runs in row["runs"].values() for one in runs]
    return "; ".join(sorted({row["about"] for row in record.values()} | {one["scheduler"] for one in every if "scheduler" in one}))


def page(record, kind=PAGES[""]):
    others = ((OBSERVERS_TEXT, table(record, OBSERVERS)), (WAITING_TEXT, table(record, WAITING)), (WITHOUT_TEXT, table(record, ABLATED)), (ARM64_TEXT, table(record, AUTO)))
    real = [programs.line(name, record[name]["runs"]) for name, mine in modes_in(record, programs.PROGRAMS).items() if mine != PEERS]
    text = kind.text.format(measured=about(record)) + table(record, MODES) + table(record, PEERS)
    text += "".join(what + rows for what, rows in others if rows)
    return text + ("\n".join([PROGRAMS_TEXT, programs.HEAD, *real]) + "\n" if real else "")


def write(kind, name, when, runs):
    """Keeps the row in the record, and writes the page from the record: rows that were not measured stay."""
    path, kept = DATA / f"{kind.name}.md", DATA / "kernel" / f"{kind.name}.json"
    record = json.loads(kept.read_text()) if kept.exists() else {}
    record[name] = {"about": when, "runs": runs}
    text = ",\n".join(f'"{name}": {json.dumps(record[name])}' for name in (*ROWS, *programs.PROGRAMS) if name in record)
    kept.write_text(f"{{\n{text}\n}}\n")
    notes = path.read_text().partition(NOTES)[2] if path.exists() else ""
    path.write_text(page(record, kind) + (NOTES + notes if notes else ""))


def prepare_burn(lab, machine):
    lab.s.sh(f"insmod burn.ko speed={','.join(map(str, SPEEDS[machine]))}")


def prepare_programs(lab, _):
    """They have the CPU time of the host that the speeds of the guest's CPUs say: no other priority."""
    lab.s.sh(programs.PREPARE)


def machine_of(name):
    return ROWS[name].machine if name in ROWS else "big-little"


def modes_of(name, kernel):
    return ROWS[name].modes if name in ROWS else PEERS if kernel else programs.MODES


def names_for(build, kernel=""):
    """The rows whose machines run what this directory below build has, with this kernel of the guest."""
    every = (*ROWS, *(BESIDE_PEERS if kernel else programs.PROGRAMS))
    asked = build in machines.ARM64, bool(kernel)
    return [name for name in every if (machine_of(name) in machines.ARM64, modes_of(name, kernel) == PEERS) == asked]


def measure_on(machine, prepare, packs, modes, share, runs):
    """Measures rows, each with its modes, in one boot. Yields as collect does."""
    for archive in packs:
        run.fetch(archive, share)
    with vm.Guest(machine, share, 4 * 3600) as guest:
        guest.begin()
        lab = Lab(run.Scenario(guest).install())
        for archive in packs:
            lab.s.unpack(archive)
        prepare(lab, machine)
        yield from collect(lab, modes, runs)


def main():
    kernel = vm.newer_kernel()
    parser = argparse.ArgumentParser(prog=f"./dev vm {PAGES[kernel].name}", description=__doc__)
    parser.add_argument("--only", action="append", metavar="ROW", help=f"may be repeated; of {', '.join((*ROWS, *programs.PROGRAMS))}")
    parser.add_argument("--runs", type=int, default=5, help="turns of each row (default: %(default)s)")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    known = names_for(args.build.name, kernel)
    # Rows of arm64 may be named without it there.
    names = [next((each for each in known if each in (name, f"{args.build.name}-{name}")), name) for name in args.only or known]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no row {unknown[0]} for this build; there are {', '.join(known)}")
    vm.stop_on_signals()
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        share = pathlib.Path(share)
        run.stage(args.build, share)
        for prepare, machine in (*((prepare_burn, machine) for machine in SPEEDS), (prepare_programs, "big-little")):
            chosen = {name: modes_of(name, kernel) for name in names if machine_of(name) == machine}
            if not chosen:
                continue
            when = f"{datetime.date.today()}, Linux {build_module(share, machine)}"
            packs = (*(programs.PACKS if machine == "big-little" else ()), *(("scx",) if kernel else ()))
            for name, runs in measure_on(machine, prepare, packs, chosen, share, args.runs):
                write(PAGES[kernel], name, when, runs)


if __name__ == "__main__":
    main()
