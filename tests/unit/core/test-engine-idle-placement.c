/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Transit CPUs of running threads whose new mask leaves out their CPU. CPUs 0-3 are slow, 4-7 fast; two LLCs. */
#include "base/mask.h"
#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

/* A thread that runs on one CPU and has another as its target. */
static struct engine_fixture_thread *runner(struct engine_fixture *w, unsigned proc, int32_t tid, int32_t on,
                                            int32_t to)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, proc, tid, to);
    t->task.cpu = on;
    return t;
}

/* -1: no transit CPU */
static int transit_cpu(const struct engine_fixture *w, int32_t tid)
{
    const struct asym_action *a = engine_fixture_action(w, tid);
    assert_non_null(a);
    assert_true(a->transit_cpu == 0 || asym_mask_has(&a->mask, (int)a->transit_cpu - 1));
    return (int)a->transit_cpu - 1;
}

TEST_ENGINE(it_goes_to_a_cpu_where_no_thread_runs)
{
    const unsigned p = engine_fixture_proc(w, 100);
    runner(w, p, 100, 4, 0);
    runner(w, p, 101, 0, 1);
    runner(w, p, 102, 1, 2);
    runner(w, p, 103, 3, 3);
    engine_fixture_step(w, TICK);
    assert_int_equal(transit_cpu(w, 100), 2);
    /* a thread that stays on its CPU needs no transit CPU */
    assert_int_equal(transit_cpu(w, 101), -1);
    engine_fixture_assert_mask(&engine_fixture_action(w, 100)->mask, "0-3");
}

/* Thread 100 takes the fast CPU 4, and 101 leaves it for CPU 3. Threads 103 and 104 are elsewhere. */
static void take_cpu_4(struct engine_fixture *w, int32_t on_103, int32_t on_104, int32_t to_104)
{
    const unsigned p = engine_fixture_proc(w, 100);
    runner(w, p, 100, 1, 4);
    runner(w, p, 101, 4, 3);
    runner(w, p, 102, 0, 0);
    runner(w, p, 103, on_103, 2);
    runner(w, p, 104, on_104, to_104);
    engine_fixture_order(w, 100, 4, true);
}

/* The case of the trace: the serial thread takes a fast CPU, and the thread there gets the CPU that the serial one left. */
TEST_ENGINE(a_thread_that_makes_room_gets_the_cpu_that_is_left)
{
    take_cpu_4(w, 2, 3, 3);
    engine_fixture_step(w, TICK);
    engine_fixture_assert_mask(&engine_fixture_action(w, 100)->mask, "4");
    assert_int_equal(transit_cpu(w, 100), -1);
    assert_int_equal(transit_cpu(w, 101), 1);
}

/* 100 would leave its CPU for one where 101 still runs, if its action came first. */
TEST_ENGINE(others_leave_a_cpu_before_a_thread_takes_it_exclusively)
{
    static const int32_t order[] = {101, 103, 100, 104, 102};
    take_cpu_4(w, 5, 5, 5);
    engine_fixture_order(w, 104, 5, true);
    engine_fixture_step(w, TICK);
    assert_int_equal(w->n, sizeof order / sizeof order[0]);
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(w->actions[i].id.tid, order[i]);
}

TEST_ENGINE(of_idle_cpus_that_are_equal_it_gets_the_favoured_one)
{
    const unsigned p = engine_fixture_proc(w, 100);
    w->machine.cpus[2].favour = 1;
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    runner(w, p, 100, 4, 0); /* its target is busy */
    runner(w, p, 101, 0, 0);
    engine_fixture_step(w, TICK);
    assert_int_equal(transit_cpu(w, 100), 2);
}

TEST_ENGINE(no_two_are_sent_to_one_cpu)
{
    const unsigned p = engine_fixture_proc(w, 100);
    for (int32_t i = 0; i < 4; i++)
        runner(w, p, 100 + i, i, 4 + i);
    for (int32_t i = 4; i < 8; i++)
        runner(w, p, 100 + i, i, i - 4);
    engine_fixture_step(w, TICK);
    struct asym_mask taken = {0};
    for (int32_t i = 0; i < 8; i++) {
        assert_true(transit_cpu(w, 100 + i) >= 0);
        assert_false(asym_mask_has(&taken, transit_cpu(w, 100 + i)));
        asym_mask_set(&taken, (unsigned)transit_cpu(w, 100 + i));
        assert_int_equal(transit_cpu(w, 100 + i), i < 4 ? 4 + i : i - 4);
    }
}

TEST_ENGINE(without_an_idle_cpu_the_kernel_chooses)
{
    const unsigned p = engine_fixture_proc(w, 100);
    for (int32_t i = 0; i < 4; i++)
        runner(w, p, 100 + i, i, i);
    runner(w, p, 104, 4, 0);
    engine_fixture_step(w, TICK);
    assert_int_equal(transit_cpu(w, 104), -1);
}

TEST_ENGINE(one_that_sleeps_takes_no_cpu_and_needs_none)
{
    const unsigned p = engine_fixture_proc(w, 100);
    runner(w, p, 100, 0, 0)->task.state = 'S';
    runner(w, p, 101, 4, 1)->task.state = 'S';
    runner(w, p, 102, 5, 0);
    engine_fixture_step(w, TICK);
    assert_int_equal(transit_cpu(w, 101), -1);
    assert_int_equal(transit_cpu(w, 102), 0);
}

TEST_ENGINE(an_unsteered_thread_occupies_its_cpu_too)
{
    const unsigned p = engine_fixture_proc(w, 100), other = engine_fixture_proc(w, 200);
    w->procs[other].rule = ASYM_RULE_IGNORE;
    runner(w, other, 200, 2, 2);
    runner(w, p, 100, 4, 2);
    runner(w, p, 101, 0, 0);
    engine_fixture_step(w, TICK);
    assert_int_equal(transit_cpu(w, 100), 1);
}

TEST_ENGINE(the_cpu_of_asymd_counts_as_idle_but_comes_last)
{
    const unsigned p = engine_fixture_proc(w, 100), self = engine_fixture_proc(w, 200);
    w->procs[self].flags = ASYM_PROC_SELF;
    runner(w, self, 200, 2, 2);
    runner(w, p, 100, 4, 2);
    runner(w, p, 101, 5, 2);
    runner(w, p, 102, 1, 1);
    runner(w, p, 103, 3, 3);
    engine_fixture_step(w, TICK);
    assert_int_equal(transit_cpu(w, 100), 0);
    assert_int_equal(transit_cpu(w, 101), 2);
}

TEST_ENGINE(idle_cores_come_before_idle_siblings)
{
    const unsigned p = engine_fixture_proc(w, 100);
    /* CPUs 2 and 3 share a core */
    w->machine.cpus[3].core = w->machine.cpus[2].core;
    runner(w, p, 100, 4, 3);
    runner(w, p, 101, 2, 2);
    runner(w, p, 102, 1, 1);
    engine_fixture_step(w, TICK);
    assert_int_equal(transit_cpu(w, 100), 0);
}

/* A refresh repeats the CPU of the last sample: the engine must not move the thread off it a second time. */
TEST_ENGINE(a_thread_that_has_moved_occupies_its_new_cpu)
{
    const unsigned p = engine_fixture_proc(w, 100);
    struct engine_fixture_thread *t = runner(w, p, 100, 5, 5);
    runner(w, p, 101, 4, 3);
    for (int32_t i = 0; i < 3; i++)
        runner(w, p, 102 + i, i, i);
    engine_fixture_run(w, TICK);
    assert_int_equal(transit_cpu(w, 101), 3);
    engine_fixture_order(w, 100, 3, false);
    engine_fixture_step(w, TICK);
    assert_int_equal(t->task.cpu, 5);
    assert_null(engine_fixture_action(w, 101));
    assert_int_equal(transit_cpu(w, 100), -1);
}

TEST_MAIN
