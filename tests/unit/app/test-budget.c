/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd's CPU budget limits a load with a fixed cost a sample. The interval recovers when the load ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/budget.h"

struct run {
    struct asym_budget b;
    asym_usec now;
    double cpu, apart;
    unsigned exceeded, kept;
};

/* Simulates seconds in which each sample costs us_per_sample, at an interval of 100 ms times the stretch. */
static void pass(struct run *r, int seconds, double us_per_sample, double allowed)
{
    for (int i = 0; i < seconds; i++) {
        r->now += ASYM_SEC;
        r->cpu += us_per_sample * 10 / r->b.stretch;
        enum asym_budget_change change = asym_budget_update(&r->b, allowed, r->now, (asym_usec)(r->cpu + r->apart),
                                                            (asym_usec)r->apart);
        r->exceeded += change == ASYM_BUDGET_EXCEEDED;
        r->kept += change == ASYM_BUDGET_KEPT_AGAIN;
    }
}

static void a_cheap_sample_never_stretches(void **state)
{
    (void)state;
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 100, 900, 1);
    assert_true(r.b.stretch <= 1.0 && r.b.percent > 0.89 && r.b.percent < 0.91);
    assert_int_equal(r.exceeded + r.kept, 0);
}

static void an_expensive_sample_is_held_to_the_budget_and_logged_once(void **state)
{
    (void)state;
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 30, 5000, 1); /* 5 % at a sample every 100 ms */
    assert_true(r.b.stretch > 4.9 && r.b.stretch < 8);
    assert_true(r.b.percent <= 1.01);
    assert_int_equal(r.exceeded, 1);
    pass(&r, 30, 500, 1);
    assert_true(r.b.stretch <= 1.0);
    assert_int_equal(r.kept, 0);
    pass(&r, 60, 500, 1);
    assert_int_equal(r.kept, 1);
}

/* For an hour, five seconds with the load alternate with five seconds without it. */
static void load_that_comes_and_goes_is_logged_once(void **state)
{
    (void)state;
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    for (int i = 0; i < 360; i++) {
        pass(&r, 5, 2000, 1);
        assert_true(r.b.stretch > 1.0);
        pass(&r, 5, 100, 1);
        assert_true(r.b.stretch <= 1.0);
    }
    assert_int_equal(r.exceeded, 1);
    assert_int_equal(r.kept, 0);
}

static void it_stretches_at_most_twenty_times(void **state)
{
    (void)state;
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    pass(&r, 60, 90000, 0.01);
    assert_true(r.b.stretch >= ASYM_BUDGET_STRETCH_MAX && r.b.stretch <= ASYM_BUDGET_STRETCH_MAX);
}

/* Work with its own budget takes half a CPU; the reported percentage includes it. */
static void what_has_a_budget_of_its_own_stretches_nothing(void **state)
{
    (void)state;
    struct run r = {.now = ASYM_SEC};
    asym_budget_init(&r.b, r.now, 0);
    for (int i = 0; i < 30; i++) {
        r.apart += 500000;
        pass(&r, 1, 900, 1);
        assert_true(r.b.stretch <= 1.0);
        assert_true(r.b.percent > 50.89 && r.b.percent < 50.91);
    }
    assert_int_equal(r.exceeded + r.kept, 0);
}

static void a_period_without_length_changes_nothing(void **state)
{
    (void)state;
    struct asym_budget b;
    asym_budget_init(&b, ASYM_SEC, 0);
    assert_int_equal(asym_budget_update(&b, 1, ASYM_SEC, 500, 0), ASYM_BUDGET_SAME);
    assert_true(b.stretch <= 1.0 && b.last_cpu == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cheap_sample_never_stretches),
        cmocka_unit_test(an_expensive_sample_is_held_to_the_budget_and_logged_once),
        cmocka_unit_test(load_that_comes_and_goes_is_logged_once),
        cmocka_unit_test(it_stretches_at_most_twenty_times),
        cmocka_unit_test(what_has_a_budget_of_its_own_stretches_nothing),
        cmocka_unit_test(a_period_without_length_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
