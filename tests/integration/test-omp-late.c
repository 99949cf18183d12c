/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An OpenMP runtime counts CPUs at its first parallel region. It must not count those of a thread that asymd has put on one
 * CPU: its team would be too small, and stay so. Two programs from the same source, each with a single thread at first.
 */
#include <signal.h>

#include "support/live.h"
#include "support/service.h"
#include "support/test.h"

/* Lets the program begin its first region: the number of its threads, and the least number of CPUs of any of them. */
static void begin(pid_t pid, int output, int *ret_threads, int *ret_least)
{
    char text[64];
    asym_live_signal(pid, SIGUSR1);
    const ssize_t n = read(output, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    assert_int_equal(sscanf(text, "threads=%d least=%d", ret_threads, ret_least), 2);
}

TEST_WITH(a_runtime_that_counts_late_finds_all_cpus, asym_service_set_up, asym_service_tear_down)
{
    const int cpus = asym_live_cpus();
    int threads, least, late_says, early_says;
    const pid_t late = asym_live_start_piped((const char *const[]){"tests/omp/late-clang", NULL}, &late_says),
                early = asym_live_start_piped((const char *const[]){"tests/omp/late-gcc", NULL}, &early_says);
    const char *const more[] = {asym_live_pid_option(late), NULL};
    asym_service_start(early, more);
    /* asymd has steered the early program. The late one is older, so asymd has seen it, too. */
    assert_true(asym_live_await(asym_live_narrow_threads, early, cpus, 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(asym_live_narrow_threads(late, cpus), 0);
    begin(late, late_says, &threads, &least);
    assert_int_equal(threads, cpus);
    assert_int_equal(least, cpus);
    /* The late program has several threads now, so asymd steers it like others. */
    assert_true(asym_live_await(asym_live_narrow_threads, late, cpus, cpus, ASYM_LIVE_PATIENCE));
    asym_live_end(late, SIGKILL);
    asym_live_end(early, SIGKILL);
    close(late_says);
    close(early_says);
}

TEST_MAIN
