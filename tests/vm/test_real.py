#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_real.py BUILD: tests how real.py reads what the guest says, and its page, without a virtual machine."""
import json
import sys
import unittest

import real

SAID = """state begin 1000 10 5
state end 3000 14 45
program: fps=90.50 p99=17.20 work=1.2000
other: work=4.5000
"""


class Reading(unittest.TestCase):
    def test_both_programs_and_what_asymd_did_a_second(self):
        found = real.parse(SAID)
        self.assertEqual(found["program"], {"fps": 90.5, "p99": 17.2, "work": 1.2})
        self.assertAlmostEqual(found["work"], 5.7)
        self.assertEqual((found["changes"], found["cost"]), (2, 20))

    def test_without_asymd_and_without_a_program(self):
        self.assertEqual(real.parse("program:\nother:\n"), {"program": {}, "other": {}, "work": 0})


class Page(unittest.TestCase):
    def test_the_pages_are_those_of_their_records(self):
        for kind in real.PAGES.values():
            record = json.loads((real.DATA / "kernel" / f"{kind.name}.json").read_text())
            kept = (real.DATA / f"{kind.name}.md").read_text().partition(real.NOTES)[0]
            self.assertEqual(kept, real.page(record, kind), f"{kind.name}.md: its tables are written by ./dev vm {kind.name}")

    def test_each_build_and_kernel_has_its_rows(self):
        self.assertIn("arm64-serial", real.names_for("arm64"))
        self.assertNotIn("arm64-serial", real.names_for("release"))
        self.assertNotIn("xz", real.names_for("arm64"))
        self.assertEqual(set(real.names_for("release", "sid")) - set(real.ROWS), {"make"})
        self.assertNotIn("frames-peers", real.names_for("release"))

    def test_options_follow_the_policy_of_a_mode(self):
        policy, config = real.configuration("asym boost=0")
        self.assertEqual(policy, "asym")
        self.assertTrue(config.endswith("[policy.asym]\nboost=0"))
        self.assertEqual(real.configuration("pa"), ("pa", real.CONFIG))
        self.assertEqual(real.configuration("asym asymd.observer=bpf"), ("asym", real.CONFIG + "\nobserver=bpf"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
