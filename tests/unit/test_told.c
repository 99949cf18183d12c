/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs say, as it becomes part of a snapshot: a source and a teller that the test makes up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "linux/told.h"

enum { INTERVAL = 100, N_TASKS = 6 };

/* Process 10 has threads 10..13 and is one application; 20 has 20 and 21. All are runnable all the time. */
static struct {
    struct asym_source inner;
    struct asym_teller teller;
    struct asym_source *source;
    struct asym_task tasks[N_TASKS];
    struct asym_proc procs[2];
    struct asym_app apps[2];
    struct asym_machine machine;
    struct asym_told_thread threads[16];
    struct asym_told told[4];
    size_t n_told, looks, agains, finals;
    int again_error;
    asym_usec now;
} w;

static struct asym_snapshot snapshot(void)
{
    return (struct asym_snapshot){.now = w.now,
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
    (void)source;
    w.looks++;
    *ret = snapshot();
    return 1;
}

static int again(struct asym_source *source, struct asym_snapshot *ret)
{
    (void)source;
    if (w.again_error)
        return w.again_error;
    w.agains++;
    *ret = snapshot();
    return 0;
}

static size_t ask(struct asym_teller *teller, asym_usec now, unsigned how, const struct asym_told **ret)
{
    (void)teller;
    assert_int_equal(now, w.now);
    w.finals += how & ASYM_ASK_FINAL;
    *ret = w.told;
    return w.n_told;
}

static asym_usec now(void)
{
    return w.now;
}

static int set_up(void **state)
{
    (void)state;
    static const int32_t tids[N_TASKS] = {10, 11, 12, 13, 20, 21};
    memset(&w, 0, sizeof w);
    w.now = 1000;
    w.inner.next = next;
    w.teller.ask = ask;
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
    const struct asym_told_config config = {.inner = &w.inner, .again = again, .teller = &w.teller, .now = now};
    return asym_told_source_new(&config, &w.source);
}

static int tear_down(void **state)
{
    (void)state;
    w.source->close(w.source);
    return 0;
}

/* Process pid, which began at start, says this. */
static void say(int32_t pid, uint64_t start, const struct asym_told_thread *threads, size_t n)
{
    size_t first = 0;
    for (size_t i = 0; i < w.n_told; i++)
        first += w.told[i].n;
    memcpy(w.threads + first, threads, n * sizeof *threads);
    w.told[w.n_told++] = (struct asym_told){.pid = pid, .start = start, .threads = w.threads + first, .n = n};
}

static struct asym_snapshot look(void)
{
    struct asym_snapshot s;
    assert_int_equal(w.source->next(w.source, &s), 1);
    return s;
}

static void where_nobody_speaks_nothing_is_changed(void **state)
{
    (void)state;
    struct asym_snapshot s = look();
    assert_ptr_equal(s.tasks, w.tasks);
    assert_ptr_equal(s.apps, w.apps);
    assert_false(s.urgent);
    assert_int_equal(s.sight.n_speaking, 0);
}

static void spinning_threads_leave_the_count_and_the_master_is_marked(void **state)
{
    (void)state;
    const struct asym_told_thread threads[] = {
        {.tid = 10, .master = true, .works = true}, {.tid = 11, .spins = true}, {.tid = 13, .spins = true}};
    say(10, 7, threads, ASYM_LENGTH(threads));
    struct asym_snapshot s = look();
    assert_int_equal(s.tasks[0].flags, ASYM_TASK_MASTER);
    assert_int_equal(s.tasks[1].flags, ASYM_TASK_SPINNING);
    assert_int_equal(s.tasks[2].flags, 0);
    assert_int_equal(s.tasks[3].flags, ASYM_TASK_SPINNING);
    assert_int_equal(s.apps[0].runnable_instant, 2);
    assert_float_equal((float)s.apps[0].runnable_mean, 2, 1e-6F);
    assert_true(s.apps[0].speaks);
    assert_false(s.apps[1].speaks);
    assert_int_equal(s.apps[1].runnable_instant, 2);
    assert_int_equal(s.sight.n_speaking, 1);
    /* What the inner source keeps is its own. */
    assert_int_equal(w.tasks[1].flags, 0);
    assert_int_equal(w.apps[0].runnable_instant, 4);
}

/* Whoever is at a barrier when somebody looks: what counts is for how much of the interval. */
static void one_who_has_spun_for_a_part_of_the_interval_is_left_out_for_that_part(void **state)
{
    (void)state;
    const asym_usec now = w.now;
    const struct asym_told_thread threads[] = {{.tid = 10, .spins = true, .since = now - INTERVAL / 4},
                                               {.tid = 11, .spins = true, .since = now - INTERVAL},
                                               {.tid = 12, .spins = true, .since = now - 20}};
    say(10, 7, threads, ASYM_LENGTH(threads));
    struct asym_snapshot s = look();
    assert_int_equal(s.tasks[0].flags, 0);
    assert_int_equal(s.tasks[1].flags, ASYM_TASK_SPINNING);
    assert_int_equal(s.tasks[2].flags, 0);
    assert_float_equal((float)s.apps[0].runnable_mean, 4 - 0.25F - 1 - 0.2F, 1e-5F);
    assert_int_equal(s.apps[0].runnable_instant, 1);
}

/* One who sleeps was not runnable meanwhile: that is measured already. */
static void nothing_is_left_out_twice(void **state)
{
    (void)state;
    const struct asym_told_thread threads[] = {{.tid = 10, .spins = true, .since = w.now - INTERVAL / 2}};
    w.tasks[0].runnable = 0.5;
    w.apps[0].runnable_mean = 3.5;
    say(10, 7, threads, ASYM_LENGTH(threads));
    assert_float_equal((float)look().apps[0].runnable_mean, 3.5F, 1e-5F);
}

static void nobody_speaks_for_others(void **state)
{
    (void)state;
    /* Threads of another process; and those of its successor in the number. */
    const struct asym_told_thread others[] = {{.tid = 20, .spins = true}, {.tid = 21, .master = true, .works = true}};
    say(10, 7, others, ASYM_LENGTH(others));
    say(20, 9, others, ASYM_LENGTH(others));
    struct asym_snapshot s = look();
    for (size_t i = 0; i < N_TASKS; i++)
        assert_int_equal(s.tasks[i].flags, 0);
    assert_int_equal(s.apps[1].runnable_instant, 2);
    assert_false(s.apps[1].speaks);
}

static void an_application_has_one_master(void **state)
{
    (void)state;
    const struct asym_told_thread all[] = {{.tid = 10, .master = true, .works = true},
                                           {.tid = 11, .master = true, .works = true},
                                           {.tid = 12, .master = true, .works = true}};
    const struct asym_told_thread other[] = {{.tid = 13, .master = true, .works = true}};
    size_t masters = 0;
    say(10, 7, all, ASYM_LENGTH(all));
    say(10, 7, other, ASYM_LENGTH(other));
    struct asym_snapshot s = look();
    for (size_t i = 0; i < N_TASKS; i++)
        masters += s.tasks[i].flags == ASYM_TASK_MASTER;
    assert_int_equal(masters, 1);
    assert_int_equal(s.sight.n_speaking, 1);
}

static void counts_do_not_go_below_nothing(void **state)
{
    (void)state;
    const struct asym_told_thread threads[] = {{.tid = 20, .spins = true}, {.tid = 21, .spins = true}};
    w.apps[1].runnable_mean = 0.5;
    w.apps[1].runnable_instant = 1;
    say(20, 8, threads, ASYM_LENGTH(threads));
    struct asym_snapshot s = look();
    assert_true(s.apps[1].runnable_mean == 0.0);
    assert_int_equal(s.apps[1].runnable_instant, 0);
}

static void the_begin_and_the_end_of_a_phase_are_urgent(void **state)
{
    (void)state;
    struct asym_told_thread threads[] = {{.tid = 10, .works = true}};
    say(10, 7, threads, 1);
    assert_false(look().urgent);
    w.threads[0].master = true;
    assert_true(look().urgent);
    assert_false(look().urgent);
    w.threads[0].master = false;
    assert_true(look().urgent);
    /* Or who was in it has gone. */
    w.threads[0].master = true;
    assert_true(look().urgent);
    w.n_told = 0;
    assert_true(look().urgent);
    assert_int_equal(w.looks, 6);
    assert_int_equal(w.finals, 6);
}

static void a_hurried_look_measures_nothing_anew(void **state)
{
    (void)state;
    struct asym_told_thread threads[] = {{.tid = 10, .master = true, .works = true}, {.tid = 11, .works = true}};
    say(10, 7, threads, ASYM_LENGTH(threads));
    look();
    asym_told_source_hurry(w.source);
    struct asym_snapshot s = look();
    assert_int_equal(w.looks, 1);
    assert_int_equal(w.agains, 1);
    assert_int_equal(s.tasks[0].flags, ASYM_TASK_MASTER);
    assert_int_equal(s.apps[0].runnable_instant, 4);
    look();
    assert_int_equal(w.looks, 2);
    /* Where there is nothing to hand out again, it is a look like any other. */
    w.again_error = -ENODATA;
    asym_told_source_hurry(w.source);
    look();
    assert_int_equal(w.looks, 3);
    w.again_error = -EIO;
    asym_told_source_hurry(w.source);
    assert_int_equal(w.source->next(w.source, &s), -EIO);
}

static void who_has_just_begun_to_work_counts_in_a_hurried_look(void **state)
{
    (void)state;
    /* 11 slept for most of the interval, 14 to 19 for all of it; there are six threads in all. */
    struct asym_told_thread threads[8] = {{.tid = 11, .works = true, .news = true}};
    w.tasks[1].runnable = 0.25;
    w.tasks[1].state = 'S';
    w.apps[0].runnable_mean = 3.25;
    w.apps[0].runnable_instant = 3;
    threads[1] = (struct asym_told_thread){.tid = 14, .works = true, .news = true};
    say(10, 7, threads, 2);
    struct asym_snapshot s = look();
    assert_float_equal((float)s.apps[0].runnable_mean, 3.25, 1e-6F);
    asym_told_source_hurry(w.source);
    s = look();
    assert_float_equal((float)s.apps[0].runnable_mean, 5, 1e-6F);
    assert_int_equal(s.apps[0].runnable_instant, 5);
    /* Whoever names threads that are not there gains nothing beyond those that are. */
    for (int32_t i = 1; i < 8; i++)
        threads[i] = (struct asym_told_thread){.tid = 13 + i, .works = true, .news = true};
    w.n_told = 0;
    say(10, 7, threads, 8);
    asym_told_source_hurry(w.source);
    s = look();
    assert_float_equal((float)s.apps[0].runnable_mean, 6, 1e-6F);
    assert_int_equal(s.apps[0].runnable_instant, 6);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(where_nobody_speaks_nothing_is_changed),
        T(spinning_threads_leave_the_count_and_the_master_is_marked),
        T(one_who_has_spun_for_a_part_of_the_interval_is_left_out_for_that_part),
        T(nothing_is_left_out_twice),
        T(nobody_speaks_for_others),
        T(an_application_has_one_master),
        T(counts_do_not_go_below_nothing),
        T(the_begin_and_the_end_of_a_phase_are_urgent),
        T(a_hurried_look_measures_nothing_anew),
        T(who_has_just_begun_to_work_counts_in_a_hurried_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
