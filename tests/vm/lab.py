# SPDX-License-Identifier: GPL-2.0-or-later
"""What the measurements of papers.py work with: a guest with asymd in it, and loads that say what they did."""
import io
import re
import time

import machines
import run

# An emulated CPU needs 15 times as long for a look. Copies are steered from the start: nobody else's programs are here.
CONFIG = """[asymd]
policy = {policy}
interval = 100ms
cpu_budget = 100
[machine]
fast_from = 100%
[enforce]
settle = 0ms
fork_holdoff = 0ms"""
# CPUs have their speeds so long before a load begins: what it says is read five times a second.
BEFORE_S = 0.7


class Lab:
    """A machine with asymd in it, booted once."""

    def __init__(self, guest):
        self.s = run.Scenario(guest)
        self.s.sh("tar -C / --no-overwrite-dir -xf root.tar && systemctl daemon-reload")

    def policy(self, name, config=CONFIG):
        """stock: nobody steers."""
        if name == "stock":
            self.s.sh("systemctl stop asymd")
        else:
            self.s.start(config.format(policy=name))

    def timed(self, command):
        """Run a load while CPUs have their speeds; what it prints."""
        with self.s.speeds():
            return self.s.sh(f"nice -n 10 {command}")

    def timed_after(self, command, seconds):
        """The same of a load that says "ready" and begins so many seconds after that, and ends when it says what it took.
        Only in between do its CPUs have their speeds: what is timed is a program in its course, not how it came to be."""
        output = Switch(self.s.guest.speeds.limit, seconds - BEFORE_S)
        try:
            if self.s.guest.run(f"exec nice -n 10 {command}", output) != 0:
                raise run.Wrong(f"{command} says:\n{output.getvalue().decode(errors='replace')}")
        finally:
            self.s.guest.speeds.limit(False)
        return output.getvalue().decode()


class Switch(io.BytesIO):
    """What a load says, as it comes; told several times a second that there is nothing new."""

    def __init__(self, limit, seconds, clock=time.monotonic):
        super().__init__()
        self.limit, self.seconds, self.clock, self.ready_at, self.limited = limit, seconds, clock, None, False

    def write(self, text):
        super().write(text)
        said = self.getvalue()
        if self.ready_at is None and b"ready" in said:
            self.ready_at = self.clock()
        wanted = self.ready_at is not None and self.clock() >= self.ready_at + self.seconds and b"time=" not in said
        if wanted != self.limited:
            self.limited = wanted
            self.limit(wanted)


def figures(text):
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", text)}


def online(lab, n):
    for cpu in range(1, machines.CPUS):
        lab.s.sh(f"echo {int(cpu < n)} >/sys/devices/system/cpu/cpu{cpu}/online")
