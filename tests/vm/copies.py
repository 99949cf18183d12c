# SPDX-License-Identifier: GPL-2.0-or-later
"""Roehrich 2007, Table 5.2: copies of one task on eight CPUs of eight speeds, without and with asymd, and pinned to the fastest.
Then the same with asymd at the pace of the source's kernel."""
import pathlib
import statistics
import sys

from lab import CONFIG, figure, figures, mean

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench" / "papers"))
from sources import PACE_S, SPEEDS, TABLE_5_2, ideal, least_total  # noqa: E402

COUNTS = (1, 2, 4, 8, 10, 12)
STEERED = ("response-time", "throughput", "priority")


def pins(n):
    """The CPU of each copy, as load-copies takes them."""
    return ",".join(str(cpu) for cpu, load in enumerate(ideal(n)) for _ in range(load))


def calibrate(lab, seconds):
    """Millions of steps for which the fastest CPU needs so many seconds."""
    once = figures(lab.timed("/opt/load-copies 1 200 7"))["total"]
    return max(10, round(200 * seconds / once))


def measure(lab, args):
    """The runs by mode and count, each with total, turnaround and cpu (load-copies)."""
    millions = calibrate(lab, args.seconds)
    found = {mode: {n: [] for n in COUNTS} for mode in ("stock", *STEERED, "pinned")}
    for n in COUNTS:
        for _ in range(args.runs):
            for mode in found:
                lab.policy("stock" if mode == "pinned" else mode)
                where = pins(n) if mode == "pinned" else ""
                found[mode][n].append(figures(lab.timed(f"/opt/load-copies {n} {millions} {where}")))
        note = ", ".join(f"{mode} {mean(found[mode][n], 'turnaround'):.2f} ({mean(found[mode][n], 'cpu'):.2f})" for mode in found)
        print(f"{n} copies, turnaround (CPU time) in s: {note}", flush=True)
    return found


def spread(runs):
    found = figure(runs, "turnaround")
    return found.most - found.least


def pinned_seconds(n):
    """The mean turnaround of n pinned copies of a task of 1 s on the fastest CPU: those of a CPU share it."""
    return sum(load ** 2 * max(SPEEDS) / speed for load, speed in zip(ideal(n), SPEEDS)) / n


def task_seconds(found):
    """The length of the task on the fastest CPU, by the pinned copies of every number: nothing moves them."""
    return statistics.mean(mean(runs, "turnaround") / pinned_seconds(n) for n, runs in found["pinned"].items())


def named(n):
    return f"{n} cop{'y' if n == 1 else 'ies'}"


# The key of load-copies behind each figure. Avg and its gain are the source's, by CPU time; the source has no turnaround.
COLUMNS = (("Total s", "total"), ("Turnaround s", "turnaround"), ("Avg s", "cpu"))


def ranges(runs, key):
    found = figure(runs, key)
    return f"{found.least:.2f} to {found.most:.2f}"


def show(found):
    yield "| copies | | " + " | ".join(found) + " |"
    yield "|---|---|" + "---|" * len(found)
    for n in COUNTS:
        def line(title, cells):
            return f"| {n} | {title} | " + " | ".join(cells) + " |"
        for title, key in COLUMNS:
            yield line(title, [f"{mean(found[mode][n], key):.2f}" for mode in found])
        for title, key in COLUMNS[1:]:
            yield line(title.replace(" s", ", from to"), [ranges(found[mode][n], key) for mode in found])
        least = least_total(n, max(SPEEDS) * task_seconds(found))
        yield line("Total over the least possible", [f"{mean(found[mode][n], 'total') / least:.2f}" for mode in found])
        for title, key in (("Turnaround gain %", "turnaround"), ("Gain %", "cpu")):
            yield line(title, ["0", *(f"{gain(found, mode, n, key):.1f}" for mode in list(found)[1:])])
        yield line("Machine's work %", ["0", *(work(found[mode][n], found["stock"][n]) for mode in list(found)[1:])])
        source = TABLE_5_2[n]
        for i, title in enumerate(("Total s in the source", "Avg s in the source")):
            yield line(title, [f"{source[mode][i]:.2f}" for mode in ("none", *STEERED)] + [""])
        yield line("Gain % in the source", ["", *(f"{source[mode][2]:.1f}" for mode in STEERED), ""])
    yield ""
    yield (f"The least possible Total is that of copies that may move at any time. The task takes {task_seconds(found):.2f} s on the "
           "fastest CPU, by the pinned copies.")


def work(runs, stock):
    """What the machine does in a second, against stock, in %: the same copies, by the time until the last has ended."""
    change = 100 * (mean(stock, "total") / mean(runs, "total") - 1)
    return f"**{change:+.1f}**" if change <= -1 else f"{change:+.1f}"


def gain(found, mode, n, key="cpu"):
    return 100 * (1 - mean(found[mode][n], key) / mean(found["stock"][n], key))


def judge(found):
    """The bars, and whether the results reach them. A gain is by CPU time, as the source's, and its bar is the source's."""
    for n in COUNTS:
        good = mean(found["pinned"][n], "turnaround") / mean(found["response-time"][n], "turnaround")
        yield (f"response-time, {named(n)}: {100 * good:.0f} % as good as pinned from the start", good >= 0.9)
        steady, loose = spread(found["response-time"][n]), spread(found["stock"][n])
        if loose > 0:
            yield (f"response-time, {named(n)}: its runs are {steady:.2f} s apart, the stock scheduler's {loose:.2f} s (pinned, "
                   f"which is the noise of the laboratory: {spread(found['pinned'][n]):.2f} s)", steady <= loose / 10)
        for mode in STEERED:
            wanted = TABLE_5_2[n][mode][2]
            yield f"{mode}, {named(n)}: gain {gain(found, mode, n):.1f} %, the source's {wanted} %", gain(found, mode, n) >= wanted


def paced_config(policy):
    """asymd reacts once in PACE_S, in the same way as in the simulator (tests/bench/papers/roehrich.py)."""
    if policy == "priority":
        return f"{CONFIG}\n[policy.priority]\nneighbour_period = {PACE_S * 1000:.0f}ms"
    return CONFIG.replace("interval = 100ms", f"interval = {PACE_S * 1000:.0f}ms")


def measure_paced(lab, args):
    """The runs by policy and count. asymd starts before the copies, by times that are spread over one period."""
    millions = calibrate(lab, args.seconds)
    found = {policy: {n: [] for n in COUNTS} for policy in STEERED}
    for n in COUNTS:
        for k in range(args.runs):
            for policy in found:
                lab.policy(policy, paced_config(policy))
                lab.wait(k * PACE_S / args.runs)
                found[policy][n].append(figures(lab.timed(f"/opt/load-copies {n} {millions}")))
        note = ", ".join(f"{policy} {mean(found[policy][n], 'cpu'):.2f}" for policy in found)
        print(f"{n} copies, Avg in s: {note}", flush=True)
    return found


def paced_gain(found, policy, n, stock):
    return 100 * (1 - mean(found[policy][n], "cpu") / mean(stock[n], "cpu"))


def off(found, policy, key, column):
    """How far a policy's figures are from the source's: the mean distance, and the range."""
    values = [mean(found[policy][n], key) / TABLE_5_2[n][policy][column] - 1 for n in COUNTS]
    return f"{100 * statistics.mean(map(abs, values)):.0f} % ({100 * min(values):+.0f} to {100 * max(values):+.0f})"


def show_paced(found, own):
    """own: the table of asymd's own pace. It has the runs of stock, which has no pace."""
    yield ("| copies | policy | Total s | in the source | Avg s | from to | in the source | Gain % | in the source "
           "| Gain % over the source's stock | Machine's work % |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for n in COUNTS:
        for policy in STEERED:
            total, avg, wanted = TABLE_5_2[n][policy]
            ours = mean(found[policy][n], "cpu")
            cells = [f"{mean(found[policy][n], 'total'):.2f}", f"{total:.2f}", f"{ours:.2f}", ranges(found[policy][n], "cpu"), f"{avg:.2f}",
                     f"{paced_gain(found, policy, n, own['stock']):.1f}", f"{wanted:.1f}", f"{100 * (1 - ours / TABLE_5_2[n]['none'][1]):.1f}",
                     work(found[policy][n], own["stock"][n])]
            yield f"| {n} | {policy} | " + " | ".join(cells) + " |"
    yield ""
    yield "How far these are from the source, over all numbers of copies: the mean distance and the range, in per cent."
    yield ""
    yield "| policy | Total: asymd's own pace | this pace | Avg: asymd's own pace | this pace |"
    yield "|---|---|---|---|---|"
    for policy in STEERED:
        cells = [off(runs, policy, key, column) for column, key in enumerate(("total", "cpu")) for runs in (own, found)]
        yield f"| {policy} | " + " | ".join(cells) + " |"


def judge_paced(found, own):
    for n in COUNTS:
        for policy in STEERED:
            ours, wanted = paced_gain(found, policy, n, own["stock"]), TABLE_5_2[n][policy][2]
            yield f"{policy}, {named(n)}: gain {ours:.1f} %, the source's {wanted} % (bar: 8 points)", abs(ours - wanted) <= 8
        avgs = [mean(found[policy][n], "cpu") for policy in STEERED]
        yield f"{named(n)}: Avg of {', '.join(STEERED)} in this order (bar: the source's)", avgs == sorted(avgs)
