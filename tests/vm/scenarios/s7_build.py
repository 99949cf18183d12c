# SPDX-License-Identifier: GPL-2.0-or-later
"""gzip beside make -j8, real programs both: under the stock scheduler and under asymd with its default grouping, in turn."""
import json
import re

TITLE = "a serial program beside a build has a fast CPU, and so has the link at its end"
MACHINE = "big-little"
PACKS = ("compiler",)
SCENARIO_S = 2400
RUNS, FILES, FAST = 3, 24, range(4, 8)
LOGIN = "/sys/fs/cgroup/session-1.scope"
# A sample takes an emulated CPU 15 times as long. All else is the default.
CONFIG = """[asymd]
cpu_budget = 100
log_level = debug"""
SOURCES = f"""mkdir -p {LOGIN} /run/build && cd /run/build
for ((i = 0; i < {FILES}; i++)); do
    for ((k = 0; k < 25; k++)); do
        echo "int f${{i}}_$k(int n) {{ int s = $k; for (int j = 0; j < n; j++) s += (s << 3 ^ j) % (n + $i + 1); return s; }}"
    done >f$i.c
done
echo "int f0_0(int n); int main(void) {{ return f0_0(3) > 100; }}" >main.c
objects=$(echo f{{0..{FILES - 1}}}.o main.o)
printf 'CFLAGS = -O2 -g\\nprogram: %s\\n\\t$(CC) -g -o $@ $^\\n' "$objects" >Makefile
cat /usr/bin/[a-m]* | head -c 5000000 >data
mkfifo /run/never
"""
# Both are jobs of a login session. Every 0.1 s the CPU time of gzip goes to the CPU on which it is then, while make runs.
BESIDE = f"""cd /run/build && rm -f ./*.o program && exec 4<>/run/never
login() {{ echo $BASHPID >{LOGIN}/cgroup.procs; exec setsid nice -n 10 "$@"; }}
now() {{ echo $((${{EPOCHREALTIME/./}} - begun)); }}
begun=${{EPOCHREALTIME/./}}
login make -s -j8 CC=gcc >/run/make.log 2>&1 & make=$!
login gzip -9c data >/dev/null & gzip=$!
made= zipped= last=0 all=0 fast=0
while [ -z "$made" ] || [ -z "$zipped" ]; do
    if read -r line 2>/dev/null </proc/$gzip/stat; then
        set -- ${{line##*) }}
        used=$((${{12}} + ${{13}}))
        [ -n "$made" ] || {{ all=$((all + used - last)); [ "${{37}}" -lt 4 ] || fast=$((fast + used - last)); }}
        last=$used
    else
        zipped=${{zipped:-$(now)}}
    fi
    [ -d /proc/$make ] || made=${{made:-$(now)}}
    read -r -t 0.1 <&4
done
wait $make && wait $gzip && echo "$made $zipped $fast $all"
"""


def measure(s):
    with s.speeds():
        made, zipped, fast, every = map(int, s.sh(BESIDE).split())
    return {"build s": made / 1e6, "gzip s": zipped / 1e6, "gzip: % on fast CPUs": 100 * fast / max(every, 1)}


def changes(s):
    return json.loads(s.sh("asymctl status --json"))["changes"]


def run(s):
    s.unpack("compiler")
    s.sh(SOURCES)
    s.sh("cd /run/build && make -s -j8 CC=gcc")  # reads the compiler from the share once
    runs, rates, links = {"stock": [], "asymd": []}, [], 0
    for _ in range(RUNS):
        s.sh("systemctl stop asymd")
        runs["stock"].append(measure(s))
        s.start(CONFIG)
        before = changes(s)
        runs["asymd"].append(measure(s))
        rates.append((changes(s) - before) / max(runs["asymd"][-1]["build s"], runs["asymd"][-1]["gzip s"]))
    for name, each in runs.items():
        for key in each[0]:
            s.say(f"{name:6} {key:21} {' '.join(f'{run[key]:7.1f}' for run in each)}")
    s.say(f"asymd  changes a second      {' '.join(f'{rate:7.2f}' for rate in rates)}")
    lines = [line for line in s.journal().splitlines() if re.search(r"\bld\b", line)]
    for line in lines[-6:]:
        s.say(line)
    least = min(run["gzip: % on fast CPUs"] for run in runs["asymd"])
    s.check("beside the build gzip is on fast CPUs for at least 95 % of its time", f"{least:.1f} %", least >= 95)
    rate = sum(rates) / len(rates)
    s.check("with at most one change a second in the mean", f"{rate:.2f}", rate <= 1)
    links = [line for line in lines if re.search(r"to CPUs? [4-7]|fast CPU", line)]
    s.check("the linker gets a fast CPU", f"{len(links)} lines", len(links) >= 1)
