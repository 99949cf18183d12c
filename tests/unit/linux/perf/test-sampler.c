/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counting source, over rows of counts and over counters of the test. */

#include "linux/perf/sampler.h"
#include "support/counted.h"
#include "support/test.h"

#define THREADS 5

static struct asym_task tasks[THREADS];
static struct asym_plan_task planned[THREADS];
static struct asym_plan plan;
static struct asym_snapshot seen;
static struct counted counters;
static struct asym_source *monitor;
static asym_usec now;
static size_t n_tasks;

static int next(struct asym_source *source, struct asym_snapshot *ret)
{
    *ret = (struct asym_snapshot){.now = now, .tasks = tasks, .n_tasks = n_tasks};
    ret->missing[ASYM_SIGNAL_SMT] = "no siblings";
    return 1;
}

static struct asym_source inner = {.next = next};

/* 1000 instructions and 500 cycles a ms, but for thread 13. */
#define ROW(time, tid, instructions, cycles, misses, ns)                                                               \
    {                                                                                                                  \
        time, tid, {instructions, cycles, misses}, ns                                                                  \
    }
static const struct counted_row rows[] = {
    ROW(0, 11, 0, 0, 0, 0),
    ROW(0, 12, 0, 0, 0, 0),
    ROW(0, 13, 0, 0, COUNTED_NONE, 0),
    ROW(0, 14, 0, 0, 0, 0),
    ROW(0, 15, 0, 0, 0, 0),
    ROW(10000, 11, 10000, 5000, 7, 10000000),
    ROW(10000, 12, 10000, 5000, 7, 10000000),
    ROW(10000, 13, 10000, 5000, COUNTED_NONE, 5000000),
    ROW(10000, 14, 0, 0, 0, COUNTED_NONE),
    ROW(10000, 15, 0, 0, 0, 0),
    ROW(20000, 11, 30000, 10000, 9, 20000000),
    ROW(20000, 12, 30000, 10000, 9, 20000000),
};

static int tear_down(void **state)
{
    if (monitor)
        monitor->close(monitor);
    monitor = NULL;
    return 0;
}

static void begin(unsigned max_fds)
{
    tear_down(NULL);
    counters = counted_of(rows, ASYM_LENGTH(rows), max_fds);
    const struct asym_sampler_config config = {
        .source = &inner, .counters = &counters.port, .missing = {[ASYM_SIGNAL_PROFILE] = "no profiles"}};
    assert_int_equal(asym_sampler_new(&config, &monitor), 0);
    now = 0;
    n_tasks = THREADS;
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (struct asym_task){.id = {.tid = 11 + i, .tgid = 11, .start = 1}};
        planned[i] = (struct asym_plan_task){.target = -1};
    }
    plan = (struct asym_plan){.tasks = planned, .n_tasks = n_tasks};
}

static void take_sample(asym_usec time)
{
    now = counters.now = time;
    assert_int_equal(monitor->next(monitor, &seen), 1);
}

static void follow(void)
{
    plan.n_tasks = n_tasks;
    const struct asym_feedback feedback = {.snapshot = &seen, .plan = &plan};
    monitor->feedback(monitor, &feedback);
}

/* The plan is in force until that time. */
static void follow_until(asym_usec time)
{
    follow();
    take_sample(time);
}

TEST_WITH(only_requested_threads_are_counted, NULL, tear_down)
{
    begin(100);
    take_sample(0);
    assert_int_equal(seen.n_samples, 0);
    planned[1].counted = planned[2].counted = true;
    follow_until(10000);
    assert_int_equal(seen.n_samples, 2);
    assert_int_equal(seen.samples[0].task, 1);
    assert_int_equal((int)seen.samples[0].instructions, 10000);
    assert_int_equal((int)seen.samples[0].cycles, 5000);
    assert_int_equal((int)seen.samples[0].llc_misses, 7);
    assert_int_equal((int)(seen.samples[0].seconds * 1e6 + 0.5), 10000);
    assert_int_equal(seen.samples[1].task, 2);
    assert_true(seen.samples[1].llc_misses < 0);
    /* A value covers the interval between two samples, not the time since the beginning. */
    planned[2].counted = false;
    follow_until(20000);
    assert_int_equal(seen.n_samples, 1);
    assert_int_equal((int)seen.samples[0].instructions, 20000);
    assert_int_equal((int)seen.samples[0].llc_misses, 2);
}

TEST_WITH(all_threads_can_be_counted_whatever_the_plan_requests, NULL, tear_down)
{
    begin(100);
    asym_sampler_count_all(monitor);
    take_sample(0);
    planned[1].counted = true;
    n_tasks = 3;
    follow_until(10000);
    assert_int_equal(seen.n_samples, 3);
}

TEST_WITH(the_sampler_reports_what_cannot_be_measured_and_the_source_the_rest, NULL, tear_down)
{
    begin(100);
    take_sample(0);
    assert_null(seen.missing[ASYM_SIGNAL_IPC]);
    assert_string_equal(seen.missing[ASYM_SIGNAL_PROFILE], "no profiles");
    assert_string_equal(seen.missing[ASYM_SIGNAL_SMT], "no siblings");
    const char *const other[ASYM_N_SIGNALS] = {[ASYM_SIGNAL_IPC] = "none"};
    asym_sampler_set(monitor, NULL, other);
    take_sample(1);
    assert_string_equal(seen.missing[ASYM_SIGNAL_IPC], "none");
    assert_null(seen.missing[ASYM_SIGNAL_PROFILE]);
}

TEST_WITH(one_that_dies_or_does_not_run_has_no_sample, NULL, tear_down)
{
    begin(100);
    take_sample(0);
    for (int i = 0; i < THREADS; i++)
        planned[i].counted = true;
    follow_until(10000);
    assert_int_equal(seen.n_samples, 3);
    for (size_t i = 0; i < seen.n_samples; i++)
        assert_true(seen.samples[i].task < 3);
    follow();
    assert_int_equal(seen.coverage.n_uncounted, 0);
}

/* A figure needs a descriptor, and a thread has up to three: a budget of eight is too small for all of these. */
TEST_WITH(a_spent_budget_is_reported_and_freed_when_others_are_released, NULL, tear_down)
{
    begin(8);
    take_sample(0);
    planned[0].counted = planned[1].counted = planned[2].counted = planned[4].counted = true;
    follow_until(10000);
    assert_true(seen.coverage.n_uncounted >= 1);
    assert_non_null(seen.coverage.uncounted_why);
    const size_t counted = 4 - seen.coverage.n_uncounted;
    assert_true(counted >= 1);
    planned[0].counted = planned[2].counted = planned[4].counted = false;
    follow_until(20000);
    assert_int_equal(seen.coverage.n_uncounted, 0);
    assert_int_equal(seen.n_samples, 1);
}

TEST_WITH(a_tid_that_is_used_again_is_another_thread, NULL, tear_down)
{
    begin(100);
    take_sample(0);
    planned[0].counted = true;
    follow();
    tasks[0].id.start = 2;
    take_sample(10000);
    assert_int_equal(seen.n_samples, 0);
    follow_until(20000);
    assert_int_equal(seen.n_samples, 1);
    assert_int_equal((int)seen.samples[0].instructions, 20000);
}

TEST_WITH(without_counters_it_is_the_source_alone, NULL, tear_down)
{
    const struct asym_sampler_config config = {.source = &inner};
    assert_int_equal(asym_sampler_new(&config, &monitor), 0);
    assert_int_equal(monitor->next(monitor, &seen), 1);
    planned[0].counted = true;
    follow();
    assert_int_equal(monitor->next(monitor, &seen), 1);
    assert_int_equal(seen.n_samples, 0);
}

static bool is_watched[THREADS];
static int watch_error, failing_tgid;
static int n_watches;

/* The call for a thread of the failing process always ends with the error. */
static int watch_or_fail(struct asym_counters *c, const struct asym_taskid *id)
{
    n_watches++;
    if (id->tgid == failing_tgid)
        return watch_error;
    is_watched[id->tid - 11] = true;
    return 0;
}

static int unwatch_none(struct asym_counters *c, const struct asym_taskid *id)
{
    return 0;
}

static int read_nothing(struct asym_counters *c, const struct asym_taskid *id, struct asym_counts *ret)
{
    *ret = (struct asym_counts){.valid = 0};
    return 0;
}

static void close_nothing(struct asym_counters *c)
{
}

/* All threads are wanted. The first n_failing are those of the first process, and to count them always fails. */
static void begin_with_failure(int error, int n_failing)
{
    static struct asym_counters failing = {
        .watch = watch_or_fail, .unwatch = unwatch_none, .read = read_nothing, .close = close_nothing};
    const char *const none[ASYM_N_SIGNALS] = {NULL};
    begin(100);
    asym_sampler_set(monitor, &failing, none);
    watch_error = error;
    failing_tgid = 11;
    n_watches = 0;
    memset(is_watched, 0, sizeof is_watched);
    for (int i = 0; i < THREADS; i++) {
        planned[i].counted = true;
        tasks[i].id.tgid = i < n_failing ? 11 : 11 + i;
    }
    take_sample(0);
    follow_until(1);
    assert_int_equal(n_watches, 1);
    assert_int_equal(seen.coverage.n_uncounted, THREADS);
}

/*
 * The process's exec hangs (support/fuse.h). However many threads it has, that costs each thread behind it at most one sample, and
 * is the reason that is reported for it.
 */
TEST_WITH(a_process_that_makes_the_kernel_wait_does_not_keep_others_from_being_counted, NULL, tear_down)
{
    for (int n_failing = 1; n_failing < THREADS; n_failing++) {
        begin_with_failure(-EINTR, n_failing);
        assert_non_null(strstr(seen.coverage.uncounted_why, "exec"));
        follow_until(2);
        assert_int_equal(seen.coverage.n_uncounted, n_failing);
        assert_non_null(strstr(seen.coverage.uncounted_why, "exec"));
        for (int i = n_failing; i < THREADS; i++)
            assert_true(is_watched[i]);
        assert_int_equal(n_watches, 2 + THREADS - n_failing);
    }
}

/* A user can change the place of the process in the list: threads of other programs of the user begin or end. */
TEST_WITH(its_place_in_the_list_does_not_matter, NULL, tear_down)
{
    begin_with_failure(-EINTR, 1);
    const struct asym_task blocked = tasks[0];
    memmove(tasks, tasks + 1, (THREADS - 1) * sizeof *tasks);
    tasks[THREADS - 1] = blocked;
    follow();
    for (int i = 1; i < THREADS; i++)
        assert_true(is_watched[i]);
}

/* It has ended, and a new one like it stands at its place. */
TEST_WITH(a_new_process_at_its_place_does_not_keep_others_waiting, NULL, tear_down)
{
    begin_with_failure(-EINTR, 1);
    failing_tgid = tasks[0].id.tgid = 31;
    follow();
    for (int i = 1; i < THREADS; i++)
        assert_true(is_watched[i]);
}

enum { ROOM = 2 };
static unsigned n_watched, n_unwatched;

static int watch_in_room(struct asym_counters *c, const struct asym_taskid *id)
{
    if (n_watched == ROOM)
        return -EDQUOT;
    n_watched++;
    is_watched[(id->tid - 11) % THREADS] = true;
    return 0;
}

static int unwatch_in_room(struct asym_counters *c, const struct asym_taskid *id)
{
    n_watched--;
    n_unwatched++;
    is_watched[(id->tid - 11) % THREADS] = false;
    return 0;
}

static void begin_with_room(void)
{
    static struct asym_counters small = {
        .watch = watch_in_room, .unwatch = unwatch_in_room, .read = read_nothing, .close = close_nothing};
    const char *const none[ASYM_N_SIGNALS] = {NULL};
    begin(100);
    asym_sampler_set(monitor, &small, none);
    n_watched = n_unwatched = 0;
    memset(is_watched, 0, sizeof is_watched);
    for (int i = 0; i < THREADS; i++)
        planned[i].counted = true;
}

/* The first threads could belong to one user, and never sleep. */
TEST_WITH(threads_take_turns_when_the_budget_is_spent, NULL, tear_down)
{
    unsigned n_turns[THREADS] = {0};
    begin_with_room();
    for (unsigned cycle = 0; cycle < 5 * THREADS; cycle++) {
        bool before[THREADS];
        memcpy(before, is_watched, sizeof before);
        take_sample(1 + cycle * ASYM_SAMPLER_TURN / 2);
        follow();
        assert_int_equal(n_watched, ROOM);
        for (int i = 0; i < THREADS; i++) {
            n_turns[i] += is_watched[i] && !before[i];
            /* A turn has two cycles here. */
            assert_true(cycle % 2 == 0 || before[i] == is_watched[i]);
        }
    }
    for (int i = 0; i < THREADS; i++)
        assert_in_range(n_turns[i], 5, 6);
}

TEST_WITH(nobody_takes_turns_while_there_is_room, NULL, tear_down)
{
    bool before[THREADS];
    begin_with_room();
    planned[1].counted = planned[2].counted = planned[4].counted = false;
    for (unsigned cycle = 0; cycle < 6; cycle++) {
        take_sample(1 + cycle * ASYM_SAMPLER_TURN);
        follow();
        assert_true(is_watched[0] && is_watched[3]);
        assert_true(cycle == 0 || memcmp(before, is_watched, sizeof before) == 0);
        memcpy(before, is_watched, sizeof before);
    }
}

/* Two of five threads are counted. The user of the short-lived ones, which stand first, must not keep both places. */
TEST_WITH(short_lived_threads_do_not_keep_every_place, NULL, tear_down)
{
    enum { CYCLES = 1000 };
    for (int of_one_process = 0; of_one_process < 2; of_one_process++) {
        unsigned n_counted = 0;
        begin_with_room();
        tasks[THREADS - 1].id.tgid = tasks[THREADS - 1].id.tid;
        for (unsigned cycle = 0; cycle < CYCLES; cycle++) {
            /* All threads but the last one, the victim, are new ones: of one process, or each of a process of its own. */
            for (int i = 0; i < THREADS - 1; i++) {
                const int32_t tid = 11 + i + (int32_t)(cycle + 1) * THREADS;
                tasks[i].id = (struct asym_taskid){.tid = tid, .tgid = of_one_process ? 11 : tid, .start = 1};
            }
            take_sample(1 + cycle * ASYM_SAMPLER_TURN / 2);
            follow();
            n_counted += is_watched[THREADS - 1];
        }
        assert_true(n_counted > CYCLES / THREADS);
    }
}

/* To stop counting a thread and to start again costs time, and loses the counts in between. */
TEST_WITH(no_more_threads_make_room_than_were_refused, NULL, tear_down)
{
    begin_with_room();
    planned[3].counted = planned[4].counted = false;
    for (unsigned cycle = 0; cycle < 9; cycle++) {
        take_sample(1 + cycle * ASYM_SAMPLER_TURN);
        follow();
        assert_int_equal(n_watched, ROOM);
        assert_int_equal(n_unwatched, cycle);
    }
}

TEST_WITH(a_lack_of_descriptors_is_the_reason_for_all, NULL, tear_down)
{
    begin_with_failure(-ENFILE, 1);
    assert_non_null(strstr(seen.coverage.uncounted_why, "system"));
}

TEST_MAIN
