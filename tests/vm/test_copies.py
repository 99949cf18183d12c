#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_copies.py BUILD: tests the part of copies.py at the pace of the source's kernel, without a virtual machine."""
import argparse
import contextlib
import io
import sys
import unittest

import copies


class Lab:
    """Fakes a guest in which a task of 200 million steps takes 0.4 s, and each run of copies 6 s."""

    def __init__(self):
        self.did, self.waited = [], []

    def wait(self, seconds):
        self.waited.append(seconds)

    def policy(self, name, config=""):
        self.did.append((name, config))

    def timed(self, command):
        self.did.append(command)
        return "total=0.4 turnaround=0.4 cpu=0.3\n" if "200 7" in command else "total=9 turnaround=8 cpu=6\n"


def runs(cpu):
    return {n: [{"total": 9, "turnaround": 8, "cpu": each} for each in (cpu - 1, cpu + 1)] for n in copies.COUNTS}


class Test(unittest.TestCase):
    def test_asymd_reacts_once_in_a_period(self):
        self.assertIn("interval = 2500ms", copies.paced_config("throughput"))
        self.assertNotIn("neighbour_period", copies.paced_config("throughput"))
        # The source's priority pulls by itself, so that the samples may be as dense as ever.
        self.assertIn("interval = 100ms", copies.paced_config("priority"))
        self.assertTrue(copies.paced_config("priority").endswith("[policy.priority]\nneighbour_period = 2500ms"))

    def test_starts_are_spread_over_a_period(self):
        lab = Lab()
        with contextlib.redirect_stdout(io.StringIO()):
            found = copies.measure_paced(lab, argparse.Namespace(runs=5, seconds=4))
        self.assertEqual([round(each, 3) for each in lab.waited], [each for each in (0, 0.5, 1, 1.5, 2) for _ in copies.STEERED] * len(copies.COUNTS))
        self.assertEqual({len(each) for policy in found.values() for each in policy.values()}, {5})
        # As many steps as the fastest CPU does in 4 s.
        self.assertEqual(lab.did[1:3], [("response-time", copies.paced_config("response-time")), "/opt/load-copies 1 2000"])

    def test_each_column_stands_beside_the_source(self):
        found = {policy: runs(6) for policy in copies.STEERED}
        lines = list(copies.show_paced(found, {policy: runs(12) for policy in ("stock", *copies.STEERED)}))
        self.assertEqual(len(lines), 2 + 3 * len(copies.COUNTS) + 5 + 3)
        self.assertEqual(lines[2], "| 1 | response-time | 9.00 | 7.12 | 6.00 | 5.00 to 7.00 | 6.59 | 50.0 | 52.4 | 56.7 | +0.0 |")
        self.assertEqual(copies.work([{"total": 9}], [{"total": 18}]), "+100.0")
        self.assertEqual(copies.work([{"total": 20}], [{"total": 18}]), "**-10.0**")
        # As many seconds of CPU time as the source's mean, which has 6.14 to 6.74.
        self.assertRegex(lines[-3], r"^\| response-time \| .* \| 85 % \(\+78 to \+95\) \| 8 % \(-11 to -2\) \|$")

    def test_a_gain_is_judged_to_either_side_and_the_order_by_avg(self):
        found = {"response-time": runs(6), "throughput": runs(7), "priority": runs(6.5)}
        verdicts = dict(copies.judge_paced(found, {"stock": runs(12)}))
        self.assertTrue(verdicts["response-time, 1 copy: gain 50.0 %, the source's 52.4 % (bar: 8 points)"])
        self.assertFalse(verdicts["response-time, 12 copies: gain 50.0 %, the source's 34.6 % (bar: 8 points)"])
        self.assertFalse(verdicts["2 copies: Avg of response-time, throughput, priority in this order (bar: the source's)"])
        found["priority"] = runs(7.5)
        verdicts = dict(copies.judge_paced(found, {"stock": runs(12)}))
        self.assertTrue(verdicts["2 copies: Avg of response-time, throughput, priority in this order (bar: the source's)"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
