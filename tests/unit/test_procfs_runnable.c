/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The R-state correction by hand: what a kernel would credit, and what is counted. Times in ms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "linux/procfs-internal.h"

#define MS 1000000ull

struct thread {
    struct asym_schedstat before, now;
    uint64_t carry;
};

/* One look after 100 ms in which the kernel credited run and wait, at arrivals on a CPU. */
static unsigned look(struct thread *t, unsigned run, unsigned wait, unsigned arrivals, char state)
{
    t->now.run_ns += run * MS;
    t->now.wait_ns += wait * MS;
    t->now.slices += arrivals;
    uint64_t count = asym_procfs_runnable(&t->before, &t->now, state, 100 * MS, &t->carry);
    t->before = t->now;
    assert_true(count % MS == 0 && count <= 100 * MS);
    return (unsigned)(count / MS);
}

static void a_sleeper_counts_nothing(void **state)
{
    (void)state;
    struct thread t = {0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(look(&t, 0, 0, 0, 'S'), 0);
}

static void one_that_spins_alone_counts_all(void **state)
{
    (void)state;
    struct thread t = {0};
    /* The kernel's own count lags by up to a tick. */
    static const unsigned run[] = {96, 104, 100, 97, 103};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(look(&t, run[i], 0, 0, 'R'), 100);
}

static void one_that_waits_for_its_turn_counts_all_before_the_credit_comes(void **state)
{
    (void)state;
    struct thread t = {0};
    /* Sixteen on two CPUs: nothing for three looks, then the delay in one lump. */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(look(&t, 0, 0, 0, 'R'), 100);
        assert_int_equal(look(&t, 0, 0, 0, 'R'), 100);
        assert_int_equal(look(&t, 0, 0, 0, 'R'), 100);
        /* It ran at the beginning of this one: of the time since, nothing is credited yet. */
        assert_int_equal(look(&t, 32, i == 0 ? 300 : 368, 1, 'R'), 100);
    }
}

static void a_credit_that_was_counted_ahead_is_not_counted_again(void **state)
{
    (void)state;
    struct thread t = {0};
    assert_int_equal(look(&t, 0, 0, 0, 'R'), 100);
    assert_int_equal(look(&t, 0, 0, 0, 'R'), 100);
    /* It ran 10 ms of this interval after 210 of waiting, and sleeps. */
    assert_int_equal(look(&t, 10, 210, 1, 'S'), 20);
    assert_int_equal(look(&t, 0, 0, 0, 'S'), 0);
    assert_int_equal(t.carry, 0);
}

static void one_that_is_r_whenever_we_look_converges_to_its_share(void **state)
{
    (void)state;
    struct thread t = {0};
    unsigned sum = 0;
    for (int i = 0; i < 50; i++) {
        unsigned count = look(&t, 10, 0, 1, 'R');
        if (i >= 2)
            assert_int_equal(count, 10);
        sum += count;
    }
    /* Half a second at a tenth is 500 in 50 looks; what is too much is never more than an interval. */
    assert_in_range(sum, 500, 600);
    for (int i = 0; i < 20; i++)
        sum += look(&t, 10, 0, 1, 'S');
    assert_int_equal(sum, 700);
}

static void one_that_is_never_r_when_we_look_reads_its_share(void **state)
{
    (void)state;
    struct thread t = {0};
    for (int i = 0; i < 10; i++)
        assert_int_equal(look(&t, 10, 5, 1, 'S'), 15);
}

static void no_more_than_the_interval_is_counted(void **state)
{
    (void)state;
    struct thread t = {0};
    assert_int_equal(look(&t, 80, 500, 1, 'S'), 100);
    assert_int_equal(t.carry, 0);
}

static void what_was_counted_ahead_is_paid_back_over_several_looks(void **state)
{
    (void)state;
    struct thread t = {.carry = 90 * MS};
    assert_int_equal(look(&t, 40, 0, 1, 'S'), 0);
    assert_int_equal(look(&t, 40, 0, 1, 'S'), 0);
    assert_int_equal(look(&t, 40, 0, 1, 'S'), 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeper_counts_nothing),
        cmocka_unit_test(one_that_spins_alone_counts_all),
        cmocka_unit_test(one_that_waits_for_its_turn_counts_all_before_the_credit_comes),
        cmocka_unit_test(a_credit_that_was_counted_ahead_is_not_counted_again),
        cmocka_unit_test(one_that_is_r_whenever_we_look_converges_to_its_share),
        cmocka_unit_test(one_that_is_never_r_when_we_look_reads_its_share),
        cmocka_unit_test(no_more_than_the_interval_is_counted),
        cmocka_unit_test(what_was_counted_ahead_is_paid_back_over_several_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
