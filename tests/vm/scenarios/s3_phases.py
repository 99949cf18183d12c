# SPDX-License-Identifier: GPL-2.0-or-later
"""A program alternates serial and parallel phases: its serial thread is SP (serial phase), for amp_boost only."""
import re

TITLE = "a serial phase is boosted, for amp_boost"
MACHINE = "big-little"
# amp_boost is half a phase, so that the boost ends before the phase does; sp_boost makes it visible as the nice value.
PHASE_S, BOOST_S, SECONDS = 1, 0.5, 20
CONFIG = f"""[asymd]
cpu_budget = 100
log_level = debug
[classify]
amp_boost = {round(BOOST_S * 1000)}ms
[enforce]
fork_holdoff = 1s
[policy.pa]
sp_boost = -5"""
# Prints the time and the main thread's nice value whenever the value changes. It starts no process for each sample.
WATCH = r"""p=$(pidof load-phases)
mkfifo /run/never && exec 4<>/run/never
while read -r line 2>/dev/null </proc/$p/stat; do
    set -- ${line##*) }
    [ "${17}" = "$last" ] || echo "$EPOCHREALTIME ${17}"
    last=${17}
    read -r -t 0.02 <&4
done
true
"""


def boosts(text):
    """The length of each boost in seconds."""
    begun, lasted = None, []
    for line in text.splitlines():
        time, nice = float(line.split()[0]), int(line.split()[1])
        if nice < 0:
            begun = time
        elif begun:
            lasted.append(time - begun)
            begun = None
    return lasted


def run(s):
    s.start(CONFIG)
    s.load(f"phases 8 {PHASE_S * 1000} {SECONDS}")
    lasted = boosts(s.sh(WATCH))
    found = [line for line in s.journal().splitlines() if "serial phase" in line and "load-phases" in line]
    s.check("serial phases of the program are in the journal, at least 3", f"{len(found)} lines", len(found) >= 3)
    # asymd may move the thread again within a phase. The line then has the rest of the boost.
    figures = [float(figure) for figure in re.findall(r"on a fast CPU for up to ([0-9.]+) s", "\n".join(found))]
    s.check(f"they say how long the boost lasts: {BOOST_S:g} s where it begins, and never more",
            f"{figures.count(BOOST_S)} times of {len(figures)}, {max(figures, default=0):g} s at most",
            figures.count(BOOST_S) >= 3 and max(figures) == BOOST_S and len(figures) == len(found))
    s.check("its main thread is boosted at least 3 times", f"{len(lasted)} times", len(lasted) >= 3)
    seconds = " ".join(f"{each:.2f}" for each in lasted)
    # A boost ends at most one interval late, and a sample takes long in an emulator. A phase lasts twice as long as a boost.
    s.check(f"each boost ends after amp_boost ({BOOST_S} s), before the phase does ({PHASE_S} s)", f"{seconds} s",
            bool(lasted) and all(0.5 * BOOST_S <= each <= 1.6 * BOOST_S for each in lasted))
