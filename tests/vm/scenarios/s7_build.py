# SPDX-License-Identifier: GPL-2.0-or-later
"""gzip beside make -j8, real programs both: under the stock scheduler and under asymd with its default grouping, in turn."""
import json

from starts import LINE, TRACING

TITLE = "a serial program beside a build has a fast CPU, and so has the link at its end"
MACHINE = "big-little"
PACKS = ("compiler",)
SCENARIO_S = 2400
RUNS, FILES, FAST, NEVER = 3, 24, range(4, 8), float("inf")
LOGIN = "/sys/fs/cgroup/session-1.scope"
# A sample takes an emulated CPU 15 times as long. All else is the default.
CONFIG = """[asymd]
cpu_budget = 100"""
SOURCES = f"""mkdir -p {LOGIN} /run/build && cd /run/build
for ((i = 0; i < {FILES}; i++)); do
    for ((k = 0; k < 25; k++)); do
        echo "int f${{i}}_$k(int n) {{ int s = $k; for (int j = 0; j < n; j++) s += (s << 3 ^ j) % (n + $i + 1); return s; }}"
    done >f$i.c
done
echo "int f0_0(int n); int main(void) {{ return f0_0(3) > 100; }}" >main.c
objects=$(echo f{{0..{FILES - 1}}}.o main.o)
printf 'CFLAGS = -O2 -g\\nprogram: %s\\n\\t$(CC) -g -o $@ $^\\n' "$objects" >Makefile
cat /usr/bin/* | head -c 25000000 >data
mkfifo /run/never
"""
# gzip runs about as long as the build: until asymd steers it, some samples pass, and each takes a second or more where all emulated
# CPUs are busy.
# Both are jobs of a login session. Every 0.5 s the CPU time of gzip goes to the CPU on which it is then, while make runs. Each look
# takes an emulated CPU tens of ms: ten a second were a program that asymd gave a fast CPU of its own.
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
    read -r -t 0.5 <&4
done
wait $make && wait $gzip && echo "$made $zipped $fast $all"
"""
# Where and when the linker runs: make's line of the link starts a shell, gcc and collect2 first.
TRACE = f"""mountpoint -q {TRACING} || mount -t tracefs none {TRACING}; cd {TRACING} && echo 0 >tracing_on && echo global >trace_clock
echo 'filename ~ "*/ld"' >events/sched/sched_process_exec/filter
echo 'prev_comm == "ld" || next_comm == "ld"' >events/sched/sched_switch/filter
echo 1 | tee events/sched/{{sched_process_exec,sched_switch}}/enable >tracing_on; echo >trace
"""


def slices_of_linker(lines):
    """Yields the CPU, the begin and the end of each slice of the linker, the first of which begins with its exec."""
    began = None
    for match in filter(None, map(LINE.fullmatch, lines)):
        at = float(match["time"])
        if began is not None and "prev_comm=ld " in match["rest"]:
            yield int(match["cpu"]), began, at
            began = None
        elif match["event"] == "sched_process_exec" or "next_comm=ld " in match["rest"]:
            began = at


def link(lines):
    """How long the linker took, and when it had a fast CPU."""
    slices = list(slices_of_linker(lines))
    (_, begun, _), (*_, ended) = slices[0], slices[-1]
    fast = [each for each in slices if each[0] in FAST]
    share = sum(end - begin for _, begin, end in fast) / sum(end - begin for _, begin, end in slices)
    return {"link s": ended - begun, "link: % on fast CPUs": 100 * share,
            "link: s until it has one": fast[0][1] - begun if fast else NEVER}


def measure(s):
    s.sh(TRACE)
    with s.speeds():
        made, zipped, fast, every = map(int, s.sh(BESIDE).split())
    found = {"build s": made / 1e6, "gzip s": zipped / 1e6, "gzip: % on fast CPUs": 100 * fast / max(every, 1)}
    return found | link(s.sh(f"cat {TRACING}/trace").splitlines())


def changes(s):
    return json.loads(s.sh("asymctl status --json"))["changes"]


def run(s):
    s.unpack("compiler")
    s.sh(SOURCES)
    s.sh("cd /run/build && make -s -j8 CC=gcc")  # reads the compiler from the share once
    runs, rates = {"stock": [], "asymd": []}, []
    for _ in range(RUNS):
        s.sh("systemctl stop asymd")
        runs["stock"].append(measure(s))
        s.start(CONFIG)
        before = changes(s)
        runs["asymd"].append(measure(s))
        rates.append((changes(s) - before) / max(runs["asymd"][-1]["build s"], runs["asymd"][-1]["gzip s"]))
    for name, each in runs.items():
        for key in each[0]:
            s.say(f"{name:6} {key:24} {' '.join(f'{run[key]:7.1f}' for run in each)}")
    s.say(f"asymd  changes a second         {' '.join(f'{rate:7.2f}' for rate in rates)}")
    least = min(run["gzip: % on fast CPUs"] for run in runs["asymd"])
    s.check("beside the build gzip is on fast CPUs for at least 95 % of its time", f"{least:.1f} %", least >= 95)
    rate = sum(rates) / len(rates)
    s.check("with at most one change a second in the mean", f"{rate:.2f}", rate <= 1)
    s.check("the linker gets a fast CPU in each build", " ".join(f"{run['link: s until it has one']:.2f} s" for run in runs["asymd"]),
            all(run["link: s until it has one"] < NEVER for run in runs["asymd"]))
