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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
