#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_cpus.py BUILD: tests cpus.py, load-copies, and the simulator's use of its table and of Table 5.2, without a virtual machine."""
import argparse
import contextlib
import io
import pathlib
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench" / "papers"))
import copies  # noqa: E402
import cpus  # noqa: E402
import kernel  # noqa: E402
import papers  # noqa: E402
from lab import figures  # noqa: E402

LOOK = """{at} 5.00
            CPU0       CPU1       CPU2       CPU3       CPU4       CPU5       CPU6       CPU7
  0:         {a}          0          0          0          0          0          0          0   IO-APIC   2-edge      timer
LOC:         {b}          2          0          0          0          0          0          {c}   Local timer interrupts
ERR:          9
"""


class Guest:
    """Fakes eight CPUs of these speeds. On the first one something else takes ticks. The clock moves as its commands run."""

    def __init__(self, speeds, status=0):
        self.paces, self.status, self.now, self.took, self.pinned = speeds, status, 100.0, [0.0] * 8, []
        self.qemu = self.s = self.guest = self
        self.limited = []

    @contextlib.contextmanager
    def speeds(self):
        self.limited.append(True)
        yield
        self.limited.append(False)

    def cpu_threads(self):
        return list(range(8))

    def policy(self, name):
        assert name == "stock"

    def timed(self, _command):
        return "total=0.400 turnaround=0.400 cpu=0.300\n"

    def work(self, cpu, seconds, output):
        """A fifth of a second at a time; a CPU that works has its quota; CPU 0 has half of its quota whichever CPU works."""
        end = self.now + seconds
        while self.now < end:
            output.write(b"")
            self.now += 0.2
            for each in range(8):
                share = 1 if each == cpu else 0.5 if each == 0 else 0
                self.took[each] += 0.2 * share * cpus.quota(each)

    def look(self):
        return LOOK.format(at=f"{self.now:.2f}", a=int(10 * self.now), b=int(90 * self.now), c=7).encode()

    def run(self, command, output):
        output.write(self.look())
        if match := re.search(r"load-copies 1 (\d+) (\d)", command):
            millions, cpu = map(int, match.groups())
            seconds = 8 * millions / 50 / self.paces[cpu]
            self.pinned.append(cpu)
            self.work(cpu, seconds, output)
            output.write(f"total={seconds:.3f} turnaround={seconds:.3f} cpu={seconds:.3f}\n".encode())
        else:
            self.work(-1, cpus.IDLE_S, output)
        output.write(self.look())
        return self.status


SPEEDS = (0.75, 2.5, 3, 4.25, 5, 6.5, 6, 8)


class Test(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.results = pathlib.Path(directory.name) / "results.md"
        self.results.write_text("# Results\n")
        self.addCleanup(setattr, papers, "RESULTS", papers.RESULTS)
        self.addCleanup(setattr, kernel, "RESULTS", kernel.RESULTS)
        papers.RESULTS = kernel.RESULTS = self.results

    def measure(self, guest, runs=3):
        """Measures as in the virtual machine, with the fake's clock and the CPU time of its threads."""
        watch = cpus.Watch
        self.addCleanup(setattr, cpus, "Watch", watch)
        cpus.Watch = lambda had, ended: watch(lambda: list(guest.took), ended, lambda: guest.now)
        with contextlib.redirect_stdout(io.StringIO()):
            return cpus.measure(guest, argparse.Namespace(runs=runs))

    def write(self, found, runs=3):
        papers.write("speeds", [f"`./dev vm papers`: {runs} runs of each in one boot.", "", *cpus.show(found)])

    def test_the_nominal_speeds_are_1_to_8(self):
        self.assertEqual(cpus.NOMINAL, [1, 2, 3, 4, 5, 6, 7, 8])
        self.assertAlmostEqual(sum(map(cpus.quota, range(8))), cpus.speeds.HOST_CORES)

    def test_every_run_is_over_all_cpus_there_and_back_while_they_have_their_speeds(self):
        guest = Guest(SPEEDS)
        self.measure(guest)
        self.assertEqual(guest.pinned, [*range(7, -1, -1), *range(8), *range(7, -1, -1)])
        self.assertEqual(guest.limited, [True, False] * (3 * 8 + 3))

    def test_speeds_are_relative_to_the_fastest(self):
        found = self.measure(Guest(SPEEDS))
        for each, speed in zip(cpus.relative(found["task"]), SPEEDS):
            self.assertEqual(len(each), 3)
            for one in each:
                self.assertAlmostEqual(one, speed, delta=0.01)

    def test_host_time_is_that_of_the_time_in_which_the_task_ran(self):
        found = self.measure(Guest(SPEEDS))
        for cpu in range(8):
            self.assertAlmostEqual(cpus.had(found["task"][cpu], cpu), 1, places=6)
            self.assertAlmostEqual(cpus.had(found["idle"][cpu], cpu), 0.5 if cpu == 0 else 0, places=6)

    def test_samples_before_the_task_began_do_not_count(self):
        clock, had = [0.0], [0.0]
        watch = cpus.Watch(lambda: [had[0]], lambda text: "total=" in text, lambda: clock[0])
        for clock[0], had[0], text in ((0, 0, b""), (1, 0, b""), (2, 0, b""), (2.3, 0.1, b""), (2.8, 0.35, b""), (3, 0.45, b""),
                                       (3.2, 9, b"total=1.0 turnaround=1.0 cpu=1.0\n"), (9, 99, b"")):
            watch.write(text)
        self.assertAlmostEqual(watch.rates(1.0)[0], 0.5)

    def test_interrupts_of_all_kinds_are_counted_by_cpu_and_reading(self):
        text = LOOK.format(at="10.50", a=1, b=3, c=7) + "total=1.0 turnaround=1.0 cpu=1.0\n" + LOOK.format(at="12.00", a=2, b=5, c=8)
        self.assertEqual(cpus.interrupts(text), [(10.5, [4, 2, 0, 0, 0, 0, 0, 7]), (12.0, [7, 2, 0, 0, 0, 0, 0, 8])])
        found = self.measure(Guest(SPEEDS))
        self.assertAlmostEqual(cpus.median(found["task"][0], "interrupts"), 100, delta=1)
        self.assertEqual(cpus.median(found["task"][7], "interrupts"), 0)

    def test_a_load_that_fails_ends_the_measurement(self):
        with self.assertRaisesRegex(SystemExit, "load-copies 1 50 7: ends with status 3 and says"):
            self.measure(Guest(SPEEDS, 3))

    def test_the_simulator_takes_the_medians_that_were_written(self):
        found = self.measure(Guest(SPEEDS))
        found["task"][1][0] = found["task"][1][0]._replace(seconds=99)
        self.write(found)
        self.assertEqual(kernel.measured_speeds(), (list(SPEEDS), 3))

    def test_nothing_measured_is_nothing(self):
        self.assertEqual(kernel.measured_speeds(), ([], 0))
        self.assertEqual(kernel.measured("Turnaround s"), ({}, 0))

    def test_table_5_2_is_read_as_it_is_written(self):
        self.write_5_2(4)
        figures, runs = kernel.measured("Turnaround s")
        self.assertEqual((runs, len(figures), figures["stock", 1], figures["pinned", 12]), (2, 30, 9, 4))
        self.assertEqual(kernel.measured("Turnaround, from to", kernel.ends)[0]["stock", 1], (8, 10))
        # CPU time is its own column: the source's Avg and gain are of it.
        self.assertEqual(kernel.measured("Avg s")[0]["stock", 1], 6)
        self.assertEqual(kernel.measured("Gain %")[0]["priority", 4], 50)
        self.assertEqual(kernel.measured("Turnaround gain %")[0]["priority", 4], 55.6)

    def test_gains_are_judged_by_cpu_time_against_the_source(self):
        verdicts = dict(copies.judge(self.found(4)))
        self.assertFalse(verdicts["response-time, 1 copy: gain 50.0 %, the source's 52.4 %"])
        self.assertTrue(verdicts["response-time, 4 copies: gain 50.0 %, the source's 44.7 %"])

    def test_the_least_total_is_that_of_all_cpus_or_of_the_fastest(self):
        # The task takes 4 s on the fastest CPU: work 32 at speed 8.
        found = self.found(4)
        found["pinned"] = {n: [{"turnaround": 4 * copies.pinned_seconds(n)}] for n in copies.COUNTS}
        for n, least in ((1, 4), (2, 64 / 15), (7, 7 * 32 / 35), (8, 8 * 32 / 36), (12, 12 * 32 / 36)):
            self.assertAlmostEqual(copies.bound(found, n), least)

    def test_pinned_copies_of_a_cpu_share_it(self):
        self.assertEqual(copies.ideal(2), "6,7")
        self.assertAlmostEqual(copies.pinned_seconds(2), (1 + 8 / 7) / 2)
        self.assertAlmostEqual(copies.pinned_seconds(10), sum(n * 8 / (cpu + 1) * n for cpu, n in
                                                             {c: copies.ideal(10).split(",").count(str(c)) for c in range(8)}.items()) / 10)

    def found(self, turnaround, stock=(8, 10)):
        """Runs whose copies have the CPU for half of the time, or under the stock scheduler for two thirds of it."""
        found = {mode: {n: [{"total": turnaround, "turnaround": turnaround, "cpu": 3}] * 2 for n in copies.COUNTS}
                 for mode in list(kernel.MODES)}
        found["stock"] = {n: [{"total": each, "turnaround": each, "cpu": 6} for each in stock] for n in copies.COUNTS}
        return found

    def write_5_2(self, turnaround, stock=(8, 10)):
        found = self.found(turnaround, stock)
        papers.write("table-5.2", ["`./dev vm papers`: 2 runs of each in one boot.", "", *copies.show(found)])

    def test_a_table_is_printed_again_from_its_record(self):
        self.addCleanup(setattr, papers, "RECORDS", papers.RECORDS)
        papers.RECORDS = self.results.parent / "kernel"
        about = {"runs": 2, "boots": "one boot", "kernel": "6.1", "host": "a host, 2026-01-01"}
        lines, missed = papers.page("table-5.2", about, self.found(4))
        papers.keep("table-5.2", about, self.found(4))
        self.assertEqual(papers.again(["table-5.2", "rtx"]), ["rtx"])
        self.assertEqual(papers.marks.block(self.results.read_text(), "table-5.2"), "\n".join(lines))
        self.assertGreater(missed, 0)
        self.assertEqual(kernel.measured("Gain %")[0]["priority", 4], 50)

    def test_speeds_are_printed_again_from_their_record(self):
        self.addCleanup(setattr, papers, "RECORDS", papers.RECORDS)
        papers.RECORDS = self.results.parent / "kernel"
        found, about = self.measure(Guest(SPEEDS)), {"runs": 3, "boots": "one boot", "kernel": "6.1", "host": "a host"}
        papers.keep("speeds", about, found)
        self.assertEqual(papers.page("speeds", *papers.kept("speeds")), papers.page("speeds", about, found))

    def test_runs_without_cpu_time_have_no_gain_and_miss_it(self):
        found = {mode: {n: [{key: run[key] for key in ("total", "turnaround")} for run in runs] for n, runs in counts.items()}
                 for mode, counts in self.found(4).items()}
        text = "\n".join(copies.show(found))
        self.assertNotIn("| Avg s |", text)
        self.assertNotIn("| Gain % |", text)
        verdicts = dict(copies.judge(found))
        self.assertFalse(verdicts["gains against the source's, which are of CPU time: these runs measured the turnaround only"])
        self.assertFalse([said for said in verdicts if "the source's 52.4" in said])

    def test_the_machine_as_measured_has_these_speeds_and_copies_pinned_where_they_were(self):
        text = kernel.vm_text("pinned", 4, 2, SPEEDS)
        self.assertIn("speeds = 0.75,2.5,3,4.25,5,6.5,6,8\n", text)
        self.assertEqual(re.findall(r"affinity = (\d)", text), ["4", "5", "6", "7"])
        self.assertIn("step = serial 16.000G", text)
        self.assertIn("count = 4\n", kernel.vm_text("priority", 4, 2, SPEEDS))

    def test_every_mode_is_simulated_on_both_machines(self):
        self.write_5_2(4)
        self.write(self.measure(Guest(SPEEDS)))
        lab = Simulator()
        title, said, table, why = kernel.vm_row(lab)
        modes = list(kernel.MODES)
        self.assertEqual(table[0], ["copies", *(mode + kind for mode in modes for kind in ("", kernel.AS_MEASURED))])
        self.assertEqual(lab.machines, {"1,2,3,4,5,6,7,8", "0.75,2.5,3.0,4.25,5.0,6.5,6.0,8.0"})
        # Stock takes as long as the slowest CPU: 32 s with the nominal speeds, 42.7 s with the measured ones, not 9.
        # Two runs are 2 s apart: the 95 % interval of their mean is +- 15.93 s.
        self.assertIn("9.00 / 32.00 +- 15.93 (+256 %)", table[1])
        self.assertIn("9.00 / 42.67 +- 15.93 (+374 %)", table[1])
        # The length of the task comes from the pinned copies, so pinned copies prove nothing.
        self.assertIn("within 15 %: response-time, throughput, priority; beyond: stock (+374 %)", why)
        self.assertIn("within 15 %: response-time, throughput, priority; beyond: stock (+256 %)", why)
        self.assertIn("takes 43 s there, not 32 s", why)
        self.assertIn("Stock's mean turnaround of 4, 8, 10 and 12 copies alone is 9.00 s / 42.67 s (+374 %)", why)
        # Copies have 6 s and 3 s of CPU time there. Here stock's take 42.7 s, and the steered ones 4.
        self.assertIn("Mean Avg by CPU time, the source's (as measured), is off by: stock +611 %, response-time +33 %", why)
        self.assertNotIn("nan", title + said + why)

    def test_starts_on_the_slowest_cpu_can_be_given_their_traced_share(self):
        # A quarter of 40 s and three quarters of 4 s.
        self.addCleanup(setattr, kernel, "TRACE", kernel.TRACE)
        kernel.TRACE = {"first copy on the slowest CPU": 10, "starts": 40}
        self.assertAlmostEqual(kernel.by_share([40, 4, 40, 40], [40, 4, 40, 41], 38), 13)
        self.assertAlmostEqual(kernel.by_share([9, 7], [40, 41], 38), 8)

    def test_without_measured_speeds_there_are_only_nominal_ones(self):
        self.write_5_2(4)
        lab = Simulator()
        *_, table, why = kernel.vm_row(lab)
        self.assertEqual(table[0], ["copies", *kernel.MODES])
        self.assertTrue(why.startswith("Mean turnaround within 15 %: response-time, throughput, priority; beyond: stock"), why)


class Copies(unittest.TestCase):
    def test_copies_that_share_a_cpu_have_less_cpu_time_than_turnaround(self):
        """However busy the machine is: four copies on one CPU cannot have more of its time than has passed."""
        cpu = min(os.sched_getaffinity(0))
        said = subprocess.run([os.path.join(sys.argv[1], "tests", "load-copies"), "4", "30", ",".join([str(cpu)] * 4)],
                              capture_output=True, text=True, check=True).stdout
        found = figures(said)
        self.assertEqual(list(found), ["total", "turnaround", "cpu"])
        self.assertLessEqual(4 * found["cpu"], found["total"] + 0.01)
        self.assertLessEqual(found["turnaround"], found["total"])
        self.assertGreater(found["turnaround"], found["cpu"])


class Simulator:
    """Fakes asymctl sim: modes that steer or pin take as long as on the fastest CPU, the others as long as on the
    slowest."""

    def __init__(self):
        self.machines = set()

    def has(self, *_names):
        return True

    def run(self, text, policies, _seeds):
        speeds, work = re.search(r"speeds = (\S+)", text)[1], float(re.search(r"serial ([\d.]+)G", text)[1])
        self.machines.add(speeds)
        stock = policies == ["none"] and "affinity" not in text
        speed = (min if stock else max)(map(float, speeds.split(",")))
        programs = [{"cpu_time_s": {"mean": work / speed}}] * text.count("[program")
        times = {"values": [work / speed]}
        return {policies[0]: {"turnaround_s": times, "total_s": times, "programs": programs}}


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
