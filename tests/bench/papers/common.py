# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared functions of the rows: scenarios as text, numbers as words."""
import statistics

import parameters as P


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else float("nan")


# The 97.5 % quantiles of Student's t, by degrees of freedom. Beyond the table, the last one makes intervals too wide.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
         2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)


def sure(values):
    """Returns half of the 95 % confidence interval of the mean of at least two values."""
    return T_975[min(len(values) - 1, len(T_975)) - 1] * statistics.stdev(values) / len(values) ** 0.5


def chance(values, runs):
    """Returns how far a mean of so many runs strays, 95 %, by all the values that were simulated."""
    return 1.96 * statistics.stdev(values) / runs ** 0.5


def percent(x, digits=1):
    return f"{100 * x:+.{digits}f} %"


def machine(counts, speeds, more=""):
    # In the papers, only cores of the fastest type are fast.
    return f"[machine]\ncounts = {counts}\nspeeds = {speeds}\nfast_from = 100%\n{more}\n"


def run_section(duration="60s", until="time", runs=3, alone=True):
    return f"[run]\nduration = {duration}\nuntil = {until}\nruns = {runs}\nalone = {'yes' if alone else 'no'}\n"


def program(name, steps, **keys):
    lines = [f'[program "{name}"]'] + [f"{k} = {v}" for k, v in keys.items()] + [f"step = {s}" for s in steps]
    return "\n".join(lines) + "\n"


# The line of a row that says what its policies do to the work of all programs.
WORK = "Machine's work against the stock scheduler, least and most of the row's scenarios: "

SERIAL = ["serial 100000G"]


def parallel(chunk):
    return [f"parallel 100000G chunk={chunk}"]


# Each target, in words without ": ": whether it is met, and the current figure.
TARGETS = {}


def target(what, met, stands):
    TARGETS[what] = met, stands


# Each row of a table for which its source states a direction or a ranking: whether ours is the same.
RANKED = {}


def ranked(row, holds):
    RANKED[row] = bool(holds)


def k10(counts, speeds, more=""):
    """A machine with speeds in GHz: a machine's speeds are relative, and its frequency is that of speed 1."""
    return machine(counts, speeds, f"frequency = 1\n{P.K10}{more}")
