#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""test_starts.py BUILD: tests how starts.py reads a trace, without a virtual machine."""
import pathlib
import sys
import unittest

import run
import starts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench" / "papers"))
import kernel  # noqa: E402


def switch(cpu, time, prev, following, comm="x"):
    return (f"          <idle>-0     [{cpu:03}] d..2.  {time:.6f}: sched_switch: prev_comm=a b prev_pid={prev} prev_prio=120 prev_state=S ==> "
            f"next_comm={comm} next_pid={following} next_prio=120\n")


def new(by, cpu, time, comm, pid, target):
    return f" {by:>15}-900   [{cpu:03}] d..2.  {time:.6f}: sched_wakeup_new: comm={comm} pid={pid} prio=120 target_cpu={target:03}\n"


def woken(cpu, time, target):
    return new("kworker", cpu, time, "x", 44, target).replace("sched_wakeup_new", "sched_wakeup")


HEAD = ["# tracer: nop\n", "# entries-in-buffer/entries-written: 725/725   #P:8\n", "#\n"]


class Test(unittest.TestCase):
    def test_a_choice_has_the_idle_cpus_and_since_when(self):
        lines = HEAD + [switch(0, 1.0, 5, 0), switch(6, 2.0, 0, 77), new("bash", 6, 3.0, "bash", 900, 0), switch(0, 3.1, 0, 900)]
        choice, = starts.choices(lines)
        self.assertEqual((choice.by, choice.source, choice.target), ("bash", 6, 0))
        self.assertEqual(choice.idle, {0, 1, 2, 3, 4, 5, 7})
        self.assertEqual(choice.since[0], 1.0)

    def test_a_cpu_with_a_thread_that_was_woken_or_placed_there_is_not_idle(self):
        lines = [woken(0, 1.0, 3), new("bash", 6, 2.0, "bash", 900, 0), new("bash", 6, 3.0, "bash", 901, 1), switch(3, 4.0, 44, 0),
                 new("bash", 6, 5.0, "bash", 902, 2)]
        self.assertEqual([set(range(8)) - choice.idle for choice in starts.choices(lines)], [{3, 6}, {0, 3, 6}, {0, 1, 6}])

    def test_a_node_with_more_idle_cpus_is_wanted_and_else_its_own(self):
        lines = [switch(6, 2.0, 0, 77), new("load-copies", 6, 3.0, "load-copies", 901, 3)]
        self.assertEqual(starts.wanted(*starts.choices(lines)), (range(4), True))
        lines.insert(0, switch(1, 1.0, 0, 78))
        # Three idle CPUs in each node: it stays.
        self.assertEqual(starts.wanted(*starts.choices(lines)), (range(4, 8), False))

    def begun(self, first):
        """Eight copies: a thread on CPU 6 starts them on these CPUs, one second apart, and each stays."""
        lines = HEAD + [switch(2, 0.5, 9, 0), switch(6, 1.0, 0, 77)]
        for n, cpu in enumerate(first):
            lines += [new("load-copies", 6, 2.0 + n, "load-copies", 901 + n, cpu), switch(cpu, 2.1 + n, 0, 901 + n)]
        return lines

    def test_the_counts_of_a_start(self):
        found = starts.counts(self.begun([2, 4, 0, 5, 1, 7, 3, 2]))
        self.assertEqual(found["starts"], 1)
        self.assertEqual(found["first copy on the slowest CPU"], 0)
        self.assertEqual(found["copies started by a thread on CPU 6"], 1)
        # The last copy finds no idle CPU, so that it is no choice between nodes.
        self.assertEqual(found["choices of a node"], 7)
        self.assertEqual(found["choices of a node as the rules say"], 7)
        # Four of them go to the other node. CPU 2 went idle last, and the first copy goes there.
        self.assertEqual(found["choices of a node's CPU"], 4)

    def test_a_copy_against_the_rules_is_counted_as_such(self):
        found = starts.counts(self.begun([0, 4, 2, 5, 1, 7, 3, 2]))
        self.assertEqual(found["first copy on the slowest CPU"], 1)
        self.assertEqual(found["choices of a node's CPU"] - found["choices of a node's CPU as the rules say"], 1)
        found = starts.counts(self.begun([4, 5, 7, 0, 1, 2, 3, 0]))
        self.assertEqual(found["choices of a node"] - found["choices of a node as the rules say"], 3)

    def test_cpus_that_are_idle_since_before_the_trace_are_equal(self):
        # The other node has CPU 0 idle last in the trace, then CPUs 2, 1 and 3 in any order.
        for rest in ([1, 3, 2], [2, 1, 3], [3, 2, 1]):
            lines = [switch(0, 0.5, 9, 0), *self.begun([0, 4, rest[0], 5, rest[1], 7, rest[2], 4])[4:]]
            found = starts.counts(lines)
            self.assertEqual((found["choices of a node's CPU"], found["choices of a node's CPU as the rules say"]), (4, 4), rest)

    def test_lost_events_are_an_error(self):
        for line in ("CPU:1 [LOST 4 EVENTS]\n", "# entries-in-buffer/entries-written: 7/725   #P:8\n"):
            with self.assertRaisesRegex(run.Wrong, "lost events"):
                starts.counts([line] + self.begun([2, 4, 0, 5, 1, 7, 3, 2]))

    def test_a_trace_that_lacks_copies_is_an_error(self):
        with self.assertRaisesRegex(run.Wrong, "has 7 starts of copies, and 8 were started"):
            starts.counts(self.begun([2, 4, 0, 5, 1, 7, 3]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
