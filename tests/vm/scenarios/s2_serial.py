# SPDX-License-Identifier: GPL-2.0-or-later
"""One serial program beside one of eight threads: under the stock scheduler and under pa, in turn, in one boot."""
import statistics

TITLE = "pa gives a serial program a fast CPU beside a parallel one"
MACHINE = "big-little"
RUNS, SECONDS, SKIP = 5, 12, 5
FAST = range(4, 8)
# The stock scheduler balances by count: with nine threads on eight CPUs, two share one, and whoever is alone on a CPU stays
# there. So it tosses a coin, once a run: the serial thread has a fast CPU to itself, with 7/9 * 4/8, or it has not. A median
# of five such is a coin too; what can be asked of each run is what happens when it falls on the wrong side.
RUNS_MAX, WITHOUT_MIN, OWN_CPU = 12, 3, 0.75
# An emulated CPU needs 15 times as long for a look. A program is held off from its exec on, as after a fork.
CONFIG = """[asymd]
policy = pa
interval = 250ms
cpu_budget = 100
[enforce]
fork_holdoff = 1s"""


def parse(line):
    """rate=R own=PART cpus=C:SHARE,...: the rate, and the share of time on fast CPUs in percent."""
    rate, _, cpus = (part.split("=")[1] for part in line.split())
    shares = (c.split(":") for c in cpus.split(","))
    return float(rate), sum(float(share) for cpu, share in shares if int(cpu) in FAST)


def measure(s):
    """Both programs together: of the serial one its rate and share of fast time, and the sum of the other's rates."""
    # The other begins earlier and ends later, and the speeds hold from before the first to after the last look.
    s.load(f"rate 8 {SECONDS + 4} {SKIP}", "/run/parallel")
    s.load(f"rate 1 {SECONDS} {SKIP}", "/run/serial")
    with s.speeds():
        s.guest.idle(SECONDS + 6)
    s.sh("while pidof load-rate; do sleep 0.2; done")
    rate, fast = parse(s.sh("cat /run/serial"))
    parallel = [parse(line)[0] for line in s.sh("cat /run/parallel").splitlines()]
    return rate, fast, sum(parallel)


def row(name, runs):
    for i, title in enumerate(("serial: steps/us", "serial: % of time on fast CPUs", "8 threads: steps/us")):
        cells = " ".join(f"{run[i]:7.2f}" for run in runs)
        yield f"{name:6} {title:31} {cells}   median {statistics.median(run[i] for run in runs):7.2f}"


def measure_alone(s):
    """Speed of the serial program with a fast CPU and the machine to itself."""
    with s.speeds():
        return parse(s.sh(f"nice -n 10 taskset -c {FAST[-1]} /opt/load-rate 1 8 2"))[0]


def run(s):
    runs, alone = {"stock": [], "pa": []}, []
    for i in range(RUNS_MAX):
        s.sh("systemctl stop asymd")
        runs["stock"].append(measure(s))
        if i < RUNS:
            alone.append(measure_alone(s))
            s.start(CONFIG)
            runs["pa"].append(measure(s))
        without = [rate for rate, _, _ in runs["stock"] if rate < OWN_CPU * statistics.median(alone)]
        if i + 1 >= RUNS and len(without) >= WITHOUT_MIN:
            break
    for name, each in runs.items():
        for line in row(name, each):
            s.say(line)
    judge(s, runs, statistics.median(alone), without)


def judge(s, runs, alone, without):
    steered = statistics.median(rate for rate, _, _ in runs["pa"])
    stock = statistics.median(rate for rate, _, _ in runs["stock"][:RUNS])
    fast = statistics.median(share for _, share, _ in runs["pa"])
    s.say(f"alone on a fast CPU {alone:.2f}; over the stock scheduler's median of the first {RUNS} runs: {steered / stock:.2f}; "
          f"without a fast CPU of its own in {len(without)} of its {len(runs['stock'])}")
    s.check("under pa the serial thread is on fast CPUs for at least 95 % of its time", f"{fast:.1f} %", fast >= 95)
    s.check("and has at least 0.95 of its speed alone", f"{steered / alone:.2f}", steered >= 0.95 * alone)
    if s.check(f"the stock scheduler leaves it without a fast CPU of its own in {WITHOUT_MIN} runs of at most {RUNS_MAX}",
               f"{len(without)} of {len(runs['stock'])}", len(without) >= WITHOUT_MIN):
        gain = steered / statistics.median(without)
        s.check("and is then at most two thirds as fast as pa", f"pa {gain:.2f} times as fast", gain >= 1.5)
