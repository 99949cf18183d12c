/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The overlay of reports on a snapshot, with a source and a provider of the test. */

#include "linux/rtx/rtx-overlay.h"
#include "support/test.h"

enum { INTERVAL = 100, N_TASKS = 6 };

/* Process 10 has threads 10..13 and is one application; process 20 has 20 and 21. All are always runnable. */
static struct {
    struct asym_source inner;
    struct asym_rtxd_provider provider;
    struct asym_source *source;
    struct asym_task tasks[N_TASKS];
    struct asym_proc procs[2];
    struct asym_app apps[2];
    struct asym_machine machine;
    struct asym_rtxd_thread_report threads[16];
    struct asym_rtxd_program_report program_reports[4];
    size_t n_reports, n_samples, n_refreshed, finals, n_refresh_asks, pieces;
    bool refresh, has_none, inner_is_urgent;
    int refresh_error;
    asym_usec now;
} w;

static struct asym_snapshot snapshot(void)
{
    return (struct asym_snapshot){.now = w.now,
                                  .urgent = w.inner_is_urgent ? ASYM_URGENT_PHASE : ASYM_URGENT_NOT,
                                  .interval = INTERVAL,
                                  .machine = &w.machine,
                                  .apps = w.apps,
                                  .procs = w.procs,
                                  .tasks = w.tasks,
                                  .n_apps = 2,
                                  .n_procs = 2,
                                  .n_tasks = N_TASKS};
}

static int next(struct asym_source *source, struct asym_snapshot *ret)
{
    if (w.pieces > 0) {
        w.pieces--;
        return -EINPROGRESS;
    }
    const bool refreshed = w.refresh && !w.has_none;
    w.refresh = false;
    if (refreshed && w.refresh_error)
        return w.refresh_error;
    *(refreshed ? &w.n_refreshed : &w.n_samples) += 1;
    *ret = snapshot();
    ret->refreshed = refreshed;
    return 1;
}

static void refresh(struct asym_source *source)
{
    w.refresh = true;
}

static size_t ask(struct asym_rtxd_provider *provider, asym_usec now, unsigned how,
                  const struct asym_rtxd_program_report **ret)
{
    assert_int_equal(now, w.now);
    w.finals += how & ASYM_ASK_FINAL;
    w.n_refresh_asks += (how & ASYM_ASK_REFRESH) != 0;
    *ret = w.program_reports;
    return w.n_reports;
}

static asym_usec now(void)
{
    return w.now;
}

static int set_up(void **state)
{
    static const int32_t tids[N_TASKS] = {10, 11, 12, 13, 20, 21};
    memset(&w, 0, sizeof w);
    w.now = 1000;
    w.inner = (struct asym_source){.next = next, .refresh = refresh};
    w.provider.ask = ask;
    for (size_t i = 0; i < N_TASKS; i++)
        w.tasks[i] = (struct asym_task){
            .id = {.tid = tids[i], .tgid = i < 4 ? 10 : 20, .start = 5}, .proc = i >= 4, .state = 'R', .runnable = 1};
    for (size_t p = 0; p < 2; p++) {
        w.procs[p] = (struct asym_proc){.id = {.tid = p ? 20 : 10, .tgid = p ? 20 : 10, .start = p ? 8 : 7},
                                        .app = (uint32_t)p};
        w.apps[p] = (struct asym_app){.first_task = p ? 4 : 0,
                                      .n_tasks = p ? 2 : 4,
                                      .n_threads = p ? 2 : 6,
                                      .runnable_instant = p ? 2 : 4,
                                      .runnable_mean = p ? 2 : 4};
    }
    const struct asym_rtxd_overlay_config config = {.inner = &w.inner, .provider = &w.provider, .now = now};
    return asym_rtxd_overlay_new(&config, &w.source);
}

static int tear_down(void **state)
{
    w.source->close(w.source);
    return 0;
}

/* Add a report of process pid with this start time. */
static void say(int32_t pid, uint64_t start, const struct asym_rtxd_thread_report *threads, size_t n)
{
    size_t first = 0;
    for (size_t i = 0; i < w.n_reports; i++)
        first += w.program_reports[i].n;
    memcpy(w.threads + first, threads, n * sizeof *threads);
    w.program_reports[w.n_reports++] = (struct asym_rtxd_program_report){
        .pid = pid, .start = start, .at = w.now, .threads = w.threads + first, .n = n};
}

static struct asym_snapshot take_sample(void)
{
    struct asym_snapshot s;
    assert_int_equal(w.source->next(w.source, &s), 1);
    return s;
}

TEST_WITH(without_reports_nothing_is_changed, set_up, tear_down)
{
    struct asym_snapshot s = take_sample();
    assert_ptr_equal(s.tasks, w.tasks);
    assert_ptr_equal(s.apps, w.apps);
    assert_false(s.urgent);
    assert_int_equal(s.coverage.n_reporting, 0);
}

TEST_WITH(spinning_threads_leave_the_count_and_the_master_is_marked, set_up, tear_down)
{
    const struct asym_rtxd_thread_report threads[] = {{.tid = 10, .master = true, .in_phase = true, .works = true},
                                                      {.tid = 11, .spins = true},
                                                      {.tid = 13, .spins = true}};
    say(10, 7, threads, ASYM_LENGTH(threads));
    struct asym_snapshot s = take_sample();
    assert_int_equal(s.tasks[0].flags, ASYM_TASK_MASTER | ASYM_TASK_PHASE);
    assert_int_equal(s.tasks[1].flags, ASYM_TASK_SPINNING);
    assert_int_equal(s.tasks[2].flags, 0);
    assert_int_equal(s.tasks[3].flags, ASYM_TASK_SPINNING);
    assert_int_equal(s.apps[0].runnable_instant, 2);
    assert_float_equal((float)s.apps[0].runnable_mean, 2, 1e-6F);
    assert_true(s.apps[0].uses_rtx);
    assert_false(s.apps[1].uses_rtx);
    assert_int_equal(s.apps[1].runnable_instant, 2);
    assert_int_equal(s.coverage.n_reporting, 1);
    /* The overlay does not change the inner source's data. */
    assert_int_equal(w.tasks[1].flags, 0);
    assert_int_equal(w.apps[0].runnable_instant, 4);
}

/* A thread that waits at a barrier at the sample counts by the part of the interval for which it has waited. */
TEST_WITH(a_thread_that_spins_for_a_part_of_the_interval_is_left_out_for_that_part, set_up, tear_down)
{
    const asym_usec now = w.now;
    const struct asym_rtxd_thread_report threads[] = {{.tid = 10, .spins = true, .since = now - INTERVAL / 4},
                                                      {.tid = 11, .spins = true, .since = now - INTERVAL},
                                                      {.tid = 12, .spins = true, .since = now - 20}};
    say(10, 7, threads, ASYM_LENGTH(threads));
    struct asym_snapshot s = take_sample();
    assert_int_equal(s.tasks[0].flags, 0);
    assert_int_equal(s.tasks[1].flags, ASYM_TASK_SPINNING);
    assert_int_equal(s.tasks[2].flags, 0);
    assert_float_equal((float)s.apps[0].runnable_mean, 4 - 0.25F - 1 - 0.2F, 1e-5F);
    assert_int_equal(s.apps[0].runnable_instant, 1);
}

/* A sleeping thread was not runnable: the inner source has measured that already. */
TEST_WITH(nothing_is_left_out_twice, set_up, tear_down)
{
    const struct asym_rtxd_thread_report threads[] = {{.tid = 10, .spins = true, .since = w.now - INTERVAL / 2}};
    w.tasks[0].runnable = 0.5;
    w.apps[0].runnable_mean = 3.5;
    say(10, 7, threads, ASYM_LENGTH(threads));
    assert_float_equal((float)take_sample().apps[0].runnable_mean, 3.5F, 1e-5F);
}

TEST_WITH(a_program_reports_its_own_threads_only, set_up, tear_down)
{
    /* Threads of another process, and of a later process with the same pid. */
    const struct asym_rtxd_thread_report others[] = {{.tid = 20, .spins = true},
                                                     {.tid = 21, .master = true, .works = true}};
    say(10, 7, others, ASYM_LENGTH(others));
    say(20, 9, others, ASYM_LENGTH(others));
    struct asym_snapshot s = take_sample();
    for (size_t i = 0; i < N_TASKS; i++)
        assert_int_equal(s.tasks[i].flags, 0);
    assert_int_equal(s.apps[1].runnable_instant, 2);
    assert_false(s.apps[1].uses_rtx);
}

TEST_WITH(an_application_has_one_master, set_up, tear_down)
{
    const struct asym_rtxd_thread_report all[] = {{.tid = 10, .master = true, .works = true},
                                                  {.tid = 11, .master = true, .works = true},
                                                  {.tid = 12, .master = true, .works = true}};
    const struct asym_rtxd_thread_report other[] = {{.tid = 13, .master = true, .works = true}};
    size_t masters = 0;
    say(10, 7, all, ASYM_LENGTH(all));
    say(10, 7, other, ASYM_LENGTH(other));
    struct asym_snapshot s = take_sample();
    for (size_t i = 0; i < N_TASKS; i++)
        masters += s.tasks[i].flags == ASYM_TASK_MASTER;
    assert_int_equal(masters, 1);
    assert_int_equal(s.coverage.n_reporting, 1);
}

TEST_WITH(counts_do_not_go_below_nothing, set_up, tear_down)
{
    const struct asym_rtxd_thread_report threads[] = {{.tid = 20, .spins = true}, {.tid = 21, .spins = true}};
    w.apps[1].runnable_mean = 0.5;
    w.apps[1].runnable_instant = 1;
    say(20, 8, threads, ASYM_LENGTH(threads));
    struct asym_snapshot s = take_sample();
    assert_true(s.apps[1].runnable_mean == 0.0);
    assert_int_equal(s.apps[1].runnable_instant, 0);
}

TEST_WITH(the_begin_and_the_end_of_a_phase_are_urgent, set_up, tear_down)
{
    struct asym_rtxd_thread_report threads[] = {{.tid = 10, .works = true}};
    say(10, 7, threads, 1);
    w.inner_is_urgent = true; /* the kernel has told of a phase */
    assert_int_equal(take_sample().urgent, ASYM_URGENT_PHASE);
    w.threads[0].master = true;
    assert_int_equal(take_sample().urgent, ASYM_URGENT_REPORT);
    w.inner_is_urgent = false;
    assert_false(take_sample().urgent);
    w.threads[0].master = false;
    assert_int_equal(take_sample().urgent, ASYM_URGENT_REPORT);
    /* Or the thread in the phase has ended. */
    w.threads[0].master = true;
    assert_int_equal(take_sample().urgent, ASYM_URGENT_REPORT);
    w.n_reports = 0;
    assert_int_equal(take_sample().urgent, ASYM_URGENT_REPORT);
    assert_int_equal(w.n_samples, 6);
    assert_int_equal(w.finals, 6);
}

/* The service serves no report between two pieces, so the complete snapshot must have the phase. */
TEST_WITH(a_phase_that_begins_between_two_pieces_is_in_the_complete_snapshot, set_up, tear_down)
{
    static const struct asym_rtxd_thread_report master[] = {{.tid = 11, .master = true}};
    struct asym_snapshot s;
    w.pieces = 2;
    assert_int_equal(w.source->next(w.source, &s), -EINPROGRESS);
    say(10, 7, master, 1);
    assert_int_equal(w.source->next(w.source, &s), -EINPROGRESS);
    /* Only the last question is final: the earlier ones must not use up the change. */
    assert_int_equal(w.finals, 0);
    assert_int_equal(w.source->next(w.source, &s), 1);
    assert_int_equal(w.finals, 1);
    assert_true(s.urgent);
    assert_true(s.tasks[1].flags & ASYM_TASK_MASTER);
}

TEST_WITH(a_refresh_measures_nothing_anew, set_up, tear_down)
{
    struct asym_rtxd_thread_report threads[] = {{.tid = 10, .master = true, .works = true}, {.tid = 11, .works = true}};
    say(10, 7, threads, ASYM_LENGTH(threads));
    take_sample();
    asym_source_refresh(w.source);
    struct asym_snapshot s = take_sample();
    assert_int_equal(w.n_samples, 1);
    assert_int_equal(w.n_refreshed, 1);
    assert_true(s.refreshed);
    assert_int_equal(w.n_refresh_asks, 1); /* the provider is asked once: a program waits for the answer */
    assert_int_equal(s.tasks[0].flags, ASYM_TASK_MASTER);
    assert_int_equal(s.apps[0].runnable_instant, 4);
    take_sample();
    assert_int_equal(w.n_samples, 2);
    /* Without a last snapshot, the inner source takes a full one. */
    w.has_none = true;
    asym_source_refresh(w.source);
    assert_false(take_sample().refreshed);
    assert_int_equal(w.n_samples, 3);
    w.has_none = false;
    w.refresh_error = -EIO;
    asym_source_refresh(w.source);
    assert_int_equal(w.source->next(w.source, &s), -EIO);
}

TEST_WITH(a_thread_that_has_just_begun_to_work_counts_in_a_refresh, set_up, tear_down)
{
    /* 11 slept for most of the interval, 14 to 19 for all of it; the application has six threads. */
    struct asym_rtxd_thread_report threads[8] = {{.tid = 11, .works = true, .changed = true}};
    w.tasks[1].runnable = 0.25;
    w.tasks[1].state = 'S';
    w.apps[0].runnable_mean = 3.25;
    w.apps[0].runnable_instant = 3;
    threads[1] = (struct asym_rtxd_thread_report){.tid = 14, .works = true, .changed = true};
    say(10, 7, threads, 2);
    struct asym_snapshot s = take_sample();
    assert_float_equal((float)s.apps[0].runnable_mean, 3.25, 1e-6F);
    asym_source_refresh(w.source);
    s = take_sample();
    assert_float_equal((float)s.apps[0].runnable_mean, 5, 1e-6F);
    assert_int_equal(s.apps[0].runnable_instant, 5);
    /* A program that names missing threads gains no more than its real threads. */
    for (int32_t i = 1; i < 8; i++)
        threads[i] = (struct asym_rtxd_thread_report){.tid = 13 + i, .works = true, .changed = true};
    w.n_reports = 0;
    say(10, 7, threads, 8);
    asym_source_refresh(w.source);
    s = take_sample();
    assert_float_equal((float)s.apps[0].runnable_mean, 6, 1e-6F);
    assert_int_equal(s.apps[0].runnable_instant, 6);
}

TEST(two_threads_without_a_pause_are_suspect)
{
    struct asym_task tasks[3] = {{.runnable = 1}, {.runnable = 0.9}, {.runnable = 0}};
    const struct asym_app app = {.n_tasks = 3};
    const struct asym_snapshot s = {.tasks = tasks, .apps = &app, .n_tasks = 3, .n_apps = 1};
    assert_false(asym_rtxd_never_pauses(&s, &app));
    tasks[1].runnable = 0.96;
    assert_true(asym_rtxd_never_pauses(&s, &app));
}

TEST_MAIN
