/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source that counts, over a recording and a source of the test's own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "linux/monitor.h"

#define THREADS 5

static struct asym_task tasks[THREADS];
static struct asym_plan_task planned[THREADS];
static struct asym_plan plan;
static struct asym_snapshot seen;
static struct asym_counters *counters;
static struct asym_source *monitor;
static asym_usec now;
static size_t n_tasks;

static int next(struct asym_source *source, struct asym_snapshot *ret)
{
    (void)source;
    *ret = (struct asym_snapshot){.now = now, .tasks = tasks, .n_tasks = n_tasks};
    ret->missing[ASYM_SIGNAL_SMT] = "no siblings";
    return 1;
}

static struct asym_source inner = {.next = next};

/* TIME TID INSTRUCTIONS CYCLES LLC_MISSES REF_CYCLES ON_CPU_NS: 1000 instructions and 500 cycles a ms, but for thread 13. */
static const char recording[] = "0 11 0 0 0 - 0\n0 12 0 0 0 - 0\n0 13 0 0 - - 0\n0 14 0 0 0 - 0\n0 15 0 0 0 - 0\n"
                                "10000 11 10000 5000 7 - 10000000\n10000 12 10000 5000 7 - 10000000\n"
                                "10000 13 10000 5000 - - 5000000\n10000 14 gone\n10000 15 0 0 0 - 0\n"
                                "20000 11 30000 10000 9 - 20000000\n20000 12 30000 10000 9 - 20000000\n";

static void begin(unsigned max_fds)
{
    struct asym_error err = {""};
    if (asym_counters_replay_new("record", recording, strlen(recording), max_fds, &counters, &err) < 0)
        fail_msg("%s", err.text);
    const struct asym_monitor_config config = {
        .source = &inner, .counters = counters, .missing = {[ASYM_SIGNAL_PROFILE] = "no profiles"}};
    assert_int_equal(asym_monitor_new(&config, &monitor), 0);
    now = 0;
    n_tasks = THREADS;
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (struct asym_task){.id = {.tid = 11 + i, .tgid = 11, .start = 1}};
        planned[i] = (struct asym_plan_task){.target = -1};
    }
    plan = (struct asym_plan){.tasks = planned, .n_tasks = n_tasks};
}

static void look(asym_usec time)
{
    now = time;
    if (counters)
        asym_counters_replay_at(counters, time);
    assert_int_equal(monitor->next(monitor, &seen), 1);
}

static void follow(void)
{
    plan.n_tasks = n_tasks;
    asym_monitor_follow(monitor, &seen, &plan);
}

static void who_is_asked_for_is_counted_and_nobody_else(void **state)
{
    (void)state;
    begin(100);
    look(0);
    assert_int_equal(seen.n_samples, 0);
    planned[1].monitor = planned[2].monitor = true;
    follow();
    look(10000);
    assert_int_equal(seen.n_samples, 2);
    assert_int_equal(seen.samples[0].task, 1);
    assert_int_equal((int)seen.samples[0].instructions, 10000);
    assert_int_equal((int)seen.samples[0].cycles, 5000);
    assert_int_equal((int)seen.samples[0].llc_misses, 7);
    assert_int_equal((int)(seen.samples[0].seconds * 1e6 + 0.5), 10000);
    assert_int_equal(seen.samples[1].task, 2);
    assert_true(seen.samples[1].llc_misses < 0);
    /* From look to look, not since the beginning. */
    planned[2].monitor = false;
    follow();
    look(20000);
    assert_int_equal(seen.n_samples, 1);
    assert_int_equal((int)seen.samples[0].instructions, 20000);
    assert_int_equal((int)seen.samples[0].llc_misses, 2);
    monitor->close(monitor);
}

static void what_cannot_be_measured_is_told_by_it_and_the_rest_by_the_source(void **state)
{
    (void)state;
    begin(100);
    look(0);
    assert_null(seen.missing[ASYM_SIGNAL_IPC]);
    assert_string_equal(seen.missing[ASYM_SIGNAL_PROFILE], "no profiles");
    assert_string_equal(seen.missing[ASYM_SIGNAL_SMT], "no siblings");
    const char *const other[ASYM_N_SIGNALS] = {[ASYM_SIGNAL_IPC] = "none"};
    asym_monitor_set(monitor, NULL, other);
    counters = NULL; /* closed */
    look(1);
    assert_string_equal(seen.missing[ASYM_SIGNAL_IPC], "none");
    assert_null(seen.missing[ASYM_SIGNAL_PROFILE]);
    monitor->close(monitor);
}

static void one_that_dies_or_does_not_run_has_no_sample(void **state)
{
    (void)state;
    begin(100);
    look(0);
    for (int i = 0; i < THREADS; i++)
        planned[i].monitor = true;
    follow();
    look(10000);
    assert_int_equal(seen.n_samples, 3);
    for (size_t i = 0; i < seen.n_samples; i++)
        assert_true(seen.samples[i].task < 3);
    follow();
    assert_int_equal(seen.sight.n_uncounted, 0);
    monitor->close(monitor);
}

/* A figure takes a descriptor, and a thread has up to four: not all of these are within a budget of eight. */
static void a_spent_budget_is_told_and_freed_when_others_are_let_go(void **state)
{
    (void)state;
    begin(8);
    look(0);
    planned[0].monitor = planned[1].monitor = planned[2].monitor = planned[4].monitor = true;
    follow();
    look(10000);
    assert_true(seen.sight.n_uncounted >= 1);
    assert_non_null(seen.sight.uncounted_why);
    const size_t counted = 4 - seen.sight.n_uncounted;
    assert_true(counted >= 1);
    planned[0].monitor = planned[2].monitor = planned[4].monitor = false;
    follow();
    look(20000);
    assert_int_equal(seen.sight.n_uncounted, 0);
    assert_int_equal(seen.n_samples, 1);
    monitor->close(monitor);
}

static void a_number_that_is_used_again_is_another_thread(void **state)
{
    (void)state;
    begin(100);
    look(0);
    planned[0].monitor = true;
    follow();
    tasks[0].id.start = 2;
    look(10000);
    assert_int_equal(seen.n_samples, 0);
    follow();
    look(20000);
    assert_int_equal(seen.n_samples, 1);
    assert_int_equal((int)seen.samples[0].instructions, 20000);
    monitor->close(monitor);
}

static void without_counters_it_is_the_source_alone(void **state)
{
    (void)state;
    const struct asym_monitor_config config = {.source = &inner};
    assert_int_equal(asym_monitor_new(&config, &monitor), 0);
    assert_int_equal(monitor->next(monitor, &seen), 1);
    planned[0].monitor = true;
    follow();
    assert_int_equal(monitor->next(monitor, &seen), 1);
    assert_int_equal(seen.n_samples, 0);
    monitor->close(monitor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_asked_for_is_counted_and_nobody_else),
        cmocka_unit_test(what_cannot_be_measured_is_told_by_it_and_the_rest_by_the_source),
        cmocka_unit_test(one_that_dies_or_does_not_run_has_no_sample),
        cmocka_unit_test(a_spent_budget_is_told_and_freed_when_others_are_let_go),
        cmocka_unit_test(a_number_that_is_used_again_is_another_thread),
        cmocka_unit_test(without_counters_it_is_the_source_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
