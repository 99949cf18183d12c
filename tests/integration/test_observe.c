/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The procfs source on the live machine: counts, births, hostile names, want of descriptors. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/mask.h"
#include "daemon/cycle.h"
#include "linux/procfs-internal.h"
#include "linux/thread.h"
#include "linux/topology.h"
#include "support/live.h"

struct view {
    struct asym_root root;
    struct asym_machine *machine;
    struct asym_births *births;
    struct asym_source *source;
    struct asym_snapshot s;
};

static void open_view(struct view *v, pid_t pid, bool births)
{
    struct asym_error err = {""};
    const int32_t pids[] = {pid};
    *v = (struct view){.machine = calloc(1, sizeof *v->machine)};
    assert_int_equal(asym_root_open(NULL, &v->root, &err), 0);
    assert_int_equal(asym_topology_read(&v->root, NULL, v->machine, NULL, &err), 0);
    if (births)
        assert_int_equal(asym_births_open(&v->births, &err), 0);
    const struct asym_procfs_config config = {
        .root = &v->root, .machine = v->machine, .births = v->births, .pids = pids, .n_pids = 1};
    assert_int_equal(asym_procfs_new(&config, &v->source, &err), 0);
    assert_int_equal(v->source->next(v->source, &v->s), 1);
}

static void close_view(struct view *v)
{
    v->source->close(v->source);
    asym_births_close(v->births);
    asym_root_done(&v->root);
    free(v->machine);
}

static double look(struct view *v)
{
    double count = 0;
    assert_int_equal(v->source->next(v->source, &v->s), 1);
    for (size_t i = 0; i < v->s.n_apps; i++)
        count += v->s.apps[i].runnable_mean;
    return count;
}

/* Five looks of 100 ms, weighted by how long each really was. */
static double mean_over_half_a_second(struct view *v)
{
    double sum = 0, time = 0;
    for (int i = 0; i < 5; i++) {
        asym_live_sleep(0.1);
        double count = look(v);
        sum += count * (double)v->s.interval;
        time += (double)v->s.interval;
    }
    return sum / time;
}

static void check_spinning(int threads, bool births)
{
    char text[16];
    struct view v;
    snprintf(text, sizeof text, "%d", threads);
    const char *const argv[] = {"tests/load-spin", text, "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    asym_live_sleep(0.3);
    open_view(&v, load, births);
    asym_live_sleep(0.2);
    look(&v);
    double mean = mean_over_half_a_second(&v);
    print_message("%2d spinning threads read %.3f%s\n", threads, mean, births ? "" : " (without events)");
    assert_true(mean > threads - 0.1 && mean < threads + 0.1);
    close_view(&v);
    asym_live_end(load, SIGKILL);
}

static void k_spinning_threads_read_k(void **state)
{
    (void)state;
    for (int k = 1; k <= 16; k *= 2)
        check_spinning(k, k % 4 != 0);
}

/* 200 threads at 0.3 ms in about 60: the share must not be rounded up to threads. */
static void mostly_sleeping_threads_read_their_share(void **state)
{
    (void)state;
    struct view v;
    const char *const argv[] = {"tests/load-pulse", "20", "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    asym_live_sleep(0.3);
    open_view(&v, load, true);
    asym_live_sleep(0.2);
    look(&v);
    double mean = mean_over_half_a_second(&v);
    print_message("20 threads at half a percent read %.3f\n", mean);
    /* Waiting for a busy CPU counts, as it should; twenty threads at work would read twenty. */
    assert_true(mean > 0.02 && mean < 19);
    close_view(&v);
    asym_live_end(load, SIGKILL);
}

static const struct asym_task *find(const struct view *v, int32_t tid)
{
    for (size_t i = 0; i < v->s.n_tasks; i++)
        if (v->s.tasks[i].id.tid == tid)
            return &v->s.tasks[i];
    return NULL;
}

static void idle_newborns_are_listed_once(void **state)
{
    (void)state;
    for (int births = 0; births < 2; births++) {
        struct view v;
        open_view(&v, getpid(), births);
        look(&v);
        pid_t child = fork();
        if (child == 0)
            pause();
        look(&v);
        const struct asym_task *t = find(&v, child);
        assert_non_null(t);
        assert_true(t->flags & ASYM_TASK_NEWBORN);
        assert_non_null(t->mask);
        asym_live_sleep(0.05);
        look(&v);
        look(&v);
        assert_null(find(&v, child));
        asym_live_end(child, SIGKILL);
        close_view(&v);
    }
}

/* Of a thread that works, so that it is listed. */
static const struct asym_task *look_at(struct view *v, pid_t pid)
{
    for (double end = asym_live_now() + 10; asym_live_now() < end;) {
        asym_live_sleep(0.02);
        look(v);
        const struct asym_task *t = find(v, pid);
        if (t)
            return t;
    }
    return NULL;
}

/* In how many looks more its cpuset has to be read anew. */
static unsigned doubts_about(const struct view *v, pid_t pid)
{
    return asym_pid_table_find(&asym_procfs_of(v->source)->by_pid, pid)->doubt;
}

/* It is believed only as far as the kernel says so. */
static void what_was_done_is_known_and_what_was_not_is_not(void **state)
{
    (void)state;
    struct view v;
    const char *const argv[] = {"tests/load-spin", "1", "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    open_view(&v, load, true);
    const struct asym_task *t = look_at(&v, load);
    assert_non_null(t);
    const struct asym_mask all = *t->mask;
    struct asym_action action = {.kind = ASYM_ACTION_STEER, .id = t->id};
    const struct asym_outcome done = {.verdict = ASYM_VERDICT_DONE}, retry = {.verdict = ASYM_VERDICT_RETRY};
    asym_mask_set(&action.mask, (unsigned)asym_mask_next(&all, 0));
    /* So, and said: there is nothing to be found out about it. */
    assert_int_equal(asym_thread_set_mask(load, &action.mask, false), 0);
    asym_procfs_done(v.source, &action, &done, 1);
    t = look_at(&v, load);
    assert_true(asym_mask_equal(t->mask, &action.mask));
    assert_int_equal(doubts_about(&v, load), 0);
    /* So, and not said: then it is somebody else's doing. */
    assert_int_equal(asym_thread_set_mask(load, &all, false), 0);
    asym_procfs_done(v.source, &action, &retry, 1);
    t = look_at(&v, load);
    assert_true(asym_mask_equal(t->mask, &all));
    assert_int_not_equal(doubts_about(&v, load), 0);
    /* Said, and not so. */
    asym_procfs_done(v.source, &action, &done, 1);
    t = look_at(&v, load);
    assert_true(asym_mask_equal(t->mask, &all));
    assert_int_not_equal(doubts_about(&v, load), 0);
    /* Of one that has gone nothing is known. */
    asym_live_end(load, SIGKILL);
    asym_procfs_done(v.source, &action, &done, 1);
    action.id.tgid = action.id.tid = 1;
    asym_procfs_done(v.source, &action, &done, 1);
    look(&v);
    close_view(&v);
}

/* Which does not read where threads are. */
static void where_one_was_put_is_known_to_a_look_in_a_hurry(void **state)
{
    (void)state;
    struct view v;
    struct asym_snapshot s;
    const char *const argv[] = {"tests/load-spin", "1", "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    open_view(&v, load, true);
    const struct asym_task *t = look_at(&v, load);
    assert_non_null(t);
    struct asym_action action = {.kind = ASYM_ACTION_STEER, .id = t->id};
    const struct asym_outcome done = {.verdict = ASYM_VERDICT_DONE};
    struct asym_mask others = *t->mask;
    asym_mask_clear(&others, (unsigned)t->cpu);
    const int other = asym_mask_next(&others, 0);
    assert_true(other >= 0);
    asym_mask_set(&action.mask, (unsigned)other);
    assert_int_equal(asym_thread_set_mask(load, &action.mask, false), 0);
    asym_procfs_done(v.source, &action, &done, 1);
    assert_int_equal(asym_procfs_again(v.source, &s), 0);
    for (size_t i = 0; i < s.n_tasks; i++)
        assert_true(s.tasks[i].id.tid != load || s.tasks[i].cpu == other);
    asym_live_end(load, SIGKILL);
    close_view(&v);
}

static int do_first(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                    struct asym_outcome *ret_outcomes)
{
    (void)actuator;
    assert_int_equal(n, 1);
    assert_int_equal(asym_thread_set_mask(actions[0].id.tid, &actions[0].mask, false), 0);
    ret_outcomes[0] = (struct asym_outcome){.verdict = ASYM_VERDICT_DONE};
    return 0;
}

/* Every turn of the service goes through the cycle. */
static void the_cycle_tells_the_source_what_was_done(void **state)
{
    (void)state;
    struct view v;
    struct asym_engine *engine;
    struct asym_actuator actuator = {.apply = do_first};
    const struct asym_engine_config config = {.policy = asym_policy_find("none")};
    const char *const argv[] = {"tests/load-spin", "1", "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    open_view(&v, load, true);
    const struct asym_task *t = look_at(&v, load);
    assert_non_null(t);
    const struct asym_mask all = *t->mask;
    struct asym_action action = {.kind = ASYM_ACTION_STEER, .id = t->id};
    asym_mask_set(&action.mask, (unsigned)asym_mask_next(&all, 0));
    assert_int_equal(asym_engine_new(&config, &engine), 0);
    for (int told = 1; told >= 0; told--) {
        struct asym_cycle cycle = {.source = v.source,
                                   .procfs = told ? v.source : NULL,
                                   .actuator = &actuator,
                                   .engine = engine,
                                   .actions = &action,
                                   .n_actions = 1};
        assert_int_equal(asym_cycle_enforce(&cycle), 0);
        t = look_at(&v, load);
        assert_true(asym_mask_equal(t->mask, &action.mask));
        /* Who is not told takes it for news. */
        assert_int_equal(doubts_about(&v, load) == 0, told);
        asym_cycle_done(&cycle);
        action.mask = all;
    }
    asym_engine_free(engine);
    asym_live_end(load, SIGKILL);
    close_view(&v);
}

static void a_fork_is_known_of_its_parent(void **state)
{
    (void)state;
    for (int births = 0; births < 2; births++) {
        struct view v;
        open_view(&v, getpid(), births);
        look(&v);
        pid_t child = fork();
        if (child == 0)
            pause();
        look(&v);
        bool known = false;
        for (double end = asym_live_now() + 0.02; asym_live_now() < end;)
            ;
        look(&v);
        for (size_t i = 0; i < v.s.n_procs; i++)
            known |= v.s.procs[i].id.tgid == getpid() && v.s.procs[i].last_fork != 0;
        assert_true(known);
        asym_live_end(child, SIGKILL);
        close_view(&v);
    }
}

static void hostile_names_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {"a) R 1 1", ")\n)", "\xff\xfe\x80", "((((", "x) Z 0 (y"};
    for (size_t i = 0; i < ASYM_LENGTH(names); i++) {
        struct view v;
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_NAME, names[i]);
            for (;;)
                ;
        }
        asym_live_sleep(0.05);
        open_view(&v, child, true);
        asym_live_sleep(0.1);
        look(&v);
        const struct asym_task *t = find(&v, child);
        assert_non_null(t);
        assert_string_equal(t->comm, names[i]);
        assert_int_equal(t->state, 'R');
        asym_live_end(child, SIGKILL);
        close_view(&v);
    }
}

static void want_of_descriptors_costs_time_not_threads(void **state)
{
    (void)state;
    struct rlimit old, few;
    struct view v;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 80;
    const char *const argv[] = {"tests/load-pulse", "200", "60", NULL};
    pid_t load = asym_live_start(argv, -1);
    asym_live_sleep(0.3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    open_view(&v, load, true);
    asym_live_sleep(0.2);
    look(&v);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(v.s.sight.n_threads == 200);
    /* At the very most all the descriptors there are; how many less depends on what whoever started us had open. */
    assert_true(v.s.sight.n_unkept >= 200 - few.rlim_cur);
    assert_true(v.s.n_tasks >= 190);
    close_view(&v);
    asym_live_end(load, SIGKILL);
}

static void processes_that_die_between_two_looks_are_forgotten(void **state)
{
    (void)state;
    for (int births = 0; births < 2; births++) {
        struct view v;
        open_view(&v, getpid(), births);
        for (int round = 0; round < 10; round++) {
            pid_t children[20];
            for (size_t i = 0; i < ASYM_LENGTH(children); i++) {
                children[i] = fork();
                if (children[i] == 0)
                    _exit(0);
            }
            look(&v);
            for (size_t i = 0; i < ASYM_LENGTH(children); i++)
                waitpid(children[i], NULL, 0);
            look(&v);
        }
        look(&v);
        assert_int_equal(v.s.sight.n_threads, 1);
        close_view(&v);
    }
}

static void a_process_that_does_not_exist_is_said(void **state)
{
    (void)state;
    struct asym_error err = {""};
    struct asym_root root;
    struct asym_source *source;
    static struct asym_machine machine;
    const int32_t none[] = {0x3ffffff};
    assert_int_equal(asym_root_open(NULL, &root, &err), 0);
    const struct asym_procfs_config config = {.root = &root, .machine = &machine, .pids = none, .n_pids = 1};
    assert_int_equal(asym_procfs_new(&config, &source, &err), -ESRCH);
    assert_non_null(strstr(err.text, "no such process"));
    asym_root_done(&root);
}

/* What was listed may be asked for once more when it is there no longer. */
static void who_has_ended_since_the_look_is_told_as_ended(void **state)
{
    (void)state;
    struct view v;
    struct asym_snapshot again;
    const char *const argv[] = {"tests/load-spin", "1", "60", NULL};
    const pid_t pid = asym_live_start(argv, -1);
    open_view(&v, pid, false);
    look(&v);
    assert_int_equal(asym_procfs_again(v.source, &again), 0);
    assert_int_equal(again.n_tasks, 1);
    assert_int_equal(again.tasks[0].flags & ASYM_TASK_ENDED, 0);
    asym_live_end(pid, SIGKILL);
    assert_int_equal(asym_procfs_again(v.source, &again), 0);
    assert_int_equal(again.n_tasks, 1);
    assert_int_equal(again.tasks[0].flags & ASYM_TASK_ENDED, ASYM_TASK_ENDED);
    close_view(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(k_spinning_threads_read_k),
        cmocka_unit_test(mostly_sleeping_threads_read_their_share),
        cmocka_unit_test(idle_newborns_are_listed_once),
        cmocka_unit_test(a_fork_is_known_of_its_parent),
        cmocka_unit_test(what_was_done_is_known_and_what_was_not_is_not),
        cmocka_unit_test(where_one_was_put_is_known_to_a_look_in_a_hurry),
        cmocka_unit_test(the_cycle_tells_the_source_what_was_done),
        cmocka_unit_test(hostile_names_are_read),
        cmocka_unit_test(want_of_descriptors_costs_time_not_threads),
        cmocka_unit_test(processes_that_die_between_two_looks_are_forgotten),
        cmocka_unit_test(who_has_ended_since_the_look_is_told_as_ended),
        cmocka_unit_test(a_process_that_does_not_exist_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
