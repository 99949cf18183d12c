/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The duty of a thread: what it would run if it never waited. */

#include "core/thread-state.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)
#define FROM 0.7

/* n intervals, each with these shares of run and runnable time, after a gap in which it sleeps and no snapshot lists it. */
static void pass(struct asym_duty *d, unsigned n, double running, double runnable, asym_usec gap)
{
    static asym_usec now = 5 * ASYM_SEC;
    if (d->at == 0)
        now = 5 * ASYM_SEC;
    for (unsigned i = 0; i < n; i++)
        asym_duty_add(d, now += TICK + gap, TICK, asym_duty_decay(TICK), running, runnable, FROM);
}

TEST(a_duty_is_the_run_time_by_the_time_without_waiting)
{
    static const struct {
        double running, runnable;
        asym_usec gap;
        double duty;
    } cases[] = {
        {1, 1, 0, 1},          {0.25, 1, 0, 1},    /* computes alone, and beside three others */
        {0.4, 0.4, 0, 0.4},    {0.2, 0.7, 0, 0.4}, /* sleeps, and waits for each run */
        {0.5, 0.3, 0, 0.5},                        /* running above runnable: the kernel's clocks differ */
        {0, 1, 0, 1},                              /* has only waited so far */
        {1, 1, 9 * TICK, 0.1}, {1, 1, TICK, 0.5},  /* in one of ten samples, in each second one */
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct asym_duty d = {.at = 0};
        pass(&d, 100, cases[i].running, cases[i].runnable, cases[i].gap);
        assert_float_equal(asym_duty_share(&d), cases[i].duty, 0.06);
        assert_int_equal(d.light, cases[i].duty < FROM);
    }
}

TEST(a_new_thread_counts_by_its_first_interval)
{
    struct asym_duty busy = {.at = 0}, light = {.at = 0};
    assert_float_equal(asym_duty_share(&busy), 1, 0);
    pass(&busy, 1, 0.75, 0.75, 0);
    assert_false(busy.light);
    pass(&light, 1, 0.6, 0.6, 0);
    assert_true(light.light);
}

/* It holds its CPU until its duty falls below 0.56, and again from 0.7 on. */
TEST(a_thread_between_the_limits_stays_what_it_was)
{
    static const struct {
        double share;
        bool light;
    } steps[] = {{1, false}, {0.6, false}, {0.5, true}, {0.65, true}, {0.75, false}, {0.6, false}};
    struct asym_duty d = {.at = 0};
    for (size_t i = 0; i < ASYM_LENGTH(steps); i++) {
        pass(&d, 60, steps[i].share, steps[i].share, 0);
        assert_int_equal(d.light, steps[i].light);
    }
}

/* A thread that begins to compute after a long sleep is not light from the second after it on; one that stops, within a second. */
TEST(the_means_are_of_about_a_second)
{
    struct asym_duty d = {.at = 0};
    pass(&d, 50, 0.1, 0.1, 0);
    pass(&d, 10, 1, 1, 0);
    assert_true(d.light);
    pass(&d, 2, 1, 1, 0);
    assert_false(d.light);
    pass(&d, 50, 1, 1, 0);
    pass(&d, 1, 1, 1, 8 * TICK);
    assert_true(d.light);
}

TEST_MAIN
