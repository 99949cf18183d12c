#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what a nice value gives a thread that wakes beside a hog on the same CPU: in the guest, in several boots, and on this
host. Writes docs/data/boost.md."""
import argparse
import contextlib
import datetime
import functools
import io
import itertools
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

import vm
from run import Wrong
from speeds import Speeds, hierarchy, remove

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "data" / "boost.md"
NICES, BOOTS, BURSTS, LEAST, TRIES = (0, -3, -5, -10), 3, 250, 200, 8
# A burst during which other programs had the CPU for longer is not counted.
DISTURBED_US = 300
ALONE, TOGETHER, APART = "alone", "one session", "a session each"
# How long a thread sleeps at least: it runs 25 % or 57 % of the time if it never waits. The fair share is 50 %.
SLEEPS_MS = (8, 2)
CASES = [(*case, ms) for ms in SLEEPS_MS for case in [(ALONE, 0), *itertools.product((TOGETHER, APART), NICES)]]
# CPU 0 has all its ticks in the guest.
BESIDE = """renice 0 $BASHPID >/dev/null
hog=0
{hog}
sleep 0.3
echo $BASHPID >{group}/cgroup.procs
{apart} nice -n {nice} taskset -c 0 {load} $hog {bursts}
[ $hog = 0 ] || kill $hog
"""
TEXT = """# What sp_boost does on a kernel

Written by `./dev vm boost`, {date}. A thread sleeps and then runs 4 ms of CPU time, again and again, on the CPU of a hog of nice 0.
The figures are ms from wake to the end of such a burst: the median, and the 99th percentile, each as the mean of {boots} repeats
with their range. Each repeat has at least {least} bursts in which no other program had the CPU; in the guest (6.1) it is a boot.
The guest's threads run by tests/vm/burn: its CPUs halt meanwhile, so a busy host delays few interrupts.

{table}

Of one session: as on a kernel without autogroups, where the nice value counts. With a session each, it counts only within one.
"""


def command(case, load, groups):
    """The shell line that measures this case. The hog is in the first CPU control group."""
    kind, nice, sleep = case
    apart = "setsid --wait" if kind == APART else ""
    hog = f"(echo $BASHPID >{groups[0]}/cgroup.procs; exec {apart[:6]} taskset -c 0 {load}) >/dev/null & hog=$!"
    return BESIDE.format(hog=hog if kind != ALONE else "", group=groups[kind == APART], apart=apart, nice=nice, load=load,
                         bursts=f"{BURSTS} {sleep}")


@contextlib.contextmanager
def host_groups():
    """Two control groups that are to each other as autogroups are, and together outweigh all other programs of this host."""
    mount, version = hierarchy()
    top = mount / f"asymd-boost.{os.getpid()}"
    groups = [top / "a", top / "b"]
    try:
        top.mkdir()
        if version == 2:
            Speeds.enable(mount)
            Speeds.enable(top)
        (top / ("cpu.shares" if version == 1 else "cpu.weight")).write_text("262144" if version == 1 else "10000")
        for group in groups:
            group.mkdir()
        yield groups
    finally:
        for line in [line for group in groups for line in (group / "cgroup.procs").read_text().split()]:
            (mount / "cgroup.procs").write_text(line)
        remove([*groups, top])


def undisturbed(measure, case):
    """The ms of each burst that no other program disturbed."""
    kept, text = [], ""
    for _ in range(TRIES):
        text = measure(case)
        bursts = [tuple(map(int, line)) for line in re.findall(r"^(\d+) (-?\d+)$", text, re.MULTILINE)]
        # Alone, no other thread's time is known.
        kept += [took / 1000 for took, others in bursts if case[0] == ALONE or others <= DISTURBED_US]
        if len(kept) >= LEAST:
            return kept
    raise Wrong(f"{case}: only {len(kept)} bursts were undisturbed: {text[-300:]}")


def on_guest(guest, case):
    output = io.BytesIO()
    guest.run(command(case, "/host/load-burst", ["/sys/fs/cgroup"] * 2), output)
    return output.getvalue().decode(errors="replace")


def on_host(load, case):
    with host_groups() as groups:
        return subprocess.run(["bash", "-c", command(case, load, groups)], stdout=subprocess.PIPE, text=True, check=False).stdout


def build_module(share, machine="burn"):
    """Puts burn.ko for the machine's kernel into the directory. setup.sh builds that for a newer one."""
    arch = vm.arch(machine)
    release, built = next((arch.files / "kernel/lib/modules").iterdir()).name, arch.files / "burn.ko"
    if built.exists():
        shutil.copy(built, share)
        return release
    for name in ("burn.c", "Makefile"):
        shutil.copy(HERE / "burn" / name, share)
    headers = arch.files / "headers/usr/src" / f"linux-headers-{release}"
    subprocess.run(["make", "-s", "-C", str(headers), f"M={share}", f"CROSS_COMPILE={arch.cross}", "modules"], check=True)
    return release


def hurry(pid):
    """Lets no other program of the host delay the guest, whose CPUs halt most of the time. They take turns: one that waits for another
    one, as for its answer to an interrupt, would keep its host CPU from that one for ever. QEMU's main thread, which is its timers,
    comes before them: no busy CPU of a machine delays a timer. This program comes first: if the guest hangs with busy CPUs, it must be
    able to end it."""
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(3))
    (hierarchy()[0] / "cgroup.procs").write_text(str(pid))
    schedule(pid, os.SCHED_RR, 1)
    os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(2))


def schedule(pid, policy, priority):
    for thread in os.listdir(f"/proc/{pid}/task"):
        # QEMU's threads that wait for files come and go.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


@contextlib.contextmanager
def hurried(pid):
    """As hurry, while a block runs: the rest of the time the host's other programs have their share."""
    hurry(pid)
    try:
        yield
    finally:
        schedule(pid, os.SCHED_OTHER, 0)


def collect(found, measure_case):
    for case in CASES:
        found[case].append(undisturbed(measure_case, case))
        print(*case, *(f"{figure(found[case][-1]):.1f}" for figure in (statistics.median, last_percentile)), flush=True)


def measure(load, share):
    """Returns the kernels, and each one's bursts of each repeat by case."""
    kernels = [build_module(share), os.uname().release]
    found = [{case: [] for case in CASES} for _ in kernels]
    for boot in range(BOOTS):
        with vm.Guest("flat", share, 900) as guest:
            guest.begin()
            hurry(guest.qemu.process.pid)
            guest.run("insmod burn.ko && sysctl -q kernel.sched_autogroup_enabled=1")
            collect(found[0], functools.partial(on_guest, guest))
        collect(found[1], functools.partial(on_host, load))
        print(f"repeat {boot + 1} of {BOOTS}", flush=True)
    return kernels, found


def cell(repeats, figure):
    values = [figure(repeat) for repeat in repeats]
    return f"{statistics.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def table(kernels, found):
    yield "| sleeps ms | sessions | nice |" + "".join(f" {kernel}: median | 99 % |" for kernel in kernels)
    yield "| --- | --- | --- |" + " --- | --- |" * len(kernels)
    for case in CASES:
        cells = [cell(each[case], figure) for each in found for figure in (statistics.median, last_percentile)]
        kind, nice, sleep = case
        yield f"| {sleep} to {2 * sleep} | {kind} | {nice} | {' | '.join(cells)} |"


def last_percentile(values):
    return sorted(values)[int(len(values) * 0.99)]


def main():
    parser = argparse.ArgumentParser(prog="./dev vm boost", description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    load = parser.parse_args().build.resolve() / "tests" / "load-burst"
    vm.stop_on_signals()
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        shutil.copy(load, share)
        kernels, found = measure(load, share)
    text = TEXT.format(date=datetime.date.today(), boots=BOOTS, least=LEAST, table="\n".join(table(kernels, found)))
    PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
