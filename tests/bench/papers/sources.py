# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of the papers that the simulator and the virtual machine are both compared with, and what follows from their rules."""

# Roehrich 2007, Table 5.2, by instances and strategy: Total and Avg in seconds, and Gain in per cent (Avg against that of "none").
TABLE_5_2 = {
    1: {"none": (19.34, 13.85), "response-time": (7.12, 6.59, 52.4), "throughput": (12.23, 7.21, 47.9), "priority": (12.26, 8.40, 39.3)},
    2: {"none": (19.36, 12.74), "response-time": (7.87, 6.15, 51.7), "throughput": (10.38, 7.49, 41.2), "priority": (17.09, 8.65, 32.1)},
    4: {"none": (19.36, 11.09), "response-time": (8.80, 6.14, 44.7), "throughput": (12.26, 7.52, 32.2), "priority": (13.98, 7.72, 30.4)},
    8: {"none": (35.64, 12.18), "response-time": (10.26, 6.68, 45.1), "throughput": (16.78, 8.70, 28.6), "priority": (17.31, 8.87, 27.2)},
    10: {"none": (33.50, 10.95), "response-time": (12.21, 6.74, 38.4), "throughput": (15.40, 8.05, 26.4), "priority": (15.71, 8.26, 24.6)},
    12: {"none": (35.16, 10.31), "response-time": (13.72, 6.74, 34.6), "throughput": (15.60, 8.09, 21.5), "priority": (23.53, 8.70, 15.6)},
}

# Roehrich 2007, 4.1.1: CPUs compare their queues "at least every two to three seconds". The middle, in seconds.
PACE_S = 2.5

# The machine of Table 5.2.
SPEEDS = range(1, 9)


def ideal(n):
    """Returns the number of copies on each CPU, if each goes where load + 1 over speed is least: Roehrich 2007, 3.1.1, from the start."""
    load = [0] * len(SPEEDS)
    for _ in range(n):
        load[min(range(len(SPEEDS)), key=lambda cpu: ((load[cpu] + 1) / SPEEDS[cpu], -SPEEDS[cpu]))] += 1
    return load


def least_total(n, work):
    """
    Returns the least Total of n copies of equal start (Horvath, Lam and Sethi 1977): the work of all on all CPUs, or of k copies on
    the k fastest, whichever takes longer. work: of a copy, in seconds of a CPU of speed 1.
    """
    speeds = sorted(SPEEDS, reverse=True)
    return max(n * work / sum(speeds), *(k * work / sum(speeds[:k]) for k in range(1, min(n, len(speeds) - 1) + 1)))
