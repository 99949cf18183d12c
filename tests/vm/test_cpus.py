#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_cpus.py BUILD: tests cpus.py and load-copies without a virtual machine."""
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

    def found(self, turnaround, stock=(8, 10)):
        """Runs whose copies have the CPU for half of the time, or under the stock scheduler for two thirds of it."""
        found = {mode: {n: [{"total": turnaround, "turnaround": turnaround, "cpu": 3}] * 2 for n in copies.COUNTS}
                 for mode in list(kernel.MODES)}
        found["stock"] = {n: [{"total": each, "turnaround": each, "cpu": 6} for each in stock] for n in copies.COUNTS}
        return found

    def write_5_2(self, turnaround, stock=(8, 10)):
        found = self.found(turnaround, stock)
        papers.write("table-5.2", ["`./dev vm papers`: 2 runs of each in one boot.", "", *copies.show(found)])


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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
