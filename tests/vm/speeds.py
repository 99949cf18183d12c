# SPDX-License-Identifier: GPL-2.0-or-later
"""The speeds of the guest's CPUs: one CPU cgroup of the host for each of QEMU's vCPU threads."""
import contextlib
import os
import pathlib
import time

import machines

# At 20 ms a CPU of a quarter of the mean speed still has a quota above the smallest one that the kernel accepts; slower CPUs
# get longer periods.
PERIOD_US, MIN_QUOTA_US = 20000, 1000
# Cores of the host that eight CPUs of 2800 MHz use together: somewhat below the two that a small host has.
HOST_CORES = 1.7
# On a busy host the guest weighs as much as this many running programs.
HOST_TASKS = int(os.environ.get("ASYM_VM_TASKS", "2"))
PREFIX = "asymd-vm"


class VmError(Exception):
    """The virtual machine failed, not a program in it."""


def hierarchy():
    """The cgroup hierarchy with the cpu controller: its mount point and version."""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for _, path, kind, options, *_ in mounts:
        if kind == "cgroup" and "cpu" in options.split(","):
            return pathlib.Path(path), 1
    for _, path, kind, *_ in mounts:
        if kind == "cgroup2" and "cpu" in (pathlib.Path(path) / "cgroup.controllers").read_text().split():
            return pathlib.Path(path), 2
    raise VmError("this host has no cgroup hierarchy with the cpu controller: CPUs cannot be made to differ in speed")


def remove(directories):
    """Removes cgroups. It tries for a second, because threads that have just ended still hold their cgroup for a moment."""
    for path in directories:
        for _ in range(50):
            with contextlib.suppress(FileNotFoundError):
                try:
                    path.rmdir()
                except OSError as error:
                    if isinstance(error, FileNotFoundError):
                        raise
                    time.sleep(0.02)
                    continue
            break


class Speeds:
    def __init__(self, machine):
        if os.geteuid() != 0:
            raise VmError("limiting the CPUs of the guest takes root")
        self.tables, self.top_mhz = machines.MACHINES[machine], machines.top_mhz(machine)
        slowest = min(max(states) for states in self.tables) / self.top_mhz
        self.period_us = PERIOD_US if slowest >= 0.25 else 2 * PERIOD_US
        # The governor "performance" starts with these states.
        self.states = [0] * machines.CPUS
        self.limited = False
        self.mount, self.version = hierarchy()
        self.directories = []
        self.remove_stale()

    def remove_stale(self):
        """Removes the cgroups of a harness that was killed by SIGKILL."""
        for path in self.mount.glob(f"{PREFIX}.*"):
            if not os.path.exists(f"/proc/{path.name.split('.')[1]}"):
                remove([*path.glob("cpu[0-9]"), path])

    def attach(self, process, threads):
        parent = self.mount / f"{PREFIX}.{os.getpid()}"
        parent.mkdir()
        self.directories = [parent]
        if self.version == 1:
            (parent / "cpu.shares").write_text(str(HOST_TASKS * 1024))
        else:
            self.enable(self.mount)
            (parent / "cpu.weight").write_text(str(HOST_TASKS * 100))
            (parent / "cgroup.procs").write_text(str(process))
        for cpu in range(len(threads)):
            path = parent / f"cpu{cpu}"
            path.mkdir()
            self.directories.insert(cpu, path)
            if self.version == 2:
                (path / "cgroup.type").write_text("threaded")
        if self.version == 2:
            self.enable(parent)
        for cpu, thread in enumerate(threads):
            self.apply(cpu)
            (self.directories[cpu] / ("tasks" if self.version == 1 else "cgroup.threads")).write_text(str(thread))

    @staticmethod
    def enable(path):
        control = path / "cgroup.subtree_control"
        if "cpu" not in control.read_text().split():
            control.write_text("+cpu")

    def apply(self, cpu):
        """Sets the quota, which makes the speed, and the weight, which keeps speeds in proportion if a busy host cannot give
        every quota."""
        part = self.tables[cpu][self.states[cpu]] / self.top_mhz if self.limited else 1
        quota = max(MIN_QUOTA_US, round(self.period_us * HOST_CORES / machines.CPUS * part)) if self.limited else None
        path = self.directories[cpu]
        if self.version == 1:
            (path / "cpu.cfs_period_us").write_text(str(self.period_us))
            (path / "cpu.cfs_quota_us").write_text(str(quota or -1))
            (path / "cpu.shares").write_text(str(round(1024 * part)))
        else:
            (path / "cpu.max").write_text(f"{quota or 'max'} {self.period_us}")
            (path / "cpu.weight").write_text(str(round(100 * part)))

    def limit(self, limited):
        """Gives the CPUs their speeds, or lets them be as fast as the host allows."""
        self.limited = limited
        for cpu in range(machines.CPUS):
            self.apply(cpu)

    def port_written(self, data):
        for value in data:
            cpu, state = machines.decode(value)
            if cpu < machines.CPUS and state < len(self.tables[cpu]):
                self.states[cpu] = state
                if self.directories:
                    self.apply(cpu)

    def done(self):
        remove(self.directories)
        self.directories = []
