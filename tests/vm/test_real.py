#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_real.py BUILD: tests how real.py reads what the guest says, and its page, without a virtual machine."""
import sys
import unittest

import real

SAID = """state begin 1000 10 5
state end 3000 14 45
program: fps=90.50 p99=17.20 work=1.2000
other: work=4.5000
"""


def one(fps, work, **more):
    return {"program": {"fps": fps, "p99": 20.0, "work": 1.0}, "other": {"work": work - 1}, "work": work, **more}


class Reading(unittest.TestCase):
    def test_both_programs_and_what_asymd_did_a_second(self):
        found = real.parse(SAID)
        self.assertEqual(found["program"], {"fps": 90.5, "p99": 17.2, "work": 1.2})
        self.assertAlmostEqual(found["work"], 5.7)
        self.assertEqual((found["changes"], found["cost"]), (2, 20))

    def test_without_asymd_and_without_a_program(self):
        self.assertEqual(real.parse("program:\nother:\n"), {"program": {}, "other": {}, "work": 0})


class Page(unittest.TestCase):
    FOUND = {"stock": [one(40, 5), one(50, 6)],
             "asym": [one(60, 5, changes=1, cost=9), one(100, 6, changes=3, cost=9), one(1, 1, changes=9, cost=9)]}

    def test_a_gain_is_against_stock_of_the_same_turn(self):
        lines = list(real.lines("frames", self.FOUND))
        self.assertIn("| 45.00 (40.00 to 50.00) |  |  | 80.00: +75.0 (+50.0 to +100.0) % | 2 |", lines[0])
        self.assertIn("| machine's work | 5.50 (5.00 to 6.00) |  |  | 5.50: +0.0 (+0.0 to +0.0) % | 2 |", lines[1])

    def test_a_turn_that_was_not_ended_is_left_out(self):
        self.assertIn("|  |  |  | 2.00 (1.00 to 3.00) | 2 |", list(real.lines("frames", self.FOUND))[3])

    def test_a_row_of_other_modes_stands_in_a_table_of_its_own_and_compares_with_the_first(self):
        modes = dict(zip(real.ABLATED, (self.FOUND["stock"], self.FOUND["asym"], *[[one(20, 5)] * 2] * 2)))
        about = {"about": "today"}
        text = real.page({"frames": {**about, "runs": self.FOUND}, "frames-without": {**about, "runs": modes}})
        self.assertIn("| 45.00 (40.00 to 50.00) | 80.00: +75.0 (+50.0 to +100.0) % | 20.00: -55.0 (-60.0 to -50.0) % |", text)
        self.assertLess(text.index("frames: "), text.index("| row | figure | asym | asym boost=0 |"))

    def test_rows_of_arm64_have_a_table_and_a_build_of_their_own(self):
        runs = {"stock": [one(40, 5)], "auto": [one(60, 5, changes=1, cost=9)]}
        text = real.page({name: {"about": "today", "runs": runs} for name in ("arm64-frames",)})
        self.assertIn("| row | figure | stock | auto | runs |", text)
        self.assertIn("| arm64-frames: frame loop of 6 threads beside 8 busy threads | frames a second | 40.00 | 60.00: +50.0 % | 1 |", text)
        self.assertIn("arm64-serial", real.names_for("arm64"))
        self.assertNotIn("arm64-serial", real.names_for("release"))
        self.assertNotIn("xz", real.names_for("arm64"))

    def test_schedulers_of_sched_ext_have_rows_and_a_page_of_their_own(self):
        peers = {"stock": [one(40, 5)], "asym": [one(60, 5)], "scx_lavd": [one(50, 4, scheduler="lavd_1")],
                 "scx_bpfland": [one(20, 5, scheduler="bpfland_1")]}
        make = {mode: [{"figure": s}] for mode, s in zip(real.PEERS, (30, 20, 40, 30))}
        record = {"frames-peers": {"about": "today", "runs": peers}, "make": {"about": "today", "runs": make}}
        text = real.page(record, real.PAGES["sid"])
        self.assertIn("(bpfland_1; lavd_1; today)", text)
        self.assertIn("| row | figure | stock | asym | scx_lavd | scx_bpfland | runs |", text)
        self.assertIn("| 40.00 | 60.00: +50.0 % | 50.00: +25.0 % | 20.00: -50.0 % | 1 |", text)
        self.assertIn("| make: `make -j8` alone | s | 30.00 | 20.00: +50.0 % | 40.00: -25.0 % | 30.00: +0.0 % | 1 |", text)
        self.assertEqual(set(real.names_for("release", "sid")) - set(real.ROWS), {"make"})
        self.assertNotIn("frames-peers", real.names_for("release"))

    def test_options_follow_the_policy_of_a_mode(self):
        policy, config = real.configuration("asym boost=0")
        self.assertEqual(policy, "asym")
        self.assertTrue(config.endswith("[policy.asym]\nboost=0"))
        self.assertEqual(real.configuration("pa"), ("pa", real.CONFIG))

    def test_rows_stand_in_their_order_whatever_was_measured_first(self):
        text = real.page({name: {"about": "today", "runs": self.FOUND} for name in ("frames-60", "frames")})
        self.assertLess(text.index("frames: "), text.index("frames-60: "))
        self.assertIn("(today)", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
