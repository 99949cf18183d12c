#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""top.py BUILD_DIR: the CPU time of asymctl top on a screen of 200x60, in 10 s after the first frame, beside that of procps
top on this machine, which has other and mostly fewer tasks. asymd's own part is not in it: a fake answers."""
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from top import Fake, Terminal  # noqa: E402

SECONDS = 10


def cpu_time(pid):
    """CPU time of a process, in seconds."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def measure(terminal, sign):
    """CPU share of the program, and the bytes that it has drawn in a second."""
    terminal.shows(sign)
    start, cpu, terminal.raw = time.monotonic(), cpu_time(terminal.pid), b""
    while (elapsed := time.monotonic() - start) < SECONDS:
        terminal.read(SECONDS - elapsed)
    share = (cpu_time(terminal.pid) - cpu) / elapsed
    terminal.press("q")
    terminal.end()
    return share, len(terminal.raw) / elapsed


def main(build):
    build = pathlib.Path(build).resolve()
    print(f"{'':34} {'CPU':>8} {'bytes/s':>8}")
    for cpus, apps in ((24, 50), (24, 500), (256, 5000)):
        with tempfile.TemporaryDirectory() as folder, Fake(build / "tests/fake-asymd", f"{folder}/bus", cpus, apps) as fake:
            terminal = Terminal([str(build / "daemon/asymctl"), "top"], 200, 60, ASYMD_BUS=f"{folder}/bus", LC_ALL="C.UTF-8",
                                TERM="xterm-256color")
            share, drawn = measure(terminal, f"1 of {apps}" if apps > 50 else "q quit")
            frames = fake.calls("status") - 1
            name = f"{apps} applications, {frames} frames"
            print(f"{name:34} {share:8.2%} {drawn:8.0f}")
    share, drawn = measure(Terminal(["/usr/bin/top", "-d1"], 200, 60, TERM="xterm-256color"), "PID USER")
    tasks = sum(name.isdigit() for name in os.listdir("/proc"))
    print(f"{f'procps top -d1, {tasks} processes':34} {share:8.2%} {drawn:8.0f}")


if __name__ == "__main__":
    main(sys.argv[1])
