/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd's CPU budget limits a load with a fixed cost a sample. The interval recovers when the load ends. */

#include "app/own-cpu-time.h"
#include "support/test.h"

struct run {
    struct asym_budget b;
    asym_usec now;
    double cpu, apart;
    unsigned exceeded, kept;
};

#define INTERVAL (100 * ASYM_MSEC)

static bool is_stretched(const struct run *r)
{
    return r->b.least > INTERVAL;
}

/* Samples for about so many seconds, each after the time that is wanted or that the budget affords. Each costs us_per_sample. */
static void sample(struct run *r, int seconds, double us_per_sample, double allowed, asym_usec wanted)
{
    for (const asym_usec end = r->now + (asym_usec)seconds * ASYM_SEC; r->now < end;) {
        r->now += asym_budget_wait(&r->b, wanted);
        r->cpu += us_per_sample;
        if (r->now - r->b.last_now < ASYM_SEC)
            continue;
        enum asym_budget_change change = asym_budget_update(&r->b, allowed, INTERVAL, r->now,
                                                            (asym_usec)(r->cpu + r->apart), (asym_usec)r->apart);
        r->exceeded += change == ASYM_BUDGET_EXCEEDED;
        r->kept += change == ASYM_BUDGET_KEPT_AGAIN;
    }
}

static void pass(struct run *r, int seconds, double us_per_sample, double allowed)
{
    sample(r, seconds, us_per_sample, allowed, INTERVAL);
}

TEST(a_cheap_sample_never_stretches)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 100, 900, 1);
    assert_false(is_stretched(&r));
    assert_true(r.b.percent > 0.89 && r.b.percent < 0.91);
    assert_int_equal(r.exceeded + r.kept, 0);
}

TEST(an_expensive_sample_is_held_to_the_budget_and_logged_once)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 30, 5000, 1); /* 5 % at a sample every 100 ms */
    assert_in_range(r.b.least, 4.9 * INTERVAL, 8 * INTERVAL);
    assert_true(r.b.percent <= 1.01);
    assert_int_equal(r.exceeded, 1);
    pass(&r, 30, 500, 1);
    assert_false(is_stretched(&r));
    assert_int_equal(r.kept, 0);
    pass(&r, 60, 500, 1);
    assert_int_equal(r.kept, 1);
}

/* For an hour, five seconds with the load alternate with five seconds without it. */
TEST(load_that_comes_and_goes_is_logged_once)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    for (int i = 0; i < 360; i++) {
        pass(&r, 5, 2000, 1);
        assert_true(is_stretched(&r));
        pass(&r, 5, 100, 1);
        assert_false(is_stretched(&r));
    }
    assert_int_equal(r.exceeded, 1);
    assert_int_equal(r.kept, 0);
}

TEST(it_stretches_at_most_twenty_times)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 60, 90000, 0.01);
    assert_int_equal(r.b.least, ASYM_BUDGET_STRETCH_MAX * INTERVAL);
}

/* Work with its own budget takes half a CPU; the reported percentage includes it. */
TEST(what_has_a_budget_of_its_own_stretches_nothing)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    for (int i = 0; i < 30; i++) {
        r.apart += 500000;
        pass(&r, 1, 900, 1);
        assert_false(is_stretched(&r));
        assert_true(r.b.percent > 50.89 && r.b.percent < 50.91);
    }
    assert_int_equal(r.exceeded + r.kept, 0);
}

/*
 * A policy wants a sample every 30 ms, for which the budget lasts two thirds of the time. The samples become as frequent as it
 * affords, and stay so: no seconds of early samples and others without one. Without the wish the interval is the configured one at
 * once.
 */
TEST(early_samples_are_as_frequent_as_the_budget_affords)
{
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    sample(&r, 20, 450, 1, 30 * ASYM_MSEC);
    const asym_usec least = r.b.least;
    const double begun = (double)r.now, used = r.cpu;
    assert_in_range(least, 40 * ASYM_MSEC, 60 * ASYM_MSEC);
    for (int i = 0; i < 60; i++) {
        sample(&r, 1, 450, 1, 30 * ASYM_MSEC);
        assert_in_range(r.b.least, least - ASYM_MSEC, least + ASYM_MSEC);
    }
    const double percent = 100 * (r.cpu - used) / ((double)r.now - begun);
    assert_true(percent > 0.8 && percent <= 1);
    assert_int_equal(asym_budget_wait(&r.b, INTERVAL), INTERVAL);
    assert_int_equal(r.exceeded + r.kept, 0);
}

TEST(a_period_without_length_changes_nothing)
{
    struct asym_budget b;
    asym_budget_init(&b, ASYM_SEC, 0);
    assert_int_equal(asym_budget_update(&b, 1, INTERVAL, ASYM_SEC, 500, 0), ASYM_BUDGET_SAME);
    assert_true(b.least == 0 && b.last_cpu == 0);
}

TEST_MAIN
