#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_openmp.py BUILD: tests openmp.py and load-openmp without a virtual machine."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import lab as lab_module
import openmp

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
RATE = 30.0


class Ended(Exception):
    pass


class Lab:
    """Fakes a machine on which a serial phase runs on a fast CPU only if pa sees it; nothing else costs or gains."""

    def __init__(self, end_after=None):
        self.s, self.steered_by, self.online, self.commands, self.end_after = self, "stock", set(range(8)), [], end_after

    def sh(self, command):
        on, cpu = re.fullmatch(r"echo ([01]) >/sys/devices/system/cpu/cpu(\d+)/online", command).groups()
        self.online = self.online | {int(cpu)} if on == "1" else self.online - {int(cpu)}

    def journal(self):
        return ""

    def policy(self, name, _config=None):
        self.steered_by = name

    def timed_after(self, command, _seconds):
        return self.timed(command)

    def timed(self, command):
        if len(self.commands) == self.end_after:
            raise Ended
        self.commands.append((self.steered_by, len(self.online), command))
        _, begins, _, rounds, serial, barriers, each = map(int, command.split()[-8:-1])
        sees = self.steered_by == "pa" and ("asymctl run" in command or "KMP_BLOCKTIME=0" in command)
        fast = sees or begins == 4
        alone = rounds * serial / RATE / 1000 / (2 if fast else 1)
        whole = alone + rounds * barriers * each / RATE / 1000
        return f"time={whole:.4f} serial={alone:.4f} due={whole:.4f} dueserial={alone:.4f} cpus={4 if fast else 0}:100.0"


class Host:
    """Fakes the guest: its commands print these texts and end with this status."""

    def __init__(self, said, status):
        self.guest, self.speeds, self.limits, self.said, self.status = self, self, [], said, status

    def limit(self, limited):
        self.limits.append(limited)

    def run(self, _command, output):
        for text in self.said:
            output.write(text)
        return self.status


class Test(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.args = argparse.Namespace(build=pathlib.Path(self.directory.name), runs=1, resume=False)

    def test_the_serial_share_is_a_share_of_all_steps(self):
        for case in openmp.cases(self.args):
            left = openmp.work(case, RATE)
            whole = left.serial + left.threads * left.barriers * left.slice
            self.assertAlmostEqual(100 * left.serial / whole, case.share, delta=0.1)
            self.assertAlmostEqual(left.slice, RATE * case.interval)

    def test_a_program_says_where_its_serial_phases_ran(self):
        said = openmp.parse("time=2.5000 serial=1.2500 due=2.0000 dueserial=1.0000 cpus=0:10.5,4:60.0,7:29.5")
        self.assertEqual(said, {"time": 2.5, "serial": 1.25, "due": 2, "dueserial": 1, "fast": 89.5})
        none = openmp.parse("time=2.5000 serial=0.0000 due=2.0000 dueserial=0.0000 cpus=")
        self.assertEqual(none["fast"], 0)

    def test_every_case_is_measured_on_its_cpus_and_under_its_policy(self):
        lab = Lab()
        openmp.measure(lab, self.args)
        cells = [each for each in lab.commands if "KMP" in each[2]]
        self.assertEqual(len(cells), 264)
        for steered_by, cpus, command in cells:
            self.assertEqual(int(command.split()[-8]), cpus - 1)
            self.assertTrue(steered_by == "pa" or "asymctl" not in command)
        self.assertEqual(sum("asymctl" in command for _, _, command in cells), 96)
        self.assertEqual(sum(by == "stock" for by, _, _ in cells), 96)

    def test_what_was_measured_before_the_end_is_kept(self):
        with self.assertRaises(Ended):
            openmp.measure(Lab(end_after=100), self.args)
        self.args.resume = True
        lab = Lab()
        results = openmp.measure(lab, self.args)
        # Six commands calibrate, and eight cases of eleven commands are complete. The interrupted case is measured again.
        self.assertEqual(len(lab.commands), 264 - 88)
        self.assertEqual(len(results.record.found), 24)
        self.args.resume = False
        lab = Lab()
        openmp.measure(lab, self.args)
        self.assertEqual(len(lab.commands), 6 + 264)

    def test_medians_are_over_runs(self):
        self.args.runs = 3
        results = openmp.measure(Lab(), self.args)
        row = ("4 + 4", 0, 10)
        for run, time in enumerate((2.0, 9.0, 3.0)):
            results.record.found[openmp.Case(run, *row)]["pa sleep"]["due"] = time
        self.assertEqual(results.time(row, "pa sleep"), 3.0)
        self.assertEqual(openmp.spread(results.values(row, "pa sleep")), "3.00 (2.00 to 9.00)")

    def test_speeds_hold_from_before_a_program_begins_until_it_has_said_what_it_took(self):
        clock, limits = [0.0], []
        switch = lab_module.Switch(lambda limited: limits.append((clock[0], limited)), 2.0, lambda: clock[0])
        for clock[0], text in ((3.0, b""), (5.0, b"rea"), (6.0, b"dy\n"), (7.9, b""), (8.0, b""), (8.2, b"ti"), (9.0, b""),
                               (9.2, b"me=1\n"), (9.4, b"")):
            switch.write(text)
        self.assertEqual(limits, [(8.0, True), (9.2, False)])
        self.assertEqual(switch.getvalue(), b"ready\ntime=1\n")

    def test_speeds_hold_for_no_program_once_one_has_ended(self):
        lab = object.__new__(lab_module.Lab)
        lab.s = Host([b"ready\n", b"time=1\n"], 0)
        self.assertEqual(lab.timed_after("program", lab_module.BEFORE_S), "ready\ntime=1\n")
        self.assertEqual(lab.s.limits, [True, False, False])
        lab.s = Host([b"ready\n"], 3)
        with self.assertRaisesRegex(lab_module.run.Wrong, "program says:\nready"):
            lab.timed_after("program", lab_module.BEFORE_S)
        self.assertEqual(lab.s.limits, [True, False])

    def test_the_program_says_what_is_parsed(self):
        said = self.run_program("2", "0", "10", "2", "2000", "5", "100", "500")
        self.assertGreater(said["serial"], 0)
        self.assertGreater(said["time"], said["serial"])

    def test_what_is_due_goes_by_the_speeds_that_are_set(self):
        # No host counts so slowly: the time that is due comes from the work alone, not from the time that this host takes.
        said = self.run_program("1", "0", "0", "4", "500", "5", "100", "0.1,0.1")
        self.assertAlmostEqual(said["dueserial"], 4 * 500 / 0.1 / 1000, delta=0.5)
        self.assertAlmostEqual(said["due"], 4 * 1000 / 0.1 / 1000, delta=1)

    def test_waits_for_a_cpu_count_by_what_it_counts(self):
        # Two threads on one CPU wait for half of the time. On a CPU that counts at a tenth of its rate, a twentieth counts.
        cpu = min(os.sched_getaffinity(0))
        # Other programs on the CPU only add to a time: take the least of several times, and the best of several comparisons.
        shares = []
        for _ in range(5):
            alone = min(self.run_program("1", str(cpu), "0", "1", "50000", "1", "1", "1")["serial"] for _ in range(5))
            fast = 10 * 50000 / alone / 1000
            both = self.run_program("2", str(cpu), "0", "1", "0", "1", "50000", str(fast), before=("taskset", "-c", str(cpu)))
            self.assertGreater(both["due"], 2 * 50000 / fast / 1000 * 0.8)
            shares.append(both["due"] / both["time"])
            if shares[-1] < 0.3:
                return
        self.fail(f"the time that is due is {min(shares):.2f} of the elapsed time or more")

    @staticmethod
    def run_program(*arguments, before=()):
        cpus = ",".join([arguments[-1]] * os.cpu_count()) if "," not in arguments[-1] else arguments[-1]
        command = [*before, BUILD / "tests" / "load-openmp", *arguments[:-1], cpus]
        return openmp.parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    unittest.main()
