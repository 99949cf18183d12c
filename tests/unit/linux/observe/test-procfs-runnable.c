/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The R-state correction with computed examples: the time that a kernel credits, and the time that asymd counts. Times in ms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "linux/observe/procfs-internal.h"

#define MS 1000000ull

struct thread {
    struct asym_schedstat before, now;
    uint64_t carry;
};

/* One sample after 100 ms in which the kernel credited run and wait, and the thread got a CPU arrivals times. */
static unsigned take_sample(struct thread *t, unsigned run, unsigned wait, unsigned arrivals, char state)
{
    t->now.run_ns += run * MS;
    t->now.wait_ns += wait * MS;
    t->now.slices += arrivals;
    uint64_t count = asym_procfs_runnable(&t->before, &t->now, state, 100 * MS, &t->carry);
    t->before = t->now;
    assert_true(count % MS == 0 && count <= 100 * MS);
    assert_true(count >= (run < 100 ? run : 100) * MS);
    return (unsigned)(count / MS);
}

static void a_sleeper_counts_nothing(void **state)
{
    (void)state;
    struct thread t = {0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(take_sample(&t, 0, 0, 0, 'S'), 0);
}

static void one_that_spins_alone_counts_all(void **state)
{
    (void)state;
    struct thread t = {0};
    /* The kernel's counters lag by up to one tick. */
    static const unsigned run[] = {96, 104, 100, 97, 103};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(take_sample(&t, run[i], 0, 0, 'R'), 100);
}

/* docs/known-limits.md: the kernel credits the time that the host of a virtual machine takes neither as run nor as wait. */
static void of_one_that_spins_the_time_stolen_by_the_host_does_not_count(void **state)
{
    (void)state;
    struct thread t = {0};
    unsigned counted = 0;
    for (int i = 0; i < 5; i++)
        counted = take_sample(&t, 40, 0, 1, 'R');
    assert_int_equal(counted, 40);
}

static void one_that_waits_for_its_turn_counts_all_before_the_credit_comes(void **state)
{
    (void)state;
    struct thread t = {0};
    /* Sixteen threads on two CPUs: no credit for three samples, then the whole delay at once. */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(take_sample(&t, 0, 0, 0, 'R'), 100);
        assert_int_equal(take_sample(&t, 0, 0, 0, 'R'), 100);
        assert_int_equal(take_sample(&t, 0, 0, 0, 'R'), 100);
        /* The thread ran at the beginning of this interval. The time since then is not credited yet. */
        assert_int_equal(take_sample(&t, 32, i == 0 ? 300 : 368, 1, 'R'), 100);
    }
}

static void a_credit_that_was_counted_ahead_is_not_counted_again(void **state)
{
    (void)state;
    struct thread t = {0};
    assert_int_equal(take_sample(&t, 0, 0, 0, 'R'), 100);
    assert_int_equal(take_sample(&t, 0, 0, 0, 'R'), 100);
    /* The thread waited for 210 ms, ran for 10 ms of this interval, and sleeps now. */
    assert_int_equal(take_sample(&t, 10, 210, 1, 'S'), 20);
    assert_int_equal(take_sample(&t, 0, 0, 0, 'S'), 0);
    assert_int_equal(t.carry, 0);
}

static void a_thread_in_state_r_at_each_sample_converges_to_its_share(void **state)
{
    (void)state;
    struct thread t = {0};
    unsigned sum = 0;
    for (int i = 0; i < 50; i++) {
        unsigned count = take_sample(&t, 10, 0, 1, 'R');
        if (i >= 2)
            assert_int_equal(count, 10);
        sum += count;
    }
    /* A tenth of 50 intervals of 100 ms is 500 ms. The excess is never more than one interval. */
    assert_in_range(sum, 500, 600);
    /* It runs in each interval, so the excess is not paid back below what it ran. */
    for (int i = 0; i < 20; i++)
        assert_int_equal(take_sample(&t, 10, 0, 1, 'S'), 10);
    assert_int_equal(take_sample(&t, 0, 0, 0, 'S'), 0);
}

static void a_thread_never_in_state_r_at_a_sample_reads_its_share(void **state)
{
    (void)state;
    struct thread t = {0};
    for (int i = 0; i < 10; i++)
        assert_int_equal(take_sample(&t, 10, 5, 1, 'S'), 15);
}

static void no_more_than_the_interval_is_counted(void **state)
{
    (void)state;
    struct thread t = {0};
    assert_int_equal(take_sample(&t, 80, 500, 1, 'S'), 100);
    assert_int_equal(t.carry, 0);
}

static void a_thread_that_ran_was_runnable(void **state)
{
    (void)state;
    struct thread t = {.carry = 90 * MS};
    assert_int_equal(take_sample(&t, 40, 0, 1, 'S'), 40);
    assert_int_equal(take_sample(&t, 0, 60, 1, 'S'), 10);
    assert_int_equal(t.carry, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeper_counts_nothing),
        cmocka_unit_test(one_that_spins_alone_counts_all),
        cmocka_unit_test(of_one_that_spins_the_time_stolen_by_the_host_does_not_count),
        cmocka_unit_test(one_that_waits_for_its_turn_counts_all_before_the_credit_comes),
        cmocka_unit_test(a_credit_that_was_counted_ahead_is_not_counted_again),
        cmocka_unit_test(a_thread_in_state_r_at_each_sample_converges_to_its_share),
        cmocka_unit_test(a_thread_never_in_state_r_at_a_sample_reads_its_share),
        cmocka_unit_test(no_more_than_the_interval_is_counted),
        cmocka_unit_test(a_thread_that_ran_was_runnable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
