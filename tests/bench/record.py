#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""record.py BUILD_DIR [SECONDS]: the size of a minute's record of 5,000 live threads, for each of four loads. Starts the loads;
asymctl record observes and plans for these only, and steers nothing. Ends with 1 if a record is larger than the bar."""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from bus import cpus, started, stolen, verdict

THREADS, BAR, INTERVAL = 5000, 20e6, 0.1
# How many threads work so many microseconds of about 60 ms, and how many run all the time. The others sleep, a hundred in a
# process. A snapshot lists no thread that did not run.
LOADS = ((0, 0, 8), (192, 300, 8), (4992, 5, 8), (4992, 20, 8))


def start(build, pulses, work, spins, clean):
    """Starts a load of THREADS threads, and waits until all exist. Returns its programs."""
    sleepers = THREADS - pulses - spins
    commands = [["load-pulse", pulses, 600, work]] * (pulses > 0) + [["load-spin", spins, 600]]
    commands += [["load-sleepers", sleepers, sleepers // 100, 600]] * (sleepers > 0)
    programs = [started(clean, [build / "tests" / name, *words], stdout=subprocess.DEVNULL) for name, *words in commands]
    end = time.monotonic() + 60
    while (there := sum(threads(program.pid) for program in programs)) < THREADS:
        assert time.monotonic() < end, f"{there} threads"
        time.sleep(0.2)
    return programs


def threads(pid):
    """The number of threads of a process and of its descendants."""
    tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    children = [child for task in tasks for child in task.joinpath("children").read_text().split()]
    return len(tasks) + sum(map(threads, children))


def record(build, folder, programs, seconds):
    """Returns the snapshots, the most threads in one, the bytes of the file, and the CPU time of asymctl in seconds."""
    config, path = folder / "conf", folder / "record"
    last = max(os.sched_getaffinity(0))
    # On a machine of like CPUs nothing is planned.
    config.write_text(f"[asymmetry]\nslow = {last}-{last}\nmethod = none\n")
    command = [build / "daemon/asymctl", "record", path, f"--time={seconds}s", f"--config={config}",
               f"--pid={','.join(str(program.pid) for program in programs)}"]
    before = os.times()
    said = subprocess.run(command, start_new_session=True, capture_output=True, text=True, check=True).stdout
    cpu = os.times().children_user + os.times().children_system - before.children_user - before.children_system
    found = re.search(r": (\d+) snapshots of up to (\d+) threads", said)
    return int(found[1]), int(found[2]), path.stat().st_size, cpu


def measure(build, seconds, pulses, work, spins):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as clean:
        programs = start(build, pulses, work, spins, clean)
        begin, before = time.monotonic(), stolen()
        snapshots, most, size, cpu = record(build, pathlib.Path(folder), programs, seconds)
        taken = (stolen() - before) / (time.monotonic() - begin) / cpus()
    works = f"{pulses} work {work} us of about 60 ms, " if pulses else ""
    print(f"{THREADS} threads: {works}{spins} run, the others sleep")
    print(f"  {snapshots} snapshots of up to {most} threads, {cpu / snapshots * 1000:.1f} ms of CPU time each; the host took "
          f"{taken:.1%} of the CPU time")
    full = size / snapshots * seconds / INTERVAL
    return verdict(size <= BAR, f"{size / 1e6:.2f} MB; with a snapshot every {INTERVAL} s {full / 1e6:.2f} MB; "
                                f"bar {BAR / 1e6:.0f} MB")


def main(build, seconds="60"):
    return 0 if all([measure(pathlib.Path(build).resolve(), int(seconds), *load) for load in LOADS]) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
