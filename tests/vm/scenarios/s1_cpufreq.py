# SPDX-License-Identifier: GPL-2.0-or-later
"""[asymmetry] method = cpufreq: CPUs are as slow as configured, as a loop on each shows, and get their limits back."""
import statistics
import time

TITLE = "CPUs made slow by cpufreq, and given back what they had"
MACHINE = "flat"
SLOW, SLOW_MHZ = 4, 1400
# asymd is 15 times as slow here. It samples seldom, or it would take half of the slow CPU on which it runs.
CONFIG = f"""[asymd]
policy = pa
interval = 1s
cpu_budget = 100
[asymmetry]
method = cpufreq
slow = {SLOW}
slow_speed = {SLOW_MHZ}MHz"""
WITHOUT = "[asymd]\npolicy = pa\ncpu_budget = 100"
CPUFREQ = "/sys/devices/system/cpu/cpu{}/cpufreq/"
# Limits of the administrator. They differ from those after a boot, so that the test sees which of them asymd restores.
OWN = {6: ("scaling_min_freq", 1050000), 3: ("scaling_max_freq", 2100000), 7: ("scaling_min_freq", 1750000)}
SECONDS, SKIP = 8, 3


def read(s):
    """Governor, minimum and maximum of each CPU."""
    files = " ".join(CPUFREQ.format("$c") + f"scaling_{name}" for name in ("governor", "min_freq", "max_freq"))
    lines = s.sh(f"for c in 0 1 2 3 4 5 6 7; do echo $(cat {files}); done").splitlines()
    return [tuple(line.split()) for line in lines]


def slow_cpus(state):
    return [cpu for cpu, (_, low, high) in enumerate(state) if low == high == str(1000 * SLOW_MHZ)]


def measure(s):
    """Steps of a loop on each CPU per microsecond of its CPU time, all at the same time. asymd samples on a slow CPU meanwhile,
    which it takes from the loop there: by wall time that CPU would look slower than it is."""
    # Speeds hold from before the first to after the last sample: a loop outside of them would be as fast as the host allows.
    with s.speeds():
        s.sh(f"for c in 0 1 2 3 4 5 6 7; do nice -n 10 taskset -c $c /opt/load-rate 1 {SECONDS} {SKIP} >/run/rate.$c & done; "
             "wait")
    lines = [s.sh(f"cat /run/rate.{cpu}").split() for cpu in range(8)]
    rates, owns = ([float(line[i].split("=")[1]) for line in lines] for i in (0, 1))
    s.say("CPU time of the loops: " + " ".join(f"{own:.0%}" for own in owns))
    return [rate / own if own > 0 else 0 for rate, own in zip(rates, owns)]


def mhz(state):
    """MHz of each CPU by its limits: powersave runs at the minimum, performance at the maximum."""
    return [int(low if governor == "powersave" else high) / 1000 for governor, low, high in state]


def check_speeds(s, state):
    """Compares groups of CPUs, because the figure of one CPU has the noise of a busy host with two cores for eight CPUs."""
    rates, due = measure(s), mhz(state)
    unit = statistics.median(rate / f for rate, f in zip(rates, due))
    for cpu in range(8):
        s.say(f"CPU {cpu}: {due[cpu]:4.0f} MHz due, a loop runs as at {rates[cpu] / unit:4.0f}")
    slow = [rates[cpu] for cpu in slow_cpus(state)]
    fast = [rates[cpu] for cpu in range(8) if due[cpu] == max(due)]
    ratio, wanted = statistics.median(fast) / statistics.median(slow), max(due) / SLOW_MHZ
    s.check(f"a loop on a fast CPU is {wanted:.1f} times as fast as on a slow one, within 25 % by the medians",
            f"{ratio:.2f}", abs(ratio / wanted - 1) <= 0.25)
    s.check("and no slow CPU has three quarters of that", f"{max(slow) / statistics.median(fast):.2f} at most",
            max(slow) < 0.75 * statistics.median(fast))


def check_back(s, how, before):
    """Waits up to 5 s: the kernel applies a limit to the policy in a worker, which takes a moment on a busy host."""
    for _ in range(10):
        now = read(s)
        if now == before:
            break
        time.sleep(0.5)
    wrong = [f"CPU {cpu}: {a} -> {b}" for cpu, (a, b) in enumerate(zip(before, now)) if a != b]
    s.check(f"{how} governor, minimum and maximum of every CPU are what they were", "; ".join(wrong) or "the same", not wrong)


def check_held(s, when, before):
    state = read(s)
    slow = slow_cpus(state)
    s.check(f"{when} {SLOW} CPUs are held at {SLOW_MHZ} MHz, whole cores, some in each package", slow,
            len(slow) == SLOW and all(cpu ^ 1 in slow for cpu in slow) and {cpu // 4 for cpu in slow} == {0, 1})
    others = [cpu for cpu in range(8) if cpu not in slow]
    s.check("the others, and every governor, are left as they were", "the same" if untouched(before, state, others) else state,
            untouched(before, state, others))
    return state


def untouched(before, state, others):
    return all(before[cpu] == state[cpu] for cpu in others) and all(a[0] == b[0] for a, b in zip(before, state))


def leave_by_kill(s):
    """An asymd that no unit runs, so that no other asymd restores what it leaves."""
    s.sh("asymd --service --set asymd.state_dir=/run/asymd </dev/null >/run/asymd.log 2>&1 & echo $! >/run/asymd.pid")
    held = s.until("[ $(cat /sys/devices/system/cpu/cpu?/cpufreq/scaling_max_freq | grep -c "
                   f"{1000 * SLOW_MHZ}) = {SLOW} ]", 20)
    s.sh("kill -9 $(cat /run/asymd.pid); sleep 0.5")
    return held and len(slow_cpus(read(s))) == SLOW


def run(s):
    for cpu, (name, khz) in OWN.items():
        s.sh(f"echo {khz} >{CPUFREQ.format(cpu)}{name}")
    s.sh(f"echo powersave >{CPUFREQ.format(7)}scaling_governor")
    before = read(s)
    s.start(CONFIG)
    check_speeds(s, check_held(s, "under the service", before))
    s.sh("systemctl stop asymd")
    check_back(s, "after the stop", before)
    s.start(CONFIG)
    check_held(s, "started again", before)
    s.sh(f"cat >/etc/asymd/asymd.conf <<'EOF'\n{WITHOUT}\nEOF\nsystemctl reload asymd")
    back = s.until(f"! grep -qx {1000 * SLOW_MHZ} /sys/devices/system/cpu/cpu?/cpufreq/scaling_max_freq", 10)
    s.check("a reload without [asymmetry] is in force", "in 10 s" if back else "not in 10 s", back)
    check_back(s, "after that", before)
    s.start(CONFIG)
    pid = s.sh("systemctl show -P MainPID asymd")
    s.sh("systemctl kill -s KILL asymd")
    again = s.until(f"p=$(systemctl show -P MainPID asymd) && [ $p != 0 ] && [ $p != {pid} ] && "
                    "systemctl -q is-active asymd", 20)
    s.check("killed with -9 it is started again", "a new process" if again else "none", again)
    check_held(s, "after that", before)
    s.sh("systemctl stop asymd")
    check_back(s, "and stopped then,", before)
    s.check("killed without a service manager, its limits stay", "held", leave_by_kill(s))
    s.sh("asymd --restore")
    check_back(s, "after asymd --restore", before)
    s.check("killed once more", "held", leave_by_kill(s))
    s.start(WITHOUT)
    check_back(s, "after a start without [asymmetry]", before)
    s.sh("systemctl stop asymd")
