# SPDX-License-Identifier: GPL-2.0-or-later
"""What the measurements of papers.py work with: a guest with asymd in it, and loads that say what they did."""
import re

import machines
import run

# An emulated CPU needs 15 times as long for a look. Copies are steered from the start: nobody else's programs are here.
CONFIG = """[asymd]
policy = {policy}
interval = 100ms
cpu_budget = 100
[enforce]
settle = 0ms
fork_holdoff = 0ms"""


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

    def told(self, command, seconds):
        """The same of a load that says when it is ready and waits to be told. Until so many seconds after that the CPUs are
        as fast as the host allows: what is timed is a program in its course, not how it and its runtime come to be."""
        self.s.sh("rm -f /run/go /run/end /run/said; mkfifo /run/go /run/end\n"
                  f"(nice -n 10 {command} <>/run/go >/run/said 2>&1; echo >/run/end) >/dev/null 2>&1 &\n"
                  "for ((i = 0; i < 200; i++)); do grep -q ready /run/said && exit; sleep 0.1; done; cat /run/said; exit 1")
        self.s.guest.idle(seconds)
        with self.s.speeds():
            return self.s.sh("echo >/run/go; read -r <>/run/end; cat /run/said")


def figures(text):
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", text)}


def online(lab, n):
    for cpu in range(1, machines.CPUS):
        lab.s.sh(f"echo {int(cpu < n)} >/sys/devices/system/cpu/cpu{cpu}/online")
