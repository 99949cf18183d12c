# SPDX-License-Identifier: GPL-2.0-or-later
"""What the papers' rows share, fixed once, for every policy and every row; with where each figure comes from.

Nothing here was chosen to bring a row nearer to its source. What a row needs beyond this (how many cores, which programs)
is what its source says of it, and stands with the row.
"""

# What Linux 6.1 of Debian does (CONFIG_HZ=250, base slice 3 ms, wake-up granularity 1 ms), and costs in the order of what
# lib/core's own benchmarks and the literature measure: a switch 2 us, a migration some us within an LLC, tens of us across.
# The working set that is fetched anew across LLCs: 64 bytes a 6.4 ns line, 100 ns a KiB. These are asymctl sim's defaults;
# they are written out so that a change of a default does not change the rows.
SCHEDULER = """
[scheduler]
tick = 4ms
slice = 3ms
wake_margin = 1ms
balance = 64ms
switch_cost = 2us
tick_cost = 1us
migrate_llc = 5us
migrate_across = 20us
migrate_node = 40us
refill = 100
"""

# As asymd is shipped. Policies that think in ticks of 10 ms (Nie & Duan 2012, 3) need a look at each.
ENGINE = """
[asymd]
interval = 100ms
"""
TICKS = """
[asymd]
interval = 10ms
[policy.eshmp]
max_ipc = 3
"""

# Morad 2008, Figure 3: random() and CHUNK are not given. A parallel phase of 4 G instructions takes about half a second
# on eight cores of 1 G/s, so that 60 s hold about a hundred phases; chunks of 2 ms make the end of a phase 0.4 % of it.
MORAD_PARALLEL = "4G"
MORAD_CHUNK = "2M"

# Roehrich 2007, 5.3: 4.5 s on the fastest core, of speed 8. (32 s on the slowest: its speeds are not quite 1 to 8.)
ROEHRICH_WORK = "36G"

# Saez 2010, 3 and Nie & Duan 2012, 4.1 ran SPEC and others, which are not here. What they say of them is a class: what is
# memory-intensive, what has phases, what is parallel and how much. One stand-in a class; its figures are typical of what
# is published of such programs, and the same wherever the class appears.
#
# K10: three instructions a cycle, 2 MiB of L3 for four cores; HASS takes 80 ns for a miss, and so does the machine.
K10 = """
max_ipc = 3
miss = 80ns
llc_kib = 2048
"""
MEMORY = """
[memory CI]
mpki = 0.5
apki = 2
working_set = 256
[memory MI]
mpki = 20
apki = 30
working_set = 4096
"""

# Runs take some ten seconds, so that the half second for which asymd lets a new process settle is little of it: those of the
# sources take minutes. A phase of a multi-phased program lasts 0.4 to 0.9 s on the slowest core, ten times the monitoring
# turn of 50 ms.
SINGLE = {
    "CI": ["serial 30G memory=CI"],
    "MI": ["serial 15G memory=MI"],
    "MP": ["loop 20", "serial 1500M memory=CI", "serial 400M memory=MI", "end"],
}
SINGLE_WORK = {"CI": 30e9, "MI": 15e9, "MP": 38e9}

# The same two with an IPC that wavers by more than the 10 % that IPC-Driven takes for a new phase, every 0.1 to 0.8 s.
WAVER_MEMORY = """
[memory CI2]
ipc = 2.6
mpki = 0.9
apki = 2
working_set = 256
[memory MI2]
mpki = 24
apki = 30
working_set = 4096
"""
WAVER = {
    "CI~": ["loop 20", "serial 750M memory=CI", "serial 750M memory=CI2", "end"],
    "MI~": ["loop 20", "serial 375M memory=MI", "serial 375M memory=MI2", "end"],
}

# Parallel ones: the share of their work that is sequential, in eight phases. HP is below 7 %, PS above (Saez 2010, 3.1).
SEQUENTIAL = {"HP": 0.02, "PS": 0.25}
PARALLEL_WORK = 120e9
PARALLEL_PHASES = 8

# Snavely 2002, Table 2: eight wide, but an out-of-order core of its kind sustains about five of them over all threads; the
# two jobs of its Figures 4 to 6, one that misses and one that does not.
SMT = """max_ipc = 5
smt_loss = 0.05
miss = 80ns
"""
SMT_JOBS = """
[memory hydro]
ipc = 4
mpki = 2
[memory li]
ipc = 4.5
mpki = 0.3
"""

# Its Figures 7 to 9: SPEC programs of three kinds, integer ones that hardly miss, and floating-point ones of which half
# stream through memory; as many of a kind as Figure 7 has. What each does alone, in instructions per ns: 1 / (1/ipc + misses).
SMT_MIX = """
[memory INT]
ipc = 3
mpki = 0.5
[memory MID]
ipc = 4
mpki = 2
[memory FP]
ipc = 4
mpki = 8
"""
SMT_MIX_JOBS = {"turbo": "MID", "gcc": "INT", "go": "INT", "hydro": "MID", "su2cor": "FP", "swim": "FP", "tomcatv": "FP",
                "wave": "MID"}
SMT_MIX_ALONE = {"INT": 1 / (1 / 3 + 0.04), "MID": 1 / (1 / 4 + 0.16), "FP": 1 / (1 / 4 + 0.64)}
# A job of its section 6 lasts 2 G cycles alone, 400 of its time slices of 5 M: here 400 looks of 100 ms. Arrivals a second
# and core: the system is stable, with about twice as many jobs under Naive as it has contexts.
SMT_OPEN_ALONE_S = 40
SMT_OPEN_RATE = 0.065

# A kernel's own threads, in kernel.py: on each CPU one that runs about every 100 ms for about 0.5 M instructions.
KERNEL_THREAD = ["io 100ms exponential", "serial 500k exponential"]

# Seeds: the sources' own number of runs where they give one.
SEEDS = {"fig6": 50, "morad": 5, "roehrich": 40, "saez": 5, "nie": 5, "snavely": 5, "lab": 40, "vm": 100}
