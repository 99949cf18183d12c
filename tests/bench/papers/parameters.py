# SPDX-License-Identifier: GPL-2.0-or-later
"""The parameters that the papers' rows share, with the source of each. They are the same for every policy and every row.

No figure was chosen to bring a row nearer to its source. Further parameters of a row (number of cores, programs) come from its
source, and stand with the row.
"""

# The settings of Debian's Linux 6.1 (CONFIG_HZ=250, base slice 3 ms, wake-up granularity 1 ms), and costs of the size that
# lib/core's own benchmarks and the literature measure: a switch 2 us, a migration some us within an LLC, tens of us across.
# A migration across LLCs loads the working set again: 64 bytes a 6.4 ns line, 100 ns a KiB. These are asymctl sim's defaults;
# they stand here so that a change of a default does not change the rows.
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

# The defaults of asymd. Policies with ticks of 10 ms (Nie & Duan 2012, 3) need a sample at each tick. ESHMP "measures ASTPI for
# thread t_i on core P_i" (its Algorithm 1); asymd measures a thread where it is, unless it is told to do as the source.
ENGINE = """
[asymd]
interval = 100ms
"""
# Morad 2008, 6: the source's kernel counts ready threads "whenever a thread changes its ready state", and moves a thread when its
# application becomes serial; so does asymd with the observer bpf, its default where the kernel has it. "Apart from the above", that
# is from priorities, the source revises the migration of serial threads only: the kernel balances the others.
MORAD_SLOW = """
[asymd]
interval = 100ms
[enforce]
pin = type
"""
MORAD_ENGINE = MORAD_SLOW.replace("100ms\n", "100ms\nobserver = bpf\n")
# At a wake Linux 2.6.18, its baseline (3), looks for an idle CPU among the hardware threads of a core only (kernel/sched.c:
# wake_idle, SD_WAKE_IDLE), and the source disabled them. So a thread wakes on its last CPU, as here if no cores share an LLC.
MORAD_LLC = "llc = 1"
# A program of two threads counts as parallel, too; asymd's default and the source's rule are more than two.
MORAD_TWO = """
[classify]
serial_max_threads = 1
"""
TICKS = """
[asymd]
interval = 10ms
[policy.eshmp]
max_ipc = 3
monitor_on = ordered
[policy.ipc-driven]
monitoring = periodic
"""

# Morad 2008, Figure 3: random() and CHUNK are not given. A parallel phase of 4 G instructions takes about half a second
# on eight cores of 1 G/s, so that 60 s hold about a hundred phases; chunks of 2 ms make the end of a phase 0.4 % of it.
MORAD_PARALLEL = "4G"
MORAD_CHUNK = "2M"

# Roehrich 2007, 5.3: 4.5 s on the fastest core, of speed 8. (32 s on the slowest: its speeds are not quite 1 to 8.)
ROEHRICH_WORK = "36G"

# Saez 2010, 3 and Nie & Duan 2012, 4.1 ran SPEC and other programs, which are not available here. The papers give a class for
# each: memory-intensive, with phases, parallel and to which degree. Each class has one stand-in here. Its figures are typical
# of published ones of such programs, and the same wherever the class appears.
#
# K10: three instructions a cycle, 2 MiB of L3 for four cores. HASS assumes 80 ns for a miss, and so does this machine.
K10_IPC = 3
K10_MISS_NS = 80
K10 = f"""
max_ipc = {K10_IPC}
miss = {K10_MISS_NS}ns
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

# Runs take some ten seconds (the sources' runs take minutes), so that the half second for which asymd lets a new process
# settle is a small part. A phase of a multi-phased program lasts some seconds, and there are two kinds, so that programs that
# begin together are not in the same phase: MP begins with computing, PM with misses. Misses take a third of their time on a slow
# core: Nie & Duan 2012, 4.1 has "a CPU-intensive application that also exhibits some memory-intensive phases".
SINGLE = {
    "CI": ["serial 30G memory=CI"],
    "MI": ["serial 15G memory=MI"],
    "MP": ["loop 5", "serial 7500M memory=CI", "serial 500M memory=MI", "end"],
    "PM": ["loop 5", "serial 500M memory=MI", "serial 7500M memory=CI", "end"],
}
# The same programs with phases a fifth as long, and both kinds of multi-phased programs in the same phase at the start.
SINGLE_SHORT = SINGLE | {kind: ["loop 25", "serial 1500M memory=CI", "serial 100M memory=MI", "end"] for kind in ("MP", "PM")}
# The same, but misses take two thirds of the time on a slow core.
SINGLE_HEAVY = SINGLE | {
    "MP": ["loop 4", "serial 7500M memory=CI", "serial 2G memory=MI", "end"],
    "PM": ["loop 4", "serial 2G memory=MI", "serial 7500M memory=CI", "end"],
}
SINGLE_WORK = {"CI": 30e9, "MI": 15e9, "MP": 40e9, "PM": 40e9}

# Parallel programs: the share of time with one runnable thread, in eight phases. HP is below 7 %, PS above (Saez 2010, 3.1: "the
# fraction of time the application spent running with a single runnable thread"). The work takes twelve slow cores ten seconds.
SEQUENTIAL = {"HP": 0.02, "PS": 0.25}
PARALLEL_WORK = 360e9
PARALLEL_PHASES = 8

# Saez 2010, Figures 1 to 3: programs on the right of its charts have large sequential phases, those on the left "run frequent
# short parallel loops". It gives no lengths. On a slow core a phase takes 0.4 s; 25 ms; a loop 5 ms. The share is that of PS.
SHORT_PHASES = ["loop 100", "parallel 2925M chunk=500k memory=CI", "serial 75M memory=CI", "end"]
SHORT_LOOPS = ["loop 2000", "parallel 195M memory=CI", "end"]

# Snavely 2002, Table 2: the core is eight wide, but an out-of-order core of its kind sustains about five over all threads. The
# two jobs of its Figures 4 to 6: one misses the cache, one does not.
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

# Its Figures 7 to 9: SPEC programs of three kinds: integer programs that hardly miss, and floating-point programs, half of
# which stream through memory. Each kind has as many as in Figure 7. The speed of each alone, in instructions per ns, is
# 1 / (1/ipc + misses).
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
# The same with its Table 2's L3 of 4 MiB and the working sets of the two classes of MEMORY: streams fill it, the others do not.
SMT_L3 = "llc_kib = 4096\n"
SMT_MIX_SETS = SMT_MIX.replace("mpki = 0.5\n", "mpki = 0.5\napki = 2\nworking_set = 256\n").replace(
    "mpki = 2\n", "mpki = 2\napki = 2\nworking_set = 256\n").replace("mpki = 8\n", "mpki = 8\napki = 30\nworking_set = 4096\n")
# A job of its section 6 lasts 2 G cycles alone, 400 of its time slices of 5 M: here 400 samples of 100 ms. Arrivals a second
# and core: the system is stable, with about twice as many jobs under Naive as it has contexts.
SMT_OPEN_ALONE_S = 40
SMT_OPEN_RATE = 0.065

# Seeds: the number of runs of the source, if it gives one; "means" are for means that closed forms give exactly. Four threads of equal
# priority have 24 orders (Nie & Duan 2012, Algorithm 1), of which the seed draws one: so 40. Its variants are paired with five of these.
SEEDS = {"means": 1000, "fig6": 50, "morad": 5, "roehrich": 40, "saez": 5, "nie": 40, "nie varied": 5, "snavely": 5, "lab": 40, "vm": 100}
