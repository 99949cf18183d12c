# SPDX-License-Identifier: GPL-2.0-or-later
"""One serial program beside one of eight threads: under the stock scheduler and under pa, in turn, in one boot."""
import statistics

TITLE = "pa gives a serial program a fast CPU beside a parallel one"
MACHINE = "big-little"
RUNS, SECONDS, SKIP = 5, 9, 4
FAST = range(4, 8)
SLOW_SPEED = 0.5
# The stock scheduler balances by count: with nine threads on eight CPUs, two share one, and a thread alone on a CPU stays
# there. So it tosses a coin, once a run: the serial thread has a fast CPU to itself, with 7/9 * 4/8, or it has not. A median
# of five such is a coin too; what can be asked of each run is what happens when it falls on the wrong side.
RUNS_MAX, WITHOUT_MIN, OWN_CPU = 9, 3, 0.75
# The bar is below 0.95, because steps have the noise of the host.
SPEED_MIN = 0.85
# An emulated CPU needs 15 times as long for a sample. asymd leaves a program alone for fork_holdoff after an exec, too.
CONFIG = """[asymd]
policy = pa
interval = 250ms
cpu_budget = 100
[enforce]
fork_holdoff = 1s"""


def parse(line):
    """rate=R own=PART cpus=C:SHARE,...: the rate; percent of its time on fast CPUs; and its CPU time in units of a fast CPU, by
    the nominal speeds of the CPUs. The guest's clocks count that time without the host's noise."""
    rate, own, cpus = (part.split("=")[1] for part in line.split())
    # A thread that got no CPU time has no CPU.
    shares = [(int(cpu), float(share)) for cpu, share in (c.split(":") for c in cpus.split(",") if c)]
    fast = sum(share for cpu, share in shares if cpu in FAST)
    slow = sum(share for cpu, share in shares if cpu not in FAST)
    return {"rate": float(rate), "fast": fast, "had": float(own) * (fast + SLOW_SPEED * slow) / 100}


def measure(s):
    """Runs both programs together. Returns the figures of parse() for the serial one, and the sums of the other."""
    # The other program begins earlier and ends later. The speeds hold from before the first to after the last sample.
    s.load(f"rate 8 {SECONDS + 4} {SKIP}", "/run/parallel")
    s.load(f"rate 1 {SECONDS} {SKIP}", "/run/serial")
    with s.speeds():
        s.guest.idle(SECONDS + 6)
    s.sh("while pidof load-rate; do sleep 0.2; done")
    parallel = [parse(line) for line in s.sh("cat /run/parallel").splitlines()]
    return {**parse(s.sh("cat /run/serial")),
            "parallel_rate": sum(p["rate"] for p in parallel), "parallel_had": sum(p["had"] for p in parallel)}


ROWS = (("serial: fast CPU had", "had"), ("serial: % of time on fast CPUs", "fast"), ("serial: steps/us", "rate"),
        ("8 threads: fast CPUs had", "parallel_had"), ("8 threads: steps/us", "parallel_rate"))


def row(name, runs):
    for title, key in ROWS:
        cells = " ".join(f"{run[key]:7.2f}" for run in runs)
        yield f"{name:6} {title:31} {cells}   median {middle(runs, key):7.2f}"


def middle(runs, key):
    return statistics.median(run[key] for run in runs)


def measure_alone(s):
    """Steps per microsecond of the serial program with a fast CPU and the machine to itself."""
    with s.speeds():
        return parse(s.sh(f"nice -n 10 taskset -c {FAST[-1]} /opt/load-rate 1 5 2"))["rate"]


def run(s):
    runs, alone = {"stock": [], "pa": []}, []
    for i in range(RUNS_MAX):
        s.sh("systemctl stop asymd")
        runs["stock"].append(measure(s))
        if i < RUNS:
            alone.append(measure_alone(s))
            s.start(CONFIG)
            runs["pa"].append(measure(s))
        without = [run for run in runs["stock"] if run["had"] < OWN_CPU]
        if i + 1 >= RUNS and len(without) >= WITHOUT_MIN:
            break
    for name, each in runs.items():
        for line in row(name, each):
            s.say(line)
    s.say(f"alone  serial: steps/us                {' '.join(f'{rate:7.2f}' for rate in alone)}")
    judge(s, runs, without, statistics.median(alone))


def judge(s, runs, without, alone):
    had, fast, first = middle(runs["pa"], "had"), middle(runs["pa"], "fast"), runs["stock"][:RUNS]
    s.say(f"over the stock scheduler's median of the first {RUNS} runs: {had / middle(first, 'had'):.2f}, by steps "
          f"{middle(runs['pa'], 'rate') / middle(first, 'rate'):.2f}; over its mean "
          f"{had / statistics.mean(run['had'] for run in runs['stock']):.2f}")
    s.check("under pa the serial thread is on fast CPUs for at least 95 % of its time", f"{fast:.1f} %", fast >= 95)
    s.check("and has, by its CPU clock, at least 0.95 of a fast CPU", f"{had:.3f}", had >= 0.95)
    speed = middle(runs["pa"], "rate") / alone
    s.check(f"and by steps at least {SPEED_MIN} of its speed alone", f"{speed:.2f}", speed >= SPEED_MIN)
    if s.check(f"the stock scheduler leaves it without a fast CPU of its own in {WITHOUT_MIN} runs of at most {RUNS_MAX}",
               f"{len(without)} of {len(runs['stock'])}", len(without) >= WITHOUT_MIN):
        gain = middle(runs["pa"], "rate") / middle(without, "rate")
        s.check("and over the median of those pa makes it 1.5 times as fast, by steps", f"{gain:.2f}", gain >= 1.5)
