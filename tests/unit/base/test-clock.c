/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the clocks: their unit, and the time that each counts. */
#include <pthread.h>

#include "base/clock.h"
#include "support/test.h"

static uint64_t ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

TEST(a_clock_counts_microseconds)
{
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        const uint64_t before = ns(clocks[i]);
        const asym_usec t = asym_clock_read(clocks[i]);
        assert_in_range(t, before / 1000, ns(clocks[i]) / 1000);
    }
}

static void *use_cpu(void *arg)
{
    while (asym_clock_thread_cpu() < 20 * ASYM_MSEC) {
    }
    return NULL;
}

TEST(each_clock_counts_its_own_time)
{
    pthread_t thread;
    const asym_usec now = asym_clock_now(), cpu = asym_clock_thread_cpu(), all = asym_clock_process_cpu();
    usleep(10000);
    assert_true(asym_clock_now() - now >= 10 * ASYM_MSEC);
    assert_int_equal(pthread_create(&thread, NULL, use_cpu, NULL), 0);
    pthread_join(thread, NULL);
    assert_true(asym_clock_process_cpu() - all >= 20 * ASYM_MSEC);
    assert_true(asym_clock_thread_cpu() - cpu < 20 * ASYM_MSEC);
}

TEST(a_clock_that_is_none_reads_0)
{
    assert_int_equal(asym_clock_read(-1000), 0);
    assert_int_equal(asym_clock_read(12345), 0);
}

TEST_MAIN
