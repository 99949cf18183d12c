# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU goes offline and comes back while its threads are steered."""
import time

TITLE = "CPU 5 offline and online again while steering"
MACHINE = "big-little"
THREADS = 10
CPU5 = "/sys/devices/system/cpu/cpu5/online"


def masks(s):
    """Affinity lists of all threads of the loads."""
    text = s.sh("for p in $(pidof load-rate); do grep -h Cpus_allowed_list: /proc/$p/task/*/status; done")
    return [line.split()[1] for line in text.splitlines()]


def cpus(mask):
    ranges = [part.split("-") for part in mask.split(",")]
    return {cpu for r in ranges for cpu in range(int(r[0]), int(r[-1]) + 1)}


def steered(s):
    return [m for m in masks(s) if cpus(m) != set(range(8))]


def wait_steered(s):
    for _ in range(20):
        if len(steered(s)) >= 8:
            break
        time.sleep(0.5)
    return steered(s)


def run(s):
    s.start("[asymd]\ncpu_budget = 50")
    s.load("rate 1 200")
    s.load("rate 9 200")
    before = wait_steered(s)
    s.check("threads are steered, one of them with CPU 5 in its mask", " ".join(before), any(5 in cpus(m) for m in before))
    s.sh(f"echo 0 >{CPU5}")
    offline = s.until("journalctl -u asymd | grep -q 'the usable CPUs are now 0-4,6-7'", 15)
    s.check("asymd notices that CPU 5 is gone", "in the journal" if offline else "not in the journal", offline)
    time.sleep(3)
    without = steered(s)
    s.check("masks are within the CPUs left", " ".join(without),
            len(without) >= 8 and all(5 not in cpus(m) for m in without))
    s.sh(f"echo 1 >{CPU5}")
    online = s.until("journalctl -u asymd | grep -q 'the usable CPUs are now 0-7'", 15)
    s.check("asymd notices that CPU 5 is back", "in the journal" if online else "not in the journal", online)
    time.sleep(3)
    after = wait_steered(s)
    s.check("CPU 5 is used again", " ".join(after), len(after) >= 8 and any(5 in cpus(m) for m in after))
    s.check("no thread is lost", f"{len(masks(s))} of {THREADS}", len(masks(s)) == THREADS)
    journal = s.journal()
    wrong = [line for line in journal.splitlines() if "left alone" in line or "annot" in line or "rror" in line]
    s.check("the journal shows no error and no thread given up", wrong[0] if wrong else "none", not wrong)
    s.sh("systemctl stop asymd")
    left = masks(s)
    s.check("after the stop every mask is whole again", " ".join(sorted(set(left))), set(left) == {"0-7"})
