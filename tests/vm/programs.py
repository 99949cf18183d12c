# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs of Debian, on CPUs that have their speeds as a share of a host's core: rows of real.py."""
import collections
import re
import statistics

PACKS = ("programs", "compiler")
# none: asymd observes, and steers nothing. What an emulated CPU needs for that is 15 times as much as on a real one.
MODES = ("stock", "none", "asym")
# Only a guest that hangs takes so much longer than a program.
HANGS_S = 300
# The command prints figure=NUMBER. more: whether more of it is better.
Program = collections.namedtuple("Program", "title command unit more", defaults=("s", False))
# Sources, data and a database, and each program once, because the first run reads it from the share.
PREPARE = """mkdir -p /sys/fs/cgroup/session-1.scope /run/real/db && cd /run/real && chown 65534 db && chmod 1777 .
cat /usr/bin/* | head -c 8000000 >data
for ((i = 0; i < 16; i++)); do
    for ((k = 0; k < 12; k++)); do
        echo "int f${i}_$k(int n) { int s = $k; for (int j = 0; j < n; j++) s += (s << 3 ^ j) % (n + $i + 1); return s; }"
    done >f$i.c
done
echo "int f0_0(int n); int main(void) { return f0_0(3) > 100; }" >main.c
printf 'CFLAGS = -O2\\nprogram: %s\\n\\t$(CC) -o $@ $^\\n' "$(echo f{0..15}.o main.o)" >Makefile
PATH=/usr/lib/postgresql/15/bin:$PATH; as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
as initdb -U postgres -D db --no-locale -A trust >/dev/null && as pg_ctl -D db -w -t 300 -o '-k /run/real -c fsync=off' -l log start >/dev/null &&
pgbench -h /run/real -U postgres -i -q postgres >/dev/null 2>&1 && make -s CC=gcc f0.o || exit 1
for each in xz 7z sysbench x264 cyclictest; do $each --help >/dev/null 2>&1; done; true"""
# Each program is a job of a login session.
BEGIN = """cd /run/real; PATH=/usr/lib/postgresql/15/bin:$PATH
job() { (echo $BASHPID >/sys/fs/cgroup/session-1.scope/cgroup.procs; exec setsid nice -n 10 "$@"); }
timed() { local begun=$EPOCHREALTIME; job "$@" >/dev/null 2>&1 && awk "BEGIN { print \\"figure=\\" $EPOCHREALTIME - $begun }"; }
# What asymd used meanwhile, per cent of a CPU.
used() { local p; p=$(pidof asymd) && awk '{ print $14 + $15 }' /proc/$p/stat; }
before=$(used) since=${EPOCHREALTIME/./}
"""
END = """
[ -z "$before" ] || echo "cost=$((1000000 * ($(used) - before) / (${EPOCHREALTIME/./} - since)))"
"""
SYSBENCH = """job sysbench %s --threads=%d --time=10 run | awk '/total number of events/ { n = $5 } /total time:/ { t = $3 + 0 }
END { print "figure=" n / t }'"""
PGBENCH = """rm -f pgbench_log.*; job pgbench -h /run/real -U postgres -n -S -c 8 -j 2 -T 10 -l postgres >out 2>/dev/null
awk '/^tps/ { print "figure=" $3 }' out
cat pgbench_log.* | awk '{ print $3 }' | sort -n | awk '{ v[NR] = $1 } END { print "p99=" v[int(NR * 0.99)] / 1000 }'"""
PGBENCH_LATE = PGBENCH.replace("figure=", "tps=").replace("p99=", "figure=")


def beside(other, command):
    """The command, while the other one runs again and again."""
    return f"rm -f end; job sh -c 'while [ ! -e end ]; do {other}; done' >/dev/null & {command}\ntouch end; wait"


PROGRAMS = {
    "make": Program("`make -j8` alone", "rm -f *.o program; timed make -s -j8 CC=gcc"),
    "xz": Program("`xz -T8`", "timed xz -T8 -1 --block-size=256KiB -c data"),
    "7z": Program("`7z a -mmt=8`", "rm -f data.7z; timed 7z a -mmt=8 -mx=1 -m0=lzma2:c=256k data.7z data"),
    "x264": Program("`x264 --threads 8`, 60 frames",
                    "timed x264 --demuxer raw --input-res 320x240 --frames 60 --threads 8 --preset veryfast -o /dev/null data"),
    "sysbench-cpu": Program("`sysbench cpu`, 8 threads", SYSBENCH % ("cpu", 8), "events a second", True),
    "sysbench-threads": Program("`sysbench threads`, 16 threads", SYSBENCH % ("threads", 16), "events a second", True),
    "sysbench-mutex": Program("`sysbench mutex`, 8 threads",
                              "timed sysbench mutex --threads=8 --mutex-loops=20000 --mutex-locks=1500 run"),
    **{f"npb-{kernel}-{wait}": Program(f"OpenMP, 8 threads, in the manner of NPB {kernel.upper()}; who waits {how}",
                                       f"export OMP_WAIT_POLICY={wait}; timed /opt/load-npb {kernel} {rounds}")
       for kernel, rounds in (("ep", 250), ("cg", 75), ("mg", 300)) for wait, how in (("passive", "sleeps"), ("active", "spins"))},
    "npb-cg-gzip": Program("CG, who waits sleeps, beside gzip",
                           beside("gzip -c data", "export OMP_WAIT_POLICY=passive; timed /opt/load-npb cg 75")),
    "pgbench": Program("`pgbench -S`, 8 clients, 2 threads", PGBENCH, "transactions a second", True),
    "pgbench-late": Program("the same, 99 % of its latencies are below", PGBENCH_LATE, "ms"),
    "pgbench-late-xz": Program("the same beside `xz -T8`", beside("xz -T8 -1 --block-size=256KiB -c data", PGBENCH_LATE), "ms"),
}
HEAD = "| program | figure | stock | none | asym | asym against none | asym against stock | asymd's own time | runs |\n|" + " --- |" * 9


def measure(s, program):
    with s.speeds():
        text = s.sh(BEGIN + program.command + END)
    return {key: float(value) for key, value in re.findall(r"^(\w+)=([\d.]+)$", text, re.MULTILINE)}


def gain(program, stock, asym):
    """Per cent by which asym does more in a second, or the same in less."""
    return 100 * ((asym / stock if program.more else stock / asym) - 1)


def line(name, runs):
    program = PROGRAMS[name]
    n = min(map(len, runs.values()))
    runs = {"none": [], **runs}
    values = {mode: [one["figure"] for one in each[:n]] for mode, each in runs.items()}
    cells = [f"{statistics.mean(values[mode]):.2f}" if values[mode] else "" for mode in MODES]
    for base in ("none", "stock"):
        gains = [gain(program, *pair) for pair in zip(values[base], values["asym"])]
        cells.append(f"{statistics.mean(gains):+.1f} ({min(gains):+.1f} to {max(gains):+.1f}) %" if gains else "")
    cost = statistics.mean(one["cost"] for one in runs["asym"][:n])
    return f"| {name}: {program.title} | {program.unit} | {' | '.join(cells)} | {cost:.0f} % of a CPU | {n} |"
