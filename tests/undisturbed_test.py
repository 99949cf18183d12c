#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Check tests/undisturbed.py: which failed test it runs again, and which not. The host's part is played here."""
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from contextlib import redirect_stdout

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import undisturbed

REAL_WAIT, REAL_SHARE = undisturbed.wait_for_host, undisturbed.share_under_load

# Stands for a live test: it counts its runs in a file, notes which tests it was asked for, and passes at run number argv[2].
PROGRAM = """
import os, sys
path, passes = sys.argv[1], int(sys.argv[2])
with open(path, "a") as runs:
    runs.write(os.environ.get("ASYM_TEST_ONLY", "all") + "\\n")
with open(path) as runs:
    n = len(runs.readlines())
if n < passes:
    print("[  FAILED  ] takes_a_share")
    print("[  FAILED  ] 1 test(s), listed below:")
    sys.exit(1)
"""


class Undisturbed(unittest.TestCase):
    def play(self, passes, taken):
        """Run the program, while the host takes the share taken. Return the exit status and what each run was asked for."""
        undisturbed.Stretch.share = lambda _: taken
        undisturbed.wait_for_host = lambda: 0.0
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "runs")
            sys.argv = ["undisturbed.py", "--limit=60", sys.executable, "-c", PROGRAM, path, str(passes)]
            with redirect_stdout(io.StringIO()):
                status = undisturbed.main()
            with open(path) as runs:
                return status, runs.read().split("\n")[:-1]

    def test_which_failure_is_run_again(self):
        for passes, taken, status, runs in ((1, 0.9, 0, ["all"]),  # it passes
                                            (2, 0.04, 1, ["all"]),  # on an undisturbed machine a failure counts
                                            (2, 0.06, 0, ["all", "takes_a_share"]),
                                            (99, 0.06, 1, ["all"] + ["takes_a_share"] * 3)):  # it always fails
            with self.subTest(passes=passes, taken=taken):
                self.assertEqual(self.play(passes, taken), (status, runs))


class Waiting(unittest.TestCase):
    def wait(self, shares):
        """Return the share at the end of the wait, and how often the host was measured."""
        measured = []
        clock = iter(range(0, 100000, 50))
        undisturbed.share_under_load = lambda: measured.append(shares[len(measured)]) or measured[-1]
        undisturbed.time = types.SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None)
        try:
            return REAL_WAIT(), len(measured)
        finally:
            undisturbed.time = time

    def test_it_ends_when_the_host_leaves_the_cpus_alone_or_its_time_is_over(self):
        self.assertEqual(self.wait([0.5, 0.2, 0.01]), (0.01, 3))
        share, n = self.wait([0.5] * 100)
        self.assertEqual(share, 0.5)
        self.assertLess(n, 6)


class Load(unittest.TestCase):
    def test_the_spinners_leave_the_cpus_to_other_tests(self):
        spinners, policies = [], []

        def start(*arguments, **options):
            spinners.append(subprocess.Popen(*arguments, **options))
            return spinners[-1]

        def look(_):
            policies.extend(os.sched_getscheduler(spinner.pid) for spinner in spinners)

        undisturbed.subprocess = types.SimpleNamespace(Popen=start)
        undisturbed.time = types.SimpleNamespace(monotonic=time.monotonic, sleep=look)
        try:
            REAL_SHARE(0.1)
        finally:
            undisturbed.subprocess, undisturbed.time = subprocess, time
        self.assertEqual(policies, [os.SCHED_IDLE] * os.sysconf("SC_NPROCESSORS_ONLN"))
        self.assertEqual([spinner.returncode for spinner in spinners], [-signal.SIGKILL] * len(spinners))


class User(unittest.TestCase):
    """Root runs ctest for the user of this test."""

    def user_of(self, needs):
        return undisturbed.user_of(needs, {"ASYM_TEST_USER": f"{os.getuid()}:{os.getgid()}", "ASYM_TEST_ROOT": "root"})

    def test_a_test_runs_as_the_user_unless_it_needs_root(self):
        self.assertEqual(self.user_of(["root", "connector"]), {})
        self.assertEqual((self.user_of(["connector"])["user"], self.user_of([""])["group"]), (os.getuid(), os.getgid()))
        self.assertEqual(undisturbed.user_of([""], {}), {})
        # The test may start undisturbed.py itself, as this one does: nothing is left to change.
        environment = {"ASYM_TEST_USER": "1:1", "ASYM_TEST_ROOT": "root"}
        undisturbed.user_of([""], environment)
        self.assertEqual(undisturbed.user_of([""], environment), {})


class Limit(unittest.TestCase):
    def test_all_rounds_have_five_times_the_limit(self):
        self.assertEqual([undisturbed.limit_of("60", e) for e in ({}, {"ASYM_NIGHTLY": "1"})], [60, 300])

    def run_limited(self, program):
        with redirect_stdout(io.StringIO()):
            return undisturbed.run([sys.executable, "-c", program], 1, dict(os.environ), {})

    def test_a_run_that_loops_is_ended_in_each_of_its_processes(self):
        self.assertEqual(self.run_limited("while True: pass"), (-signal.SIGXCPU, set()))
        status, _ = self.run_limited("import os; child = os.fork()\nwhile not child: pass\nos._exit(os.waitpid(child, 0)[1])")
        self.assertEqual(status, signal.SIGXCPU)

    def test_a_process_that_catches_the_signal_is_ended_too(self):
        status, _ = self.run_limited("import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass")
        self.assertEqual(status, -signal.SIGKILL)

    def test_time_in_which_a_run_waits_does_not_count(self):
        self.assertEqual(self.run_limited("import time; time.sleep(1.5)"), (0, set()))


if __name__ == "__main__":
    unittest.main()
