# SPDX-License-Identifier: GPL-2.0-or-later
"""A program alternates serial and parallel phases: its serial thread is SP (serial phase), and has a fast CPU to itself."""
import re

TITLE = "a serial phase has a fast CPU to itself, and counts as one for amp_boost"
MACHINE = "big-little"
# amp_boost is half a phase. After it the thread mostly keeps its CPU, because hardly another program wants one. exclusive_from: it
# has a CPU to itself whatever it did in the phase before, in which eight threads and an emulator leave it little.
PHASE_S, BOOST_S, SECONDS, FAST = 1, 0.5, 20, ("4", "5", "6", "7")
SHARE_MIN = 80
CONFIG = f"""[asymd]
cpu_budget = 100
log_level = debug
[classify]
amp_boost = {round(BOOST_S * 1000)}ms
[enforce]
fork_holdoff = 1s
exclusive_from = 0%"""
# Prints the time and the main thread's CPUs whenever they change. It starts no process for each sample.
WATCH = r"""p=$(pidof load-phases)
mkfifo /run/never && exec 4<>/run/never
while [ -d /proc/$p ]; do
    while read -r key cpus && [ "$key" != Cpus_allowed_list: ]; do :; done 2>/dev/null </proc/$p/status
    [ "$cpus" = "$last" ] || echo "$EPOCHREALTIME $cpus"
    last=$cpus
    read -r -t 0.1 <&4
done
true
"""


def alone(text):
    """How often it had one of the fast CPUs to itself, and for how many seconds each time."""
    begun, lasted = None, []
    for line in text.splitlines():
        time, cpus = float(line.split()[0]), line.split()[1:]
        if cpus and cpus[0] in FAST:
            begun = begun or time
        elif begun:
            lasted.append(time - begun)
            begun = None
    return lasted


def share(s):
    """Percent of its serial phases in which the main thread is on a fast CPU, once the program has ended."""
    said = s.sh("while pidof load-phases >/dev/null; do sleep 0.5; done; cat /run/phases")
    on = {cpu: int(ms) for cpu, ms in re.findall(r"(\d+):(\d+)", said)}
    return 100 * sum(on.get(cpu, 0) for cpu in FAST) / sum(on.values())


def run(s):
    load = f"phases 8 {PHASE_S * 1000} {SECONDS}"
    s.sh("systemctl stop asymd")
    s.load(load, "/run/phases")
    stock = share(s)
    s.start(CONFIG)
    s.load(load, "/run/phases")
    lasted = alone(s.sh(WATCH))
    steered = share(s)
    found = [line for line in s.journal().splitlines() if "(load-phases): serial phase: on" in line]
    s.check("serial phases of the program are in the journal, at least 3", f"{len(found)} lines", len(found) >= 3)
    # asymd may move the thread again within a phase. The line then has the rest of the boost.
    figures = [float(figure) for figure in re.findall(r"on a fast CPU for up to ([0-9.]+) s", "\n".join(found))]
    s.check(f"they say how long the boost lasts: {BOOST_S:g} s where it begins, and never more",
            f"{figures.count(BOOST_S)} times of {len(figures)}, {max(figures, default=0):g} s at most",
            figures.count(BOOST_S) >= 3 and max(figures) == BOOST_S and len(figures) == len(found))
    seconds = " ".join(f"{each:.2f}" for each in lasted)
    s.check(f"its main thread has a fast CPU to itself at least 3 times, and loses it again (phases: {PHASE_S} s)",
            f"{len(lasted)} times, {seconds} s", len(lasted) >= 3)
    s.check(f"its serial phases are on fast CPUs for at least {SHARE_MIN} % of their time (stock: {stock:.0f} %)", f"{steered:.0f} %",
            steered >= SHARE_MIN)
