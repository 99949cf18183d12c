/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a running thread is put that its new mask takes from its CPU. World: CPUs 0-3 slow, 4-7 fast, two LLCs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/mask.h"
#include "support/world.h"

#define TICK (100 * ASYM_MSEC)

/* A thread that runs on a CPU, and is to go to another. */
static struct world_thread *runner(struct world *w, unsigned proc, int32_t tid, int32_t on, int32_t to)
{
    struct world_thread *t = world_thread(w, proc, tid, to);
    t->task.cpu = on;
    return t;
}

/* -1: none. */
static int via(const struct world *w, int32_t tid)
{
    const struct asym_action *a = world_action(w, tid);
    assert_non_null(a);
    assert_true(a->via == 0 || asym_mask_has(&a->mask, (int)a->via - 1));
    return (int)a->via - 1;
}

static void it_goes_where_nobody_runs(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    runner(w, p, 100, 4, 0);
    runner(w, p, 101, 0, 1);
    runner(w, p, 102, 1, 2);
    runner(w, p, 103, 3, 3);
    world_step(w, TICK);
    assert_int_equal(via(w, 100), 2);
    /* who stays where it is needs no way */
    assert_int_equal(via(w, 101), -1);
    world_assert_mask(&world_action(w, 100)->mask, "0-3");
}

/* What the trace showed: the serial thread takes a fast CPU, and who had that gets the one that the serial one has left. */
static void who_makes_room_gets_the_cpu_that_is_left(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    runner(w, p, 100, 1, 4);
    runner(w, p, 101, 4, 3);
    runner(w, p, 102, 0, 0);
    runner(w, p, 103, 2, 2);
    runner(w, p, 104, 3, 3);
    world_order(w, 100, 4, true);
    world_step(w, TICK);
    world_assert_mask(&world_action(w, 100)->mask, "4");
    assert_int_equal(via(w, 100), -1);
    assert_int_equal(via(w, 101), 1);
}

static void of_idle_cpus_that_are_equal_it_gets_the_favoured_one(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    w->machine.cpus[2].favour = 1;
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    runner(w, p, 100, 4, 0); /* its target is busy */
    runner(w, p, 101, 0, 0);
    world_step(w, TICK);
    assert_int_equal(via(w, 100), 2);
}

static void no_two_are_sent_to_one_cpu(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    for (int32_t i = 0; i < 4; i++)
        runner(w, p, 100 + i, i, 4 + i);
    for (int32_t i = 4; i < 8; i++)
        runner(w, p, 100 + i, i, i - 4);
    world_step(w, TICK);
    struct asym_mask taken = {0};
    for (int32_t i = 0; i < 8; i++) {
        assert_true(via(w, 100 + i) >= 0);
        assert_false(asym_mask_has(&taken, via(w, 100 + i)));
        asym_mask_set(&taken, (unsigned)via(w, 100 + i));
        assert_int_equal(via(w, 100 + i), i < 4 ? 4 + i : i - 4);
    }
}

static void where_nobody_is_idle_the_kernel_chooses(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    for (int32_t i = 0; i < 4; i++)
        runner(w, p, 100 + i, i, i);
    runner(w, p, 104, 4, 0);
    world_step(w, TICK);
    assert_int_equal(via(w, 104), -1);
}

static void one_that_sleeps_takes_no_cpu_and_needs_none(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    runner(w, p, 100, 0, 0)->task.state = 'S';
    runner(w, p, 101, 4, 1)->task.state = 'S';
    runner(w, p, 102, 5, 0);
    world_step(w, TICK);
    assert_int_equal(via(w, 101), -1);
    assert_int_equal(via(w, 102), 0);
}

static void who_is_not_steered_is_in_the_way_too(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100), other = world_proc(w, 200);
    w->procs[other].rule = ASYM_RULE_IGNORE;
    runner(w, other, 200, 2, 2);
    runner(w, p, 100, 4, 2);
    runner(w, p, 101, 0, 0);
    world_step(w, TICK);
    assert_int_equal(via(w, 100), 1);
}

static void asymd_is_not_in_the_way_but_its_cpu_comes_last(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100), self = world_proc(w, 200);
    w->procs[self].flags = ASYM_PROC_SELF;
    runner(w, self, 200, 2, 2);
    runner(w, p, 100, 4, 2);
    runner(w, p, 101, 5, 2);
    runner(w, p, 102, 1, 1);
    runner(w, p, 103, 3, 3);
    world_step(w, TICK);
    assert_int_equal(via(w, 100), 0);
    assert_int_equal(via(w, 101), 2);
}

static void idle_cores_come_before_idle_siblings(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    /* CPUs 2 and 3 are one core */
    w->machine.cpus[3].core = w->machine.cpus[2].core;
    runner(w, p, 100, 4, 3);
    runner(w, p, 101, 2, 2);
    runner(w, p, 102, 1, 1);
    world_step(w, TICK);
    assert_int_equal(via(w, 100), 0);
}

/* In a look in a hurry a thread's CPU is that of the look before: it is not sent away from there once more. */
static void one_that_has_gone_is_where_it_went(void **state)
{
    struct world *w = *state;
    const unsigned p = world_proc(w, 100);
    struct world_thread *t = runner(w, p, 100, 5, 5);
    runner(w, p, 101, 4, 3);
    for (int32_t i = 0; i < 3; i++)
        runner(w, p, 102 + i, i, i);
    world_run(w, TICK);
    assert_int_equal(via(w, 101), 3);
    world_order(w, 100, 3, false);
    world_step(w, TICK);
    assert_int_equal(t->task.cpu, 5);
    assert_null(world_action(w, 101));
    assert_int_equal(via(w, 100), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_goes_where_nobody_runs, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(who_makes_room_gets_the_cpu_that_is_left, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(of_idle_cpus_that_are_equal_it_gets_the_favoured_one, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(no_two_are_sent_to_one_cpu, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(where_nobody_is_idle_the_kernel_chooses, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(one_that_sleeps_takes_no_cpu_and_needs_none, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(who_is_not_steered_is_in_the_way_too, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(asymd_is_not_in_the_way_but_its_cpu_comes_last, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(idle_cores_come_before_idle_siblings, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(one_that_has_gone_is_where_it_went, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
