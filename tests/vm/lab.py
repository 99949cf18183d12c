# SPDX-License-Identifier: GPL-2.0-or-later
"""The tools of the measurements of papers.py: a guest with asymd in it, and loads that report their work."""
import collections
import io
import re
import statistics
import time

import machines
import run

# An emulated CPU needs 15 times as long for a sample. asymd steers copies from the start: no other user's programs run here.
CONFIG = """[asymd]
group = process
policy = {policy}
interval = 100ms
cpu_budget = 100
[machine]
fast_from = 100%
[enforce]
settle = 0ms
fork_holdoff = 0ms"""
# CPUs get their speeds this long before a load begins, because the output of the load is read five times a second only.
BEFORE_S = 0.7
Figure = collections.namedtuple("Figure", "mean least most")


class Lab:
    """A machine with asymd installed in it, booted once."""

    def __init__(self, scenario):
        self.s = scenario

    def policy(self, name, config=CONFIG):
        """stock: asymd does not run."""
        if name == "stock":
            self.s.sh("systemctl stop asymd")
        else:
            self.s.start(config.format(policy=name))

    def wait(self, seconds):
        """Lets the guest run."""
        self.s.guest.idle(seconds)

    def timed(self, command):
        """Runs a load while CPUs have their speeds. Returns its output."""
        with self.s.speeds():
            return self.s.sh(f"nice -n 10 {command}")

    def timed_after(self, command, seconds):
        """Like timed, for a load that prints "ready", begins so many seconds later, and prints its time at the end. CPUs have
        their speeds only from its begin to its end, because the start of the program is not part of the measurement."""
        output = Switch(self.s.guest.speeds.limit, seconds - BEFORE_S)
        try:
            if self.s.guest.run(f"exec nice -n 10 {command}", output) != 0:
                raise run.Wrong(f"{command} says:\n{output.getvalue().decode(errors='replace')}")
        finally:
            self.s.guest.speeds.limit(False)
        return output.getvalue().decode()


class Switch(io.BytesIO):
    """Takes the output of a load as it comes; an empty write comes several times a second."""

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


def mean(runs, key):
    return figure(runs, key).mean


def figure(runs, key):
    """The mean and the range of runs."""
    values = [each[key] for each in runs]
    return Figure(statistics.mean(values), min(values), max(values))


def online(lab, n):
    for cpu in range(1, machines.CPUS):
        lab.s.sh(f"echo {int(cpu < n)} >/sys/devices/system/cpu/cpu{cpu}/online")
