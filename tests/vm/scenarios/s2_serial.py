# SPDX-License-Identifier: GPL-2.0-or-later
"""One serial program beside one of eight threads: under the stock scheduler and under pa, in turn, in one boot."""
import statistics

TITLE = "pa gives a serial program a fast CPU beside a parallel one"
MACHINE = "big-little"
RUNS, SECONDS, SKIP = 5, 12, 5
FAST = range(4, 8)
# An emulated CPU needs 15 times as long for a look. A program is held off from its exec on, as after a fork.
CONFIG = """[asymd]
policy = pa
interval = 250ms
cpu_budget = 100
[enforce]
fork_holdoff = 1s"""


def parse(line):
    """rate=R cpus=C:SHARE,...: the rate, and the share of time on fast CPUs in percent."""
    rate, cpus = (part.split("=")[1] for part in line.split())
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


def run(s):
    runs = {"stock": [], "pa": []}
    for _ in range(RUNS):
        s.sh("systemctl stop asymd")
        runs["stock"].append(measure(s))
        s.start(CONFIG)
        runs["pa"].append(measure(s))
    for name, each in runs.items():
        for line in row(name, each):
            s.say(line)
    stock, steered = (statistics.median(run[0] for run in runs[name]) for name in ("stock", "pa"))
    fast = statistics.median(run[1] for run in runs["pa"])
    s.check("under pa the serial thread is on fast CPUs for at least 95 % of its time", f"{fast:.1f} %", fast >= 95)
    s.check("and at least 1.5 times as fast as under the stock scheduler", f"{steered / stock:.2f}", steered >= 1.5 * stock)
