#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of the virtual machine test: MHz of every CPU's P-states, fastest first.

As a program, `machines.py NAME` prints the ACPI source of a table (SSDT) that gives every CPU these P-states, so that
the kernel's own acpi-cpufreq makes one policy per CPU. For arm64 it prints the number and the capacity of each CPU.
"""
import sys

FAST = (2800, 2400, 2100, 1750, 1400, 1050, 700)
SLOW = (1400, 1050, 700)
MACHINES = {
    "flat": (FAST,) * 8,
    "big-little": (SLOW,) * 4 + (FAST,) * 4,
    # The machine of Roehrich 2007, Table 5.2, and that of Morad 2008, Figures 6 and 7: cores without siblings.
    "eight-speeds": tuple((275 * (cpu + 1), 200) for cpu in range(8)),
    "eight-equal": ((2200, 1100),) * 8,
    # For tests/vm/burn, whose CPUs halt: nothing limits them, and no tick is missed.
    "burn": (SLOW,) * 4 + (FAST,) * 4,
    "burn-eight": tuple((275 * (cpu + 1), 200) for cpu in range(8)),
    # Also for tests/vm/burn. It has no P-states, but its kernel knows the capacities of its CPUs.
    "arm64": (SLOW,) * 4 + (FAST,) * 4,
}
# setup.sh makes these, those of burn, and arm64, only if its arguments name them.
OF_PAPERS = ("eight-speeds", "eight-equal")
OF_BURN = ("burn", "burn-eight")
ARM64 = ("arm64",)
CPUS = 8


def smp(name):
    without_siblings = name in (*OF_PAPERS, *OF_BURN)
    return f"{CPUS},sockets=2,cores=4,threads=1" if without_siblings else f"{CPUS},sockets=2,cores=2,threads=2"


def ticks(name):
    """A throttled CPU misses ticks, and with them most of its own CPU time; full dynticks count exactly. But there the kernel
    counts the time of a thread when it leaves its CPU, or once a second, and does not balance a busy CPU by its ticks."""
    return "" if name in OF_BURN else " nohz_full=1-7"


def top_mhz(name):
    """The MHz for which a CPU gets an eighth of HOST_CORES: for the papers' machines the mean, so that they use all of it."""
    return 2800 if name not in OF_PAPERS else sum(max(states) for states in MACHINES[name]) / CPUS
# One 8-bit port serves all CPUs: the value that a CPU writes to change its speed holds its number and the state.
PORT = 0xA80


def encode(cpu, state):
    return cpu << 4 | state


def decode(value):
    return value >> 4, value & 15


def ssdt(name):
    yield 'DefinitionBlock ("", "SSDT", 2, "ASYMD", "PSTATES", 1) {'
    for cpu in range(CPUS):
        yield f"External (\\_SB.CPUS.C{cpu:03X}, ProcessorObj)"
    register = f"ResourceTemplate () {{ Register (SystemIO, 8, 0, {PORT:#x}, 1) }}"
    for cpu, states in enumerate(MACHINES[name]):
        yield f"Scope (\\_SB.CPUS.C{cpu:03X}) {{"
        yield f"Name (_PCT, Package () {{ {register}, {register} }})"
        # MHz, mW, latencies in us, the value to write for the state, and the value to read then.
        rows = (f"Package () {{ {mhz}, {mhz * 5}, 10, 10, {encode(cpu, i):#x}, {encode(cpu, i):#x} }}"
                for i, mhz in enumerate(states))
        yield f"Name (_PSS, Package () {{ {', '.join(rows)} }})"
        yield "Name (_PPC, 0)"
        # A domain of its own (0xFC: coordinated by software).
        yield f"Name (_PSD, Package () {{ Package () {{ 5, 0, {cpu}, 0xFC, 1 }} }})"
        yield "}"
    yield "}"


def capacities(name):
    for cpu, states in enumerate(MACHINES[name]):
        yield f"{cpu} {1024 * max(states) // top_mhz(name)}"


if __name__ == "__main__":
    print("\n".join((capacities if sys.argv[1] in ARM64 else ssdt)(sys.argv[1])))
