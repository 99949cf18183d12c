#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""page.py [--check]: writes the tables of docs/results.md from docs/data; runs nothing. --check: writes nothing and fails
if the table is another one, if a block of a generated page was edited by hand, or if a figure of the text is on no page of data.

A row compares one figure of a source with ours. Its result is computed: "reached" within the row's bound, "direction" where the
source states no bound and the sign or the order is the same, "MISSED" otherwise. A bound is the source's, or one of BOUNDS. A star
marks what is so by chance only.
"""
import math
import pathlib
import re
import statistics
import sys

import common
import marks

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
WIDTH = 100
# Asked of this project where the source states no bound: analytic tables; a figure of the analysis; gains of Morad's in points;
# gains of Röhrich's in points; spreads of Snavely's in points.
BOUNDS = {"analytic": 2, "figure": 3.5, "morad": 2, "röhrich": 8, "snavely": 2}


def numbers(text):
    """Returns the numbers of a cell, as floats: "+4.5 %" is 4.5, "82.2 -> 80.3 %" is two."""
    return [float(x) for x in re.findall(r"[-+]?\d+(?:\.\d+)?", text.replace("->", " "))]


def number(text):
    return numbers(text)[0]


# In place of the machine's work: no policy runs.
STOCK_ONLY = "stock only"


class Data:
    """The blocks of simulator.md."""

    def __init__(self, text):
        self.text, self.used = marks.unwrapped(text), ""

    def words(self, name):
        self.used = name or self.used
        return marks.block(self.text, f"sim {name}".strip())

    def work(self):
        """Returns what the policies of the last used block do to the work of all programs, as a cell. A loss of 1 % or more is bold."""
        said = re.search(f"^{re.escape(common.WORK)}(.*)$", self.words(self.used), re.M)
        if not said:
            return "not measured"
        found = re.findall(r"[-+][\d.]+(?= %)", said[1])
        if not found:
            return STOCK_ONLY
        least, most = (f"{choose(map(float, found)):+.1f}".replace("-0.0", "+0.0") for choose in (min, max))
        words = least if least == most else f"{least} to {most}"
        return f"**{words}**" if float(least) <= -1 else words

    def rows(self, name):
        """Returns the rows of the block's table without its head."""
        found = marks.tables(self.words(name))
        if len(found) < 2:
            raise SystemExit(f"docs/data/simulator.md has no row {name}: run ./dev papers")
        return found[1:]

    def row(self, name, *begins):
        """Returns the row that begins with these cells."""
        for row in self.rows(name):
            if tuple(row[:len(begins)]) == begins:
                return row
        raise SystemExit(f"docs/data/simulator.md, row {name}, has no line {' | '.join(begins)}")

    def target(self, begins, block=""):
        """Returns what a target of the list says of its state. block: that of its row."""
        self.used = block or self.used
        found = re.search(rf"^- (?:reached|MISSED): {re.escape(begins)}.*?: (.*)$", self.words(""), re.M)
        if not found:
            raise SystemExit(f"docs/data/simulator.md has no target {begins}")
        return found[1]


def result(met):
    return "reached" if met else "MISSED"


# Behind a result that chance alone explains: the source's figure is within the interval of the source's runs, but not within the
# bound; or ours has the sign or the order, but within our own interval it could have the other one.
CHANCE = "*"


def likely(met, within):
    """
    within: whether the bound is met but for that interval. A figure is within what is wider, bound or interval; a limit ("at most",
    "above") is moved by the interval.
    """
    return result(met) if met or not within else result(True) + CHANCE


def direction(same, by_chance=False):
    return "direction" + CHANCE * by_chance if same else "MISSED"


def up_to(most, costs):
    """The result for "up to": the most that the source saw. Some cost has its sign, none the other, and none is beyond."""
    return direction(min(costs) >= 0 and 0 < max(costs) <= most)


def span(values, shown="{:+.1f}"):
    least, most = shown.format(min(values)), shown.format(max(values))
    return least if least == most else f"{least} to {most}"


def change(cell, digits=1):
    """Returns "20.0 -> 17.2 %" as words, and whether the figure rises."""
    before, after = numbers(cell)[:2]
    return f"{before:.{digits}f} to {after:.{digits}f}", after > before


def morad(data):
    off = [abs(number(row[4])) for row in data.rows("table1")]
    yield "Tables 1, 2: 16 forms, off by at most", "0 %", f"{max(off):.1f} %", result(max(off) <= BOUNDS["analytic"])
    third = data.rows("table3")
    means = "; ".join(row[3] for row in third if row[1] == "mean")
    yield ("Table 3: S,P; P,S", "1.412; 0.824", means, result(max(abs(number(row[4])) for row in third) <= BOUNDS["figure"]))
    sixth = data.rows("fig6")
    for words, column in (("1000 runs", 5), ("50 runs", 3)):
        worst = max(abs(number(row[column])) for row in sixth)
        # A mean of 50 runs is known to the interval in the last column only.
        near = column == 3 and all(abs(number(row[column])) <= max(BOUNDS["figure"], number(row[8])) for row in sixth)
        yield f"Figure 6: n/(n+1), {words}, off by at most", "0 %", f"{worst:.1f} %", likely(worst <= BOUNDS["figure"], near)
    two, *more = [number(row[2]) for row in data.rows("fig7")]
    for words, values in (("2 CPUs", [two]), ("3 to 8 CPUs", more)):
        worst = max(100 * abs(x - 1) for x in values)
        yield f"Figure 7: with `serial-first`, {words}", "1", span(values, "{:.3f}"), result(worst <= BOUNDS["figure"])
    yield from morad_throughput(data)
    yield from morad_fairness(data)


def morad_throughput(data):
    said = data.target("Morad's mean speedup within 2 points", "table4")
    stock, told = number(said), [number(x) for x in re.findall(r"(\S+ %) with capacity = (?:load|active)", said)]
    for words, gain in (("Table 4: throughput, mean of 45 pairs", stock),
                        ("over a stock that divides load by speed", told[0]),
                        ("over one that also pulls running threads", told[1])):
        yield words, "+4.5 %", f"{gain:+.1f} %", result(abs(gain - 4.5) <= BOUNDS["morad"])
    best, gain = data.target("Morad's Figure 8 peaks", "fig8").rsplit(", ", 1)
    yield "Figure 8: the best pair on equal cores", "1:1, 1:1", best.replace(" beside", ","), result(best == "1:1 beside 1:1")
    gain = number(data.target("Morad's mean speedup on equal cores"))
    yield "Figure 8: mean", "+3 %", f"{gain:+.1f} %", result(abs(gain - 3) <= BOUNDS["morad"])
    for name, where, source in (("fig8", "equal", "20 to 17.2"), ("table4", "unequal", "25.6 to 22.8")):
        pairs = re.findall(r"[\d.]+ -> [\d.]+ %", data.words(name).partition("Idle time")[2])
        words, rises = change(next(pair for pair in pairs if change(pair)[0].rstrip("0.") not in source))
        yield f"Section 7: idle %, {where} cores", source, words, direction(not rises)


# The source's baseline knows the speeds.
UNEQUAL = "(7, 1; 1, 2), capacity = load"


def morad_fairness(data):
    for shape, where in (("(8; 1)", "equal"), (UNEQUAL, "unequal")):
        before, after = (data.row("table5", shape, policy) for policy in ("none", "serial-first"))
        for what, k, rises in (("fairness", 2, True), ("1000 x jitter", 4, False)):
            source, ours = (tuple(number(row[k + n]) for row in (before, after)) for n in (0, 1))
            by_chance = what != "fairness" and abs(ours[1] - ours[0]) <= number(after[8])
            yield (f"Table 5: {what}, {where}", "{:.1f} to {:.1f}".format(*source), "{:.1f} to {:.1f}".format(*ours),
                   direction((ours[1] > ours[0]) == rises, by_chance))
    for shape, where, fair in (("(8; 1)", "equal", False), (UNEQUAL, "unequal", True)):
        row = data.row("table6", shape)
        # A gain of Morad's in the mean, as those of Table 4 and Figure 8.
        yield f"Table 6: SPEC-OMP, {where} cores", row[1], row[2], result(number(row[2]) > 0 and abs(number(row[2]) - number(row[1])) <= BOUNDS["morad"])
        for what, k, rises in (("fairness", 3, fair), ("1000 x jitter", 5, False)):
            words, rose = change(row[k + 1])
            yield f"Table 7: {what}, {where} cores", change(row[k])[0], words, direction(rose == rises)


def saez(data):
    gains = [number(row[2]) for row in data.rows("saez") + data.rows("saez2") if not re.match("mean|worst", row[0])]
    yield "PA over Default, most", "+40 %", f"{max(gains):+.1f} %", direction(max(gains) > 0)
    for name, where in (("saez", "Set #1"), ("saez2", "Set #2")):
        policies = ["pa", "mintlp", "rr", "busyfcs", "static-ipc"]
        regret = dict(zip(policies, map(number, data.row(name, "worst regret, points")[2:])))
        least = min(x for p, x in regret.items() if p not in ("pa", "mintlp"))
        words = f"{regret['pa']}; {regret['mintlp']}; others {least}"
        yield f"{where}: regret, PA; MinTLP", "least", words, result(max(regret["pa"], regret["mintlp"]) < least)
    yield from saez_waiting(data)
    near, far = ([number(row[5]) for row in data.rows("overhead") if row[1] == machine] for machine in ("1FC-3SC", "1FC-12SC"))
    yield "3.4: cost of moves, one chip", "about 0", f"{span(near, '{:.1f}')} %", result(max(near) <= 0.5)
    yield "3.4: cost of moves, another chip", "up to 18 %", f"{span(far, '{:.1f}')} %", up_to(18, far)


def saez_waiting(data):
    def gains(phases, sees):
        return list(map(number, data.row("waiting", phases, f"PA over Default, {sees}")[2:]))

    long, short, loops = dict.fromkeys(row[0] for row in data.rows("waiting"))
    slow, quick, bpf = "a sample every 100 ms", "a sample every 1 ms", "observer bpf"
    first, spins = gains(long, slow)[0], gains(long, slow)[4]
    yield "Figure 1, phases of 0.4 s: sleep", "a gain", f"{first:+.1f} %", result(first > 0)
    yield "the same: spin", "hardly any", f"{spins:+.1f} %", result(abs(spins) < 2)
    for words, sees in (("Figure 1, phases of 25 ms: sleep", bpf), ("the same with samples only", slow)):
        gain = gains(short, sees)[0]
        yield words, "a gain", f"{gain:+.1f} %", result(gain > 0)
    seen = [number(x) for x in data.row("waiting", short, "seen as sequential")[2:7]]
    yield ("Figure 2: phases seen, by threshold", "falls", ", ".join(f"{x:.0f}" for x in seen) + " %",
           result(seen == sorted(seen, reverse=True) and seen[0] > seen[-1]))
    for words, sees in (("Figure 3, short loops: a low threshold", bpf), ("the same with a sample every 1 ms", quick)):
        gain = gains(loops, sees)[1]
        yield words, "up to -26 %", f"{gain:+.1f} %", up_to(26, [-gain])
    cost = -min(gains(phases, sees)[5] for phases in (long, short, loops) for sees in (slow, quick, bpf))
    yield "Figure 3: what RTX costs at most", "4 %", f"{cost:.1f} %", result(cost <= 4)


POLICIES = ("response-time", "throughput", "priority")


def counted(near, by_chance):
    """by_chance: within the bound, widened by the interval of the source's runs."""
    return str(near) if near == by_chance else f"{near} ({by_chance}*)"


def apart_by_chance(data, first, second, n):
    """Whether five runs of each can be as far apart in Avg as they are in the source, if they are as in our mean."""
    (there, here, stray), (there_2, here_2, stray_2) = (
        [number(row[k]) for k in (5, 7, 16)] for row in (data.row("roehrich", str(n), p) for p in (first, second)))
    return abs((there - there_2) - (here - here_2)) <= (stray ** 2 + stray_2 ** 2) ** 0.5


def roehrich(data):
    gains = {(row[1], int(row[0])): tuple(map(number, row[8:11])) for row in data.rows("roehrich") if row[8]}
    counts = sorted({n for _, n in gains})

    # The source's stock is what it is: five runs of the policy stray, on its scale.
    stock = {int(row[0]): number(row[5]) for row in data.rows("roehrich") if row[1] == "stock" and row[5]}
    strays = {(p, n): [0] + [100 * number(x) / stock[n] for x in data.row("roehrich", str(n), p)[15:17]] for p, n in gains}

    def within(words, policies, column):
        off = [(abs(gains[p, n][column] - gains[p, n][0]), strays[p, n][column]) for p in policies for n in counts]
        bar = BOUNDS["röhrich"]
        near, by_chance = sum(x <= bar for x, _ in off), sum(x <= max(bar, stray) for x, stray in off)
        return words, str(len(off)), counted(near, by_chance), likely(near == len(off), by_chance == len(off))

    yield within("Table 5.2: gains within 8 points", POLICIES, 1)
    for p in POLICIES:
        yield within(f"the same at the source's pace: {p}", [p], 2)
    for words, first, others in (("response-time gains most", "response-time", POLICIES[1:]),
                                 ("throughput over priority", "throughput", POLICIES[2:])):
        ahead = [all(gains[first, n][2] > gains[p, n][2] for p in others) for n in counts]
        likely_ahead = [all(gains[first, n][2] > gains[p, n][2] or apart_by_chance(data, first, p, n) for p in others) for n in counts]
        yield (f"the same: {words}", str(len(counts)), counted(sum(ahead), sum(likely_ahead)), likely(all(ahead), all(likely_ahead)))
    falls = [x == sorted(x, reverse=True) for x in ([gains[p, n][2] for n in counts] for p in POLICIES)]
    yield "the same: gains fall with more copies", "3 policies", str(sum(falls)), result(all(falls))
    yield from roehrich_words(data)


def roehrich_words(data):
    """What the text says, and Total, at the source's pace."""
    rows = {(row[1], int(row[0])): row for row in data.rows("roehrich")}
    avg = {key: number(row[7] or row[6]) for key, row in rows.items()}
    ahead = sum(avg["stock", n] < min(avg[p, n] for p in POLICIES[1:]) for n in (3, 6))
    yield "Figure 5.2: stock over those two, 3 and 6 copies", "2", str(ahead), result(ahead == 2)
    wide, narrow = ([x for (p, _), x in avg.items() if p == name] for name in ("stock", "response-time"))
    yield ("Figure 5.2: span of Avg, with stock", "1.0; 5.3 s",
           f"{max(narrow) - min(narrow):.1f}; {max(wide) - min(wide):.1f} s", direction(max(narrow) - min(narrow) < max(wide) - min(wide)))
    off = [100 * (number(row[4]) / number(row[2]) - 1) for (p, _), row in rows.items() if p in POLICIES and row[2]]
    by_chance = all(abs(number(row[4]) - number(row[2])) <= max(BOUNDS["röhrich"] / 100 * number(row[2]), number(row[17]))
                    for (p, _), row in rows.items() if p in POLICIES and row[2])
    yield ("Table 5.2: Total at that pace, off by", "0 %", f"{span(off, '{:+.0f}')} %",
           likely(max(map(abs, off)) <= BOUNDS["röhrich"], by_chance))
    both = numbers(data.target("Röhrich's Figure 5.1", "fig51"))
    yield ("Figure 5.1: programs faster; steadier", "all; all", f"{both[0]:.0f}; {both[1]:.0f} of {both[2]:.0f}",
           result(both[0] == both[1] == both[2]))


def most_and_least(values, strays):
    """Returns how far the difference of the two strays."""
    return math.hypot(*(strays[values.index(choose(values))] for choose in (max, min)))


def nie(data):
    worst = max(number(row[2]) for row in data.rows("astpi"))
    yield "Figure 2: ASTPI by core type", "4 %", f"{worst:.2f} %", result(worst <= 4)
    means = [list(map(number, data.row("eshmp", f"mean, {kind}")[1:7])) for kind in ("single-phased", "multi- and mix-phased")]

    def both(values, shown="{:+.1f}"):
        return "; ".join(shown.format(x) for x in values)

    # By kind of workload: the gain on two types, and the points more on three and on four.
    said = data.target("ESHMP over IPC-Driven at most 11 %")
    two, *steps = zip(*(numbers(kind)[:3] for kind in said.split("; ")[:2]))
    # How far one test strays, and the difference of two, by kind of workload. One test is what the source ran (4.1).
    kinds = ("single-phased", "multi- and mix-phased")
    chance = [list(map(number, data.row("eshmp", f"95 % of one test, {kind}, points")[1:7])) for kind in kinds]
    steps_chance = [[(x[k] ** 2 + x[k + 1] ** 2) ** 0.5 for x in chance] for k in (0, 1)]
    for words, source, values, strays, above in (
            ("Figures 4, 5: over IPC-Driven", "at most +11 %", two, [x[0] for x in chance], 0),
            ("the same, 3 over 2 types, more by", "above 13", steps[0], steps_chance[0], 13),
            ("the same, 4 over 3 types, more by", "at most 11", steps[1], steps_chance[1], 0)):
        met, within = ([x + by > above if above else x - by <= 11 for x, by in zip(values, some)] for some in ((0, 0), strays))
        yield words, source, both(values) + " %" * source.endswith("%"), likely(all(met), all(within))
    # The other reading, as rows.py found it from the times themselves: least and most of both kinds.
    grows = re.search(r"completion times that grows, it grows by (.*?) and by (.*?)\.\s+The", data.words("eshmp"), re.S).groups()
    for words, source, k, above in (("the same, 3 over 2, as a ratio", "above 13 %", 0, 13),
                                    ("the same, 4 over 3, as a ratio", "at most 11 %", 1, 0)):
        least, most = numbers(grows[k])
        stray = max(100 * by / (100 + mean[k]) for by, mean in zip(steps_chance[k], means))
        met, within = (least + by > above if above else most - by <= 11 for by in (0, stray))
        yield words, source, grows[k].replace(" % to ", " to "), likely(met, within)
    for figure, kind, source, (least, most), mean, strays in (("6", "single phase", "-2 to 0 %", (-2, 0), means[0], chance[0]),
                                                              ("7", "others", "+5 to +19 %", (5, 19), means[1], chance[1])):
        met, within = (all(least - by <= x <= most + by for x, by in zip(mean[3:], some)) for some in ([0] * 3, strays[3:]))
        yield f"Figure {figure}: over HASS, {kind}", source, f"{span(mean[3:])} %", likely(met, within)
    apart = [number(data.row("eshmp", f"greatest less least mean over HASS, {kind}, points")[4]) for kind in kinds]
    strays = [most_and_least(mean[3:], x[3:]) for mean, x in zip(means, chance)]
    yield ("Figures 6, 7: points between core types", "below 2", both(apart, "{:.2f}"),
           likely(max(apart) < 2, all(x - by < 2 for x, by in zip(apart, strays))))
    phased = [[number(data.row("eshmp", name)[k]) for name in ("4MP", "3MP-1SP", "2MP-2SP", "1MP-3SP")] for k in (4, 5, 6)]
    held = sum(x == sorted(x, reverse=True) for x in phased)
    yield "Figure 7: more with more phased programs", "3 machines", str(held), result(held == 3)
    for name, source, met in (("4CI", "at most +3 %", lambda x: max(x) <= 3), ("4MI", "above +23 %", lambda x: min(x) > 23)):
        values = list(map(number, data.row("sharing", name)[1:4]))
        yield f"Figure 8: LLC, unlike, {name}", source, f"{span(values)} %", result(met(values))
    *workloads, ours = [list(map(number, row[1:3])) for row in data.rows("sharing")]
    ahead = [x - y for x, y in workloads]
    yield ("Figures 8, 9: eshmp; ipc-driven", "eshmp first", f"{both(ours)} %",
           likely(statistics.mean(ahead) > common.sure(ahead), ours[0] > ours[1]))


def snavely(data):
    row = data.rows("snavely23")[0]
    for words, cell in (("Figure 2: sets of jobs, IPC apart by", row[4]), ("Figure 3: weighted speedup apart by", row[8])):
        yield words, "8 %", f"{number(cell):.1f} %", result(abs(number(cell) - 8) <= BOUNDS["snavely"])
    two = list(map(number, data.row("snavely", "mean over naive")[2:4]))
    eight = list(map(number, data.row("snavely7", "mean over naive")[2:5]))
    for block, words, source, x in (("snavely", "Figure 5, two jobs: Symb over Naive", "+8 %", two[0]),
                                    ("snavely", "Figure 6: Icount over Naive", "+15 %", two[1]),
                                    ("snavely7", "Figure 7, eight jobs: Symb over Naive", "+8 %", eight[0]),
                                    ("snavely7", "the same: SOS", "+14 %", eight[1]), ("snavely7", "the same: Icount", "+19 %", eight[2])):
        data.used = block
        yield words, source, f"{x:+.1f} %", direction(x > 0)
    yield ("the same: Symb, SOS, Icount in this order", "yes", "yes" if eight[0] < eight[1] < eight[2] else "no",
           result(eight[0] < eight[1] < eight[2]))
    saved = {p: number(data.row("snavely8", p)[3]) for p in ("smt-symb", "smt-sos", "smt-icount")}
    for words, source, p in (("Figure 8: turnaround that Symb saves", "some", "smt-symb"), ("the same: SOS", "33 %", "smt-sos")):
        yield words, source, f"{saved[p]:.0f} %", (result if source == "some" else direction)(saved[p] > 0)
    yield ("the same: Icount", "the least", f"{saved['smt-icount']:.0f} %", result(0 < saved["smt-icount"] < min(saved["smt-symb"], saved["smt-sos"])))


PAPERS = {"Morad 2008": morad, "Saez 2010": saez, "Röhrich 2007": roehrich, "Nie & Duan 2012": nie, "Snavely 2002": snavely}

# The first paragraph of docs/results.md.
SAID = """**Of {lines} results of five papers asymd reaches {reached}, and misses {missed}.** A result is reached if ours is
within a bound, or as the paper says. {direction} more have the sign or the order of the paper, which states
no bound, and {chance} agree by chance only (\\*; by the letter {letter} of these are reached, which makes {both}).
The papers say which threads should get the fast CPUs of a machine, and measured what that gains.
asymd has their rules as policies, and runs them here on a simulated machine; in {stock} of the {reached} no
policy runs, and they test that machine. Of {all} sentences on a direction or an order {hold} hold. So a
rule mostly helps where its paper says so, but often by more or by less: expect no figure of these."""


def table(data):
    """Returns the blocks of docs/results.md by name: the first paragraph, and the table. The name of a paper stands in its first row."""
    found = [("" if k else paper, *row, data.work()) for paper, rows in PAPERS.items() for k, row in enumerate(rows(data))]
    results = [row[-2] for row in found]
    firm = [row for row in found if row[-2] == result(True)]
    hold, everything = re.match(r"(\d+) of (\d+)", data.target("direction and ranking as in the source")).groups()
    letter = results.count(result(True) + CHANCE)
    said = SAID.format(lines=len(found), reached=len(firm), stock=sum(row[-1] == STOCK_ONLY for row in firm),
                       direction=results.count(direction(True)), chance=sum(x.endswith(CHANCE) for x in results),
                       letter=letter, both=len(firm) + letter,
                       missed=results.count(result(False)), hold=hold, all=everything)
    lines = ["| paper | figure | source | ours | result | machine's work, % |", "| --- | --- | --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(row).strip() + " |" for row in found]
    return {"counts": said, "table": "\n".join(lines)}


def kernel_table(text):
    """Returns the block of Table 5.2 on the kernel, from kernel.md: gains of CPU time beside the source's, gains of turnaround, Total
    over the least possible, and the machine's work."""
    head, *rows = marks.tables(marks.block(text, "table-5.2"))
    steered = head[3:]
    found = {(int(row[0]), row[1]): row[2:] for row in rows}
    counts = sorted({n for n, _ in found})
    lines = ["| copies | " + " | ".join(f"{mode} | source" for mode in steered[:3]) + f" | {steered[3]} |", "| --- |" + " --- |" * 7]
    for n in counts:
        pairs = zip(found[n, "Gain %"][1:4], found[n, "Gain % in the source"][1:4])
        lines.append(f"| {n} | " + " | ".join(f"{ours} | {source}" for ours, source in pairs) + f" | {found[n, 'Gain %'][4]} |")
    lines += ["", "| copies | " + " | ".join(steered) + " | " + " | ".join(f"T*, {mode}" for mode in head[2:]) + " | machine's work, % |",
              "| --- |" + " --- |" * (2 * len(steered) + 2)]
    for n in counts:
        lines.append("| " + " | ".join([str(n), *found[n, "Turnaround gain %"][1:], *found[n, "Total over the least possible"],
                                        span([number(cell) for cell in found[n, "Machine's work %"][1:4]])]) + " |")
    return "\n".join(lines)


def paced_table(text):
    """Returns the block of Table 5.2 on the kernel at the source's pace, from kernel.md: Avg and Total, each beside the source's."""
    head, *rows = marks.tables(marks.block(text, "table-5.2-paced"))
    # The table behind it has no numbers of copies.
    rows = [row for row in rows if row[0].isdigit()]
    found = {(row[0], row[1]): row for row in rows}
    counts, policies = list(dict.fromkeys(row[0] for row in rows)), list(dict.fromkeys(row[1] for row in rows))
    lines = ["| copies | " + " | ".join(f"{column}: {policy} | source" for column in ("Avg s", "Total s") for policy in policies) + " | machine's work, % |",
             "| --- |" + " --- |" * (4 * len(policies) + 1)]
    for n in counts:
        cells = []
        for column in ("Avg s", "Total s"):
            ours = head.index(column)
            source = head.index("in the source", ours)
            cells += [cell for policy in policies for cell in (found[n, policy][ours], found[n, policy][source])]
        work = span([number(found[n, policy][head.index("Machine's work %")]) for policy in policies])
        lines.append("| " + " | ".join([n, *cells, work]) + " |")
    return "\n".join(lines)


def blocks(data, pages):
    """Returns the generated blocks of docs/results.md, by name."""
    return table(data) | {"kernel": kernel_table(pages["kernel.md"]), "kernel-paced": paced_table(pages["kernel.md"])}


def strays(text, pages):
    """Returns the figures of the hand-written text that stand on no page of data."""
    for name in marks.names(text):
        text = text.replace(marks.block(text, name), "")
    known = set(re.findall(r"\d+(?:\.\d+)?", pages))
    return sorted({x for x in re.findall(r"(?<![\w.-])\d+\.\d+(?![\w.])|(?<![\w.])\d+(?= %)", text) if x not in known})


def screens(results):
    """Returns the lines before the first heading behind the table."""
    return results[:results.index("\n## ", results.index("<!-- table: end"))].splitlines()


def faults(results, data, pages):
    """Returns what is wrong, as sentences. pages: the generated pages by name."""
    found = [f"docs/data/{name}: the block {block} was edited by hand" for name, text in pages.items() for block in marks.edited(text)]
    found += [f"docs/results.md: the block {name} is not that of docs/data; run tests/bench/papers/page.py"
              for name, wanted in blocks(data, pages).items() if marks.block(results, name) != wanted]
    found += [f"docs/results.md: wider than {WIDTH} columns: {line}" for line in screens(results) if len(line) > WIDTH]
    first = len(screens(results))
    if first > 100:
        found.append(f"docs/results.md: the first part has {first} lines, and two screens have 100")
    found += [f"docs/results.md: the figure {x} is on no page of docs/data" for x in strays(results, "".join(pages.values()))]
    return found


def main():
    pages = {path.name: path.read_text(encoding="utf-8") for path in sorted((DOCS / "data").glob("*.md"))}
    data, path = Data(pages["simulator.md"]), DOCS / "results.md"
    results = path.read_text(encoding="utf-8")
    if sys.argv[1:] == ["--check"]:
        wrong = faults(results, data, pages)
        raise SystemExit("\n".join(wrong) if wrong else 0)
    if sys.argv[1:]:
        raise SystemExit(__doc__)
    for name, wanted in blocks(data, pages).items():
        results = marks.put(results, name, wanted)
    path.write_text(results, encoding="utf-8")


if __name__ == "__main__":
    main()
