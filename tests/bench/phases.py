#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how soon asymd serves the serial phase of a program that tells nothing, and what an idle service takes, by each observer.

usage: phases.py BUILD_DIR [PART...]: phases, trace, idle; all, if none is named
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from bus import cpu_time

build = os.path.abspath(sys.argv[1])
ROUNDS = 200
# The first phases come before the program has settled.
SKIP = 30
# Serial milliseconds, parallel ones.
PHASES = {5: 40, 10: 40, 20: 40, 50: 50}
LOADS = {"nothing else running": 0, "all CPUs busy": os.cpu_count()}
OBSERVERS = ("procfs", "bpf")
# What is asked of bpf: of the phases of that length on the fast CPU, per cent; median and 99 % of the answers, us, by load.
SHARES = {5: 80, 10: 90, 20: 95, 50: 98}
ANSWERS = {"nothing else running": (150, 1000), "all CPUs busy": (300, 2000)}
NEVER = float("inf")
IDLE_SECONDS, IDLE_ROUNDS = 20, 3


def spin(burners):
    return [subprocess.Popen([f"{build}/tests/load-spin", "1", "600"]) for _ in range(burners)]


def end(load):
    for p in load:
        p.kill()
        p.wait()


def run(observer, serial, parallel, burners, watch=lambda asymd, program: None):
    """What load-silent says of its phases, and the mean share of one on CPU 0, which is fast."""
    with tempfile.TemporaryDirectory() as state:
        load = spin(burners)
        program = subprocess.Popen([f"{build}/tests/load-silent", str(os.cpu_count() - 1), str(serial), str(parallel), str(ROUNDS)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # asymd skips a process that has just called exec(2), so it starts after the first output.
        lines = [program.stdout.readline()]
        asymd = subprocess.Popen([f"{build}/daemon/asymd", "--service", "--policy=pa", f"--slow={os.cpu_count() // 2}",
                                  f"--set=asymd.state_dir={state}", f"--set=asymd.observer={observer}", "--set=asymd.cpu_budget=100",
                                  f"--pid={program.pid}"], stderr=subprocess.DEVNULL)
        watch(asymd.pid, program)
        lines += program.stdout
        asymd.terminate()
        asymd.wait()
        end(load)
    share = float(program.stderr.read())
    program.wait()
    return lines, share


def measure(observer, serial, parallel, burners):
    """The microseconds until each serial phase had its answer, and that share."""
    lines, share = run(observer, serial, parallel, burners)
    return sorted(NEVER if took < 0 else took for took in map(float, lines[SKIP:])), share


# The events of a phase, as tracefs names them, with the filter of each.
TRACED = {"sched/sched_switch": 'prev_comm == "load-silent" || prev_comm == "asymd" || next_comm == "asymd"', "sched/sched_waking": 'comm == "asymd"',
          "syscalls/sys_enter_sched_setaffinity": "", "syscalls/sys_exit_sched_setaffinity": ""}
TRACEFS = "/sys/kernel/tracing/instances/asymd-bench"


def write(path, text):
    with open(f"{TRACEFS}/{path}", "w", encoding="ascii") as file:
        file.write(text)


def traced_lines(burners):
    """What the kernel recorded of asymd and load-silent while load-silent ran."""
    found = []

    def watch(asymd, program):
        for _ in range(SKIP):
            program.stdout.readline()
        write("tracing_on", "1")
        for _ in range(ROUNDS - SKIP - 2):
            program.stdout.readline()
        write("tracing_on", "0")
        with open(f"{TRACEFS}/trace", encoding="ascii") as file:
            found.extend((asymd, line) for line in file if not line.startswith("#"))

    os.mkdir(TRACEFS)
    try:
        write("tracing_on", "0")
        for event, chosen in TRACED.items():
            write(f"events/{event}/filter", chosen or "common_pid > 0")
            write(f"events/{event}/enable", "1")
        run("bpf", 20, 40, burners, watch)
    finally:
        os.rmdir(TRACEFS)
    return found


def steps(burners):
    """Microseconds from the sleep of the last mate to each step of the answer; one list a phase that took a mask."""
    phases, begun, now = [], None, []
    for asymd, line in traced_lines(burners):
        pid, at, what = re.match(r"\s*.+-(\d+)\s+\[\d+\].*?\s(\d+\.\d+): (.*)", line).groups()
        at, is_asymd = float(at) * 1e6, int(pid) == asymd
        if "prev_comm=load-silent" in what and "prev_state=S" in what:
            begun, now = at, []
        elif begun and is_asymd and "sched_switch" in what:
            # asymd has done what the phase needs.
            phases += [now] if len(now) > 3 else []
            begun = None if len(now) > 1 else begun
        elif begun and is_asymd and what.startswith("sys_sched_setaffinity(") and len(now) < 2:
            # It ran already, for a sample, when it was woken, or before.
            now = [at - begun] * 3
        elif begun and (f"comm=asymd pid={asymd} " in what and not now or f"next_pid={asymd} " in what and len(now) == 1 or
                        is_asymd and what.startswith("sys_sched_setaffinity(") and len(now) == 2):
            now.append(at - begun)
        elif begun and is_asymd and what.startswith("sys_sched_setaffinity ->") and len(now) > 2:
            now[3:] = [at - begun]
    return phases


def print_trace():
    """A thread that is answered while it waits for its turn sees that when it runs again: the kernel's record has no such delay."""
    if not os.access("/sys/kernel/tracing/instances", os.W_OK):
        print("no trace of a phase: tracefs is not mounted at /sys/kernel/tracing")
        return
    names = "the BPF program wakes asymd", "asymd runs", "its first sched_setaffinity(2) begins", "its last one has ended"
    for beside, burners in LOADS.items():
        phases = steps(burners)
        if not phases:
            sys.exit(f"{beside}: no phase of the trace took a mask")
        took = [sorted(p[i] for p in phases) for i in range(len(names))]
        print(f"{beside}, {len(phases)} phases of 20 ms that took a mask, from the sleep of the last other thread, median and 99 %: " +
              ", ".join(f"{name} after {t[len(t) // 2]:.0f} and {t[len(t) * 99 // 100]:.0f} us" for name, t in zip(names, took)), flush=True)
        load = spin(burners)
        subprocess.run([f"{build}/tests/bench/bench-phases", "answer"], check=True)
        end(load)


def idle_share(observer):
    """Per cent of a CPU that asymd takes beside 1,000 threads that sleep, once it knows them."""
    with tempfile.TemporaryDirectory() as state:
        sleepers = subprocess.Popen([f"{build}/tests/load-sleepers", "1000", "20", "600"], stdout=subprocess.PIPE, text=True)
        if sleepers.stdout.readline() != "ready\n":
            sys.exit("the kernel does not allow 1,000 more threads")
        asymd = subprocess.Popen([f"{build}/daemon/asymd", "--service", f"--slow={os.cpu_count() // 2}", f"--set=asymd.state_dir={state}",
                                  f"--set=asymd.observer={observer}", f"--pid={sleepers.pid}"], stderr=subprocess.DEVNULL)
        time.sleep(5)
        begun, before = time.monotonic(), cpu_time(asymd.pid)
        time.sleep(IDLE_SECONDS)
        share = (cpu_time(asymd.pid) - before) / (time.monotonic() - begun) * 100
        if asymd.poll() is not None:
            sys.exit(f"asymd has ended with {asymd.returncode}")
        for p in asymd, sleepers:
            p.terminate()
            p.wait()
    return share


def print_idle():
    """The observers take turns, so that neither has the quieter machine."""
    shares = {observer: [] for observer in OBSERVERS}
    for i in range(IDLE_ROUNDS * len(OBSERVERS)):
        observer = OBSERVERS[i % len(OBSERVERS)]
        shares[observer].append(idle_share(observer))
    for observer in OBSERVERS:
        print(f"idle service beside 1,000 threads that sleep, {observer}: {statistics.median(shares[observer]):.2f} % of a CPU" +
              (" (asked 0.1 %)" if observer == "bpf" else ""), flush=True)


def shown(us):
    return "never" if us == NEVER else f"{us:.0f} us"


def print_phases():
    for beside, burners in LOADS.items():
        for observer in OBSERVERS:
            for serial, parallel in PHASES.items():
                took, share = measure(observer, serial, parallel, burners)
                median, late = took[len(took) // 2], took[len(took) * 99 // 100]
                asked = (f" (asked {ANSWERS[beside][0]} us, {ANSWERS[beside][1]} us, {SHARES[serial]} %)" if observer == "bpf" else "")
                print(f"{beside}, {observer}, serial phases of {serial} ms: answered after {shown(median)} in the median, "
                      f"99 % {shown(late)}; {share:.1f} % of them on the fast CPU{asked}", flush=True)


PARTS = {"phases": print_phases, "trace": print_trace, "idle": print_idle}
print(f"load of the machine at the start: {os.getloadavg()[0]:.1f}; {os.cpu_count()} CPUs, the first ones fast; policy pa",
      flush=True)
for part in sys.argv[2:] or PARTS:
    PARTS[part]()
print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")
