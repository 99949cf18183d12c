# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that alternates serial and parallel phases: its serial thread is SP, and for amp_boost only."""
TITLE = "a sequential phase is boosted, for amp_boost"
MACHINE = "big-little"
# amp_boost is half a phase, so that the boost ends before the phase does; sp_boost makes it visible as the nice value.
PHASE_S, BOOST_S, SECONDS = 1, 0.5, 20
CONFIG = f"""[asymd]
cpu_budget = 100
[classify]
amp_boost = {round(BOOST_S * 1000)}ms
[enforce]
fork_holdoff = 1s
[policy.pa]
sp_boost = -5"""
# The main thread's nice value and the time, whenever the value changes; without a process for each look.
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
    """How long each boost lasted, in seconds."""
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
    found = [line for line in s.journal().splitlines() if "sequential phase" in line and "load-phases" in line]
    s.check("sequential phases of the program are in the journal, at least 3", f"{len(found)} lines", len(found) >= 3)
    s.check("they say how much of the boost is left", found[-1] if found else "none",
            bool(found) and f"of {BOOST_S:.2f} s boost left" in found[-1])
    s.check("its main thread is boosted at least 3 times", f"{len(lasted)} times", len(lasted) >= 3)
    seconds = " ".join(f"{each:.2f}" for each in lasted)
    # One interval late at the most, and a look takes long in an emulator; the phase would go on for as long again.
    s.check(f"each boost ends after amp_boost ({BOOST_S} s), before the phase does ({PHASE_S} s)", f"{seconds} s",
            bool(lasted) and all(0.5 * BOOST_S <= each <= 1.6 * BOOST_S for each in lasted))
