#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeats measurements of the papers on a stock kernel in the virtual machine: Roehrich 2007, Table 5.2, Morad 2008, Figures 6
and 7, and Saez 2010, 3.2. It also measures the speed of the CPUs there. The tables go between their marks in
docs/data/kernel.md."""
import argparse
import datetime
import importlib
import json
import pathlib
import re
import statistics
import sys
import tempfile

import copies
import cpus
import openmp
import run
import vm
from lab import CONFIG, Lab, figures, mean, online

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench" / "papers"))
import marks  # noqa: E402
RESULTS = ROOT / "docs" / "data" / "kernel.md"
# What was measured, by table, in the form that the functions below take: --again prints docs/data/kernel.md from these files.
RECORDS = ROOT / "docs" / "data" / "kernel"


def first(text):
    """The figures of the first line of load-rate."""
    return figures(text.split(" cpus=", 1)[0])


def rate(text):
    return first(text)["rate"]


# Two threads are parallel here, as in the source; serial_max_threads = 2 is for OpenMP programs, which flicker.
FIGURES_CONFIG = CONFIG + """
[classify]
serial_max_threads = 1"""


def figures_6_7(lab, runs, seconds):
    """Runs a serial program beside a parallel one; n: CPUs of one speed. If CPUs are alike, the part of its speed alone that
    the program keeps is its share of a CPU's time. The guest counts that share without the noise of the host; the result has
    the speed as well."""
    found = {}
    for n in range(8, 1, -1):
        online(lab, n)
        lab.policy("stock")
        alone, each = [], {"stock": [], "serial-first": []}
        for _ in range(runs):
            for mode in each:
                lab.policy(mode, FIGURES_CONFIG)
                if mode == "stock":
                    alone.append(rate(lab.timed(f"/opt/load-rate 1 {seconds} 1")))
                each[mode].append(first(lab.timed(f"sh -c '/opt/load-rate {n} {seconds + 3} 1 >/dev/null & "
                                                  f"sleep 0.3; /opt/load-rate 1 {seconds + 2} 2; wait'")))
        # Take the median, because each single figure has the noise of the host.
        unit = statistics.median(alone)
        found[n] = {mode: [{"share": run["own"], "speed": run["rate"] / unit} for run in values]
                    for mode, values in each.items()}
        found[n]["alone"] = [{"speed": value / unit} for value in alone]
        for mode in each:
            shares, speeds = (" ".join(f"{v[key]:.2f}" for v in found[n][mode]) for key in ("share", "speed"))
            print(f"{n} CPUs, {mode}: {shares}; speed {speeds}", flush=True)
    online(lab, 8)
    return found


def big_little(lab, runs):
    """Four CPUs of speed 1, four of speed 2: one serial program beside one of 8 threads, in units of a fast CPU."""
    measure = importlib.import_module("scenarios.s2_serial").measure
    found, alone = {mode: [] for mode in ("stock", "pa", "serial-first")}, []
    for _ in range(runs):
        for mode, each in found.items():
            lab.policy(mode)
            if mode == "stock":
                alone.append(rate(lab.timed("taskset -c 7 /opt/load-rate 1 8 2")))
            one = measure(lab.s)
            each.append({"serial": one["had"], "total": one["had"] + one["parallel_had"], "serial rate": one["rate"],
                         "total rate": one["rate"] + one["parallel_rate"]})
            print(f"big.LITTLE, {mode}: {', '.join(f'{key} {value:.2f}' for key, value in each[-1].items())}; "
                  f"alone {alone[-1]:.1f} steps/us", flush=True)
    unit = statistics.median(alone)
    for each in found.values():
        for one in each:
            one.update({key: one[key] / unit for key in one if key.endswith("rate")})
    return found


def show_big_little(found):
    """CPU time by the guest's clocks; and the work, relative to the work alone, which has the host's noise."""
    yield "| | serial: mean | min to max | total: mean | min to max | by work done: serial | total |"
    yield "|---|---|---|---|---|---|---|"
    for mode, each in found.items():
        cells = []
        for key in ("serial", "total"):
            values = column(each, key)
            cells += [f"{statistics.mean(values):.2f}", f"{min(values):.2f} to {max(values):.2f}"]
        cells += [f"{mean(each, 'serial rate'):.2f}", f"{mean(each, 'total rate'):.2f}"]
        yield f"| {mode} | " + " | ".join(cells) + " |"


def judge_big_little(found):
    for mode in list(found)[1:]:
        serial, total = mean(found[mode], "serial"), mean(found[mode], "total") / mean(found["stock"], "total")
        yield f"{mode}: the serial program has {serial:.2f} of its speed alone on a fast CPU", serial >= 0.95
        yield f"{mode}: the total work is {total:.2f} of the stock scheduler's", total >= 0.97


def jitter(values):
    """Morad 2008, eq. 6, of times: 1 / speed."""
    times = [1 / v for v in values]
    average = statistics.mean(times)
    return statistics.mean((t / average - 1) ** 2 for t in times) ** 0.5


def column(runs, key):
    return [one[key] for one in runs]


def show_6_7(found):
    yield ("| CPUs | n/(n+1) | stock: mean | min to max | jitter | serial-first: mean | min to max | jitter "
           "| speed over alone: stock | serial-first | alone, min to max |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for n in sorted(found):
        cells, speeds = [], []
        for mode in ("stock", "serial-first"):
            values = column(found[n][mode], "share")
            cells += [f"{statistics.mean(values):.3f}", f"{min(values):.2f} to {max(values):.2f}", f"{jitter(values):.3f}"]
            speeds.append(f"{mean(found[n][mode], 'speed'):.2f}")
        noise = column(found[n]["alone"], "speed")
        cells += [*speeds, f"{min(noise):.2f} to {max(noise):.2f}"]
        yield f"| {n} | {n / (n + 1):.2f} | " + " | ".join(cells) + " |"


def judge_6_7(found):
    for n in sorted(found):
        stock, steered = (column(found[n][mode], "share") for mode in ("stock", "serial-first"))
        yield (f"serial-first, {n} CPUs: the serial program has {statistics.mean(steered):.3f} of a CPU's time",
               statistics.mean(steered) >= 0.95)
        speed = mean(found[n]["serial-first"], "speed")
        yield f"serial-first, {n} CPUs: the serial program keeps {speed:.3f} of its speed alone", speed >= 0.95
        if len(stock) > 1:
            yield (f"serial-first, {n} CPUs: jitter {jitter(steered):.3f}, the stock scheduler's {jitter(stock):.3f}",
                   jitter(steered) <= jitter(stock) / 3)


def write(name, lines):
    """Replaces the block of that name; the rest of the file stays."""
    text = RESULTS.read_text() if RESULTS.exists() else "# Results: the kernel, in a virtual machine\n"
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(marks.put(text, name, "\n".join(lines)))


def host():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{cpu.group(1) if cpu else 'unknown CPU'}, {datetime.date.today()}"


def keyed(found):
    """JSON has text as keys; numbers of copies and of CPUs are whole numbers."""
    if isinstance(found, dict):
        return {int(key) if key.isdigit() else key: keyed(value) for key, value in found.items()}
    return [keyed(each) for each in found] if isinstance(found, list) else found


def keep(name, about, found):
    """Writes the record of a table."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    dump, _ = FORMS.get(name, (lambda each: each, None))
    (RECORDS / f"{name}.json").write_text(json.dumps({"about": about, "found": dump(found)}) + "\n")


def kept(name):
    """Returns what keep() has written, or None."""
    path = RECORDS / f"{name}.json"
    if not path.exists():
        return None
    record = json.loads(path.read_text())
    _, restore = FORMS.get(name, (None, keyed))
    return record["about"], restore(record["found"])


def page(name, about, found):
    """Returns the lines of a table of docs/data/kernel.md, and the number of targets that are missed."""
    _, title, _, show, judge, why = TABLES[name]
    verdicts = list(judge(found))
    lines = [f"## {title}", "", f"`./dev vm papers`: {about['runs']} runs of each in {about['boots']}, Linux {about['kernel']} in the "
             f"virtual machine of tests/vm on {about['host']}. {about.get('note', '')}{NOISE}", "", *show(found)]
    lines += ["", "Targets:", ""] if verdicts else []
    lines += [f"- {'reached' if ok else 'MISSED'}: {text}" for text, ok in verdicts]
    if why and not all(ok for _, ok in verdicts):
        lines += ["", f"Reason of the misses: {why}"]
    return lines, sum(not ok for _, ok in verdicts)


def report(name, args, guest, found):
    about = {"runs": args.runs, "boots": "more than one boot" if args.resume and name == "rtx" else "one boot",
             "kernel": guest.sh("uname -r"), "host": host()}
    lines, missed = page(name, about, found)
    write(name, lines)
    keep(name, about, found)
    print("\n".join(lines[2:]))
    return missed


def again(names):
    """Writes the tables that have a record anew, and measures nothing. Returns the names of the tables that have none."""
    missing = []
    for name in names:
        record = kept(name)
        if record:
            write(name, page(name, *record)[0])
        else:
            missing.append(name)
    return missing


def main():
    parser = argparse.ArgumentParser(prog="./dev vm papers", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.5, help="of the task on the fastest CPU (default: as the source)")
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--resume", action="store_true", help="rtx: go on from what a run that was ended has measured")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help="print the tables of which docs/data/kernel has a record; measure nothing")
    args = parser.parse_args()
    if args.again:
        missing = again([args.only] if args.only else TABLES)
        print(f"{RESULTS}: written anew" + (f"; no record of {', '.join(missing)}" if missing else ""))
        return 0
    if args.resume and args.only not in (None, "rtx"):
        parser.error(f"--resume is for rtx, not for {args.only}")
    vm.stop_on_signals()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        run.stage(args.build, pathlib.Path(share))
        for name in [args.only] if args.only else TABLES:
            machine, _, measure, *_ = TABLES[name]
            with vm.Guest(machine, share, 4 * 3600) as guest:
                guest.begin()
                lab = Lab(run.Scenario(guest).install())
                missed += report(name, args, lab.s, measure(lab, args))
    return 1 if missed else 0


def own_pace():
    """The kept Table 5.2 of asymd's own pace."""
    record = kept("table-5.2")
    if not record:
        raise SystemExit("docs/data/kernel has no record of table-5.2: run ./dev vm papers --only=table-5.2 first")
    return record[1]


NOISE = ("Its own noise is 5 to 10 % on a quiet host, and more beside other work. The ranges of `alone` and `pinned`, where a "
         "table has them, show the noise.")

# Machine, title, the functions that measure, show and judge, and the reason why bars are missed ("": no reason is given).
TABLES = {
    "table-5.2": ("eight-speeds", "Röhrich 2007, Table 5.2: copies of one task on eight speeds",
                  copies.measure, copies.show, copies.judge,
                  "nothing moves pinned copies, so they show the noise of the laboratory. Where their own runs are further apart "
                  "than a tenth of the stock scheduler's, no policy can reach the target."),
    "table-5.2-paced": ("eight-speeds", "Table 5.2 with asymd at the pace of the source's kernel",
                        lambda lab, args: own_pace() and copies.measure_paced(lab, args),
                        lambda found: copies.show_paced(found, own_pace()),
                        lambda found: copies.judge_paced(found, own_pace()),
                        "the gain is over the stock scheduler of the table above, of another boot, where the task's length was "
                        "calibrated anew. That stock leaves copies on slow CPUs longer than the source's does: the last column has the "
                        "gain of the same runs over the source's stock. Why throughput with two to eight copies, and priority with two, "
                        "gain more than the source's over either, is open."),
    "speeds": (cpus.MACHINE, "The machine of Table 5.2: how fast each of its CPUs is",
               cpus.measure, cpus.show, lambda found: (), ""),
    "figures-6-7": ("eight-equal", "Morad 2008, Figures 6 and 7: one serial beside one parallel program",
                    lambda lab, args: figures_6_7(lab, args.runs, 4), show_6_7, judge_6_7,
                    "a scheduler decides the share of a CPU's time. The speed has the noise of the host as well, which is shared itself "
                    "and has two cores for all these CPUs; the column `alone` shows this noise."),
    "big-little": ("big-little", "Four CPUs of speed 1 and four of speed 2: one serial program beside one of 8 threads",
                   lambda lab, args: big_little(lab, args.runs), show_big_little, judge_big_little, ""),
    "rtx": ("big-little", "Saez 2010, 3.2: OpenMP programs by how their threads wait, without and with runtime extensions",
            openmp.measure, openmp.show, openmp.judge,
            "a trace of rows without serial work shows where threads wait. asymd took samples on the CPU of a working thread: it now "
            "takes them on a slow CPU where no thread runs. The thread of a serial phase went to a fast CPU that was still busy: asymd "
            "now moves the other thread first. CPU 0 has the kernel's chores (nohz_full=1-7); while asymd samples they take more "
            "time, and the thread there waits. A sample takes a sixth of a slow CPU here, and each sample has the chores of a second "
            "with it (systemd, the helper), because asymd has its other times ten times as long."),
}

# Tables whose measurements are not lists and dicts of numbers: how they become so, and how they come back.
FORMS = {"rtx": (openmp.dump, openmp.restore), "speeds": (lambda found: found, cpus.restore)}

if __name__ == "__main__":
    sys.exit(main())
