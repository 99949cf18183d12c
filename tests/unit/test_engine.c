/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who is steered, whose mask is whose, and what is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/mask.h"
#include "support/world.h"

#define TICK (100 * ASYM_MSEC)

/* One process with one thread, steered to the fast CPUs 4-7. */
static struct world_thread *steered(struct world *w)
{
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    assert_int_equal(w->n, 1);
    world_assert_mask(&t->mask, "4-7");
    return t;
}

static void assert_released(struct world *w, struct world_thread *t, enum asym_reason reason)
{
    const struct asym_action *a = world_action(w, t->task.id.tid);
    assert_non_null(a);
    assert_int_equal(a->kind, ASYM_ACTION_RELEASE);
    assert_int_equal(a->reason, reason);
    assert_true(a->whole);
    world_assert_mask(&a->mask, "0-7");
    world_apply(w);
    world_assert_mask(&t->mask, "0-7");
}

static void a_steered_thread_gets_mask_and_target(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->task.cpu = 1;
    world_step(w, TICK);
    const struct asym_action *a = world_action(w, 100);
    assert_int_equal(a->kind, ASYM_ACTION_STEER);
    world_assert_mask(&a->expect, "0-7");
    world_assert_mask(&a->mask, "4-7");
    const struct asym_plan_task *p = world_planned(w, 100);
    assert_int_equal(p->target, 5);
    assert_true(p->moves);
    assert_int_equal(w->plan->n_moves, 1);
    assert_int_equal(p->reason, ASYM_WHY_MP);
}

static void an_unchanged_snapshot_gives_no_second_action(void **state)
{
    struct world *w = *state;
    steered(w);
    for (int i = 0; i < 5; i++) {
        world_run(w, TICK);
        assert_int_equal(w->n, 0);
        assert_int_equal(world_planned(w, 100)->target, 5);
    }
}

static void a_retry_is_asked_again_and_steers_nothing(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    for (int i = 0; i < 3; i++) {
        world_step(w, TICK);
        assert_int_equal(w->n, 1);
        world_answer(w, ASYM_VERDICT_RETRY, -ECANCELED);
    }
    /* nothing was set, so nothing is to be given back */
    t->listed = false;
    world_step(w, 20 * ASYM_SEC);
    assert_int_equal(w->n, 0);
}

static void a_thread_that_is_gone_is_forgotten(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    world_order(w, 100, 1, false);
    world_step(w, TICK);
    assert_int_equal(w->n, 1);
    world_answer(w, ASYM_VERDICT_GONE, -ESRCH);
    t->listed = false;
    world_step(w, 20 * ASYM_SEC);
    assert_int_equal(w->n, 0);
}

static void hands_off_is_for_good(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    world_step(w, TICK);
    world_answer(w, ASYM_VERDICT_HANDS_OFF, -EPERM);
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_DENIED);
    assert_int_equal((int)world_planned(w, 100)->figure[0], EPERM);
    /* even when it sleeps for a day in between */
    t->listed = false;
    for (int i = 0; i < 3; i++)
        world_step(w, 24 * 3600 * ASYM_SEC);
    t->listed = true;
    world_step(w, TICK);
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_DENIED);
}

static void busy_from_the_actuator_means_foreign(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    world_step(w, TICK);
    world_answer(w, ASYM_VERDICT_HANDS_OFF, -EBUSY);
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_FOREIGN);
}

/* A look in a hurry lists what the last one saw: the mask of who has ended since may be the one before. */
static void a_thread_that_has_ended_is_not_foreign(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->mask = world_cpus("0-7");
    t->task.flags = ASYM_TASK_ENDED;
    for (int i = 0; i < 3; i++) {
        world_step(w, TICK);
        assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_IDLE);
    }
}

/* Nor after as many looks as it takes otherwise, where those follow each other at once. */
static void looks_in_a_hurry_do_not_make_a_mask_foreign(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->mask = world_cpus("0-3");
    for (int i = 0; i < 10; i++) {
        world_step(w, ASYM_MSEC);
        assert_int_not_equal(world_planned(w, 100)->reason, ASYM_WHY_FOREIGN);
    }
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_FOREIGN);
}

static void a_new_thread_with_an_old_tid_is_another_thread(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    world_step(w, TICK);
    world_answer(w, ASYM_VERDICT_HANDS_OFF, -EPERM);
    t->listed = false;
    world_step(w, 3600 * ASYM_SEC);
    t->listed = true;
    t->task.id.start++;
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->target, 5);
}

static void a_reused_tid_does_not_inherit_that_it_was_steered(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->task.id.start++;
    t->mask = w->machine.online;
    world_order(w, 100, -1, false);
    world_step(w, TICK);
    assert_int_equal(w->n, 0); /* nor is it foreign, nor released */
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_POLICY_NONE);
}

/* Looks that find a mask which nothing explains, before it is somebody else's. */
#define DOUBTS 2

static void a_mask_set_by_somebody_else_is_never_fought(void **state)
{
    (void)state;
    static const char *const masks[] = {"0-3", "4", "0-7"};
    for (size_t i = 0; i < ASYM_LENGTH(masks); i++) {
        struct world w;
        world_init(&w);
        struct world_thread *t = steered(&w);
        t->mask = world_cpus(masks[i]);
        for (int k = 0; k < DOUBTS; k++) {
            world_step(&w, TICK); /* it may be a cpuset that is on its way */
            assert_int_equal(w.n, 0);
            assert_int_equal(world_planned(&w, 100)->reason, ASYM_WHY_NEXT_SWAP);
        }
        for (int k = 0; k < 3; k++) {
            world_step(&w, TICK);
            /* The actuator is told, until it has forgotten the thread. */
            assert_int_equal(w.n, k < 2);
            if (k < 2) {
                assert_int_equal(w.actions[0].kind, ASYM_ACTION_FORGET);
                world_assert_mask(&t->mask, masks[i]);
                world_answer(&w, k ? ASYM_VERDICT_DONE : ASYM_VERDICT_RETRY, k ? 0 : -EAGAIN);
            }
            assert_int_equal(world_planned(&w, 100)->reason, ASYM_WHY_FOREIGN);
        }
        t->mask = world_cpus("0-7"); /* not even when it has put it back */
        world_step(&w, TICK);
        assert_int_equal(w.n, 0);
        t->listed = false;
        world_step(&w, 20 * ASYM_SEC);
        assert_int_equal(w.n, 0);
        world_done(&w);
    }
}

static void a_release_by_the_guard_is_not_foreign(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->procs[0].last_fork = w->now + TICK / 2;
    t->mask = world_cpus("0-7");
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_FORKED);
    world_run(w, 10 * ASYM_SEC);
    assert_int_equal(w->n, 1);
    world_assert_mask(&t->mask, "4-7");
}

/* However short the holdoff is: with one that is over before the next look, the fork itself explains the mask. */
static void a_release_by_the_guard_is_not_foreign_without_a_holdoff(void **state)
{
    (void)state;
    static const asym_usec holdoffs[] = {0, 10 * ASYM_MSEC};
    for (size_t i = 0; i < ASYM_LENGTH(holdoffs); i++) {
        struct world w;
        world_init(&w);
        w.config.enforce.fork_holdoff = holdoffs[i];
        assert_int_equal(asym_engine_configure(w.engine, &w.config), 0);
        struct world_thread *t = steered(&w);
        world_run(&w, ASYM_SEC);
        w.procs[0].last_fork = w.now + TICK / 2;
        t->mask = world_cpus("0-7");
        world_step(&w, TICK);
        world_run(&w, ASYM_SEC);
        assert_int_not_equal(world_planned(&w, 100)->reason, ASYM_WHY_FOREIGN);
        world_assert_mask(&t->mask, "4-7"); /* and is steered again */
        /* That fork explains no more than once. */
        t->mask = world_cpus("0-7");
        for (int k = 0; k <= DOUBTS; k++)
            world_step(&w, TICK);
        assert_int_equal(world_planned(&w, 100)->reason, ASYM_WHY_FOREIGN);
        world_done(&w);
    }
}

static void fork_holdoff_releases_at_once_and_lasts(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->procs[0].last_fork = w->now + TICK / 2;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_FORKED);
    world_run(w, 9900 * ASYM_MSEC);
    assert_int_equal(w->n, 0);
    assert_true(world_planned(w, 100)->figure[0] > 0.04 && world_planned(w, 100)->figure[0] < 0.06);
    world_run(w, 50 * ASYM_MSEC);
    assert_int_equal(w->n, 1);
}

/* The guard has given it its mask back, as at a fork. What begins is new, and no longer held off than what was just born. */
static void an_exec_releases_for_as_long_as_a_new_process_settles(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->procs[0].last_exec = w->now + TICK / 2;
    t->mask = world_cpus("0-7");
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_SETTLING);
    world_run(w, w->config.enforce.settle);
    assert_int_not_equal(world_planned(w, 100)->reason, ASYM_WHY_FOREIGN);
    world_assert_mask(&t->mask, "4-7");
}

/* Without a guard. */
static void an_exec_is_released_at_once(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->procs[0].last_exec = w->now + TICK / 2;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_SETTLING);
}

static void fork_holdoff_releases_sleeping_threads_too(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->listed = false;
    w->procs[0].last_fork = w->now;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_FORKED);
}

static void a_fork_stamped_after_the_snapshot_counts(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->procs[0].last_fork = w->now + TICK + 10;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_FORKED);
}

static void a_rule_that_comes_to_ignore_releases_at_once(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->procs[0].rule = ASYM_RULE_IGNORE;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_RULE_IGNORE);
}

static void who_counts_late_is_released_unless_a_rule_names_it(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    /* It has loaded the runtime in its course. */
    w->procs[0].flags = ASYM_PROC_COUNTS_LATE;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_COUNTS_LATE);
    w->procs[0].rule_name = "rule one";
    world_step(w, TICK);
    assert_int_equal(w->n, 1);
    assert_int_equal(w->actions[0].kind, ASYM_ACTION_STEER);
}

/* As LLVM's OpenMP does: a new thread sets the mask that its process had at first, as soon as it gets a CPU. */
static void who_sets_its_mask_as_its_first_deed_is_not_lost(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = world_thread(w, 0, 101, 6);
    t->task.flags = ASYM_TASK_NEWBORN | ASYM_TASK_HARDLY_RAN;
    world_run(w, TICK);
    world_assert_mask(&t->mask, "0-7");
    assert_int_equal(world_planned(w, 101)->reason, ASYM_WHY_HARDLY_RAN);
    t->task.flags = ASYM_TASK_HARDLY_RAN;
    world_run(w, TICK);
    t->mask = world_cpus("0-7");
    t->task.flags = 0;
    for (int i = 0; i < 5; i++)
        world_run(w, TICK);
    world_assert_mask(&t->mask, "4-7");
    assert_int_equal(world_planned(w, 101)->target, 6);
}

static void no_rule_steers_who_has_hardly_run(void **state)
{
    static const enum asym_rule_action actions[] = {ASYM_RULE_STEER, ASYM_RULE_FAST, ASYM_RULE_SLOW};
    (void)state;
    for (size_t i = 0; i < ASYM_LENGTH(actions); i++) {
        struct world w;
        world_init(&w);
        struct world_thread *t = world_thread(&w, world_proc(&w, 100), 100, 5);
        w.procs[0].rule = actions[i];
        w.procs[0].rule_name = "rule one";
        t->task.flags = ASYM_TASK_HARDLY_RAN;
        world_step(&w, TICK);
        assert_int_equal(w.n, 0);
        assert_int_equal(world_planned(&w, 100)->reason, ASYM_WHY_HARDLY_RAN);
        world_done(&w);
    }
}

/* Its counters may be another's for a look, as where a thread calls exec. */
static void who_is_steered_stays_so_however_little_it_is_said_to_have_run(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->task.flags = ASYM_TASK_HARDLY_RAN;
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->target, 5);
}

static void a_policy_that_no_longer_steers_it_releases_at_once(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    world_order(w, 100, -1, false);
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_POLICY_NONE);
}

static void a_thread_that_turned_realtime_is_released(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->task.sched = SCHED_FIFO;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_REALTIME);
}

static void a_sleeping_thread_is_released_after_release(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->listed = false;
    world_run(w, 4999 * ASYM_MSEC);
    assert_int_equal(w->n, 0);
    world_step(w, 1 * ASYM_MSEC);
    assert_released(w, t, ASYM_WHY_IDLE);
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
}

static void a_barely_active_application_is_released_after_release(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->task.runnable = t->task.running = 0.1;
    for (int i = 0; i < 50; i++) {
        world_run(w, TICK);
        assert_int_equal(w->n, 0);
        assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_IDLE);
        world_assert_mask(&world_planned(w, 100)->mask, "4-7");
    }
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_IDLE);
}

static void a_release_not_done_is_asked_again(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->listed = false;
    world_step(w, 5 * ASYM_SEC);
    assert_int_equal(w->n, 1);
    world_answer(w, ASYM_VERDICT_RETRY, -EAGAIN);
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_IDLE);
}

static void a_released_thread_can_be_steered_again(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->listed = false;
    world_run(w, 5 * ASYM_SEC);
    t->listed = true;
    world_run(w, TICK);
    world_assert_mask(&t->mask, "4-7");
}

static void a_process_is_not_steered_before_it_has_settled(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    w->procs[0].born = w->now;
    world_step(w, 499 * ASYM_MSEC);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_SETTLING);
    assert_float_equal(world_planned(w, 100)->figure[0], 0.499, 1e-9);
    assert_float_equal(world_planned(w, 100)->figure[1], 0.5, 1e-9);
    assert_int_equal(w->plan->apps[0].excluded, ASYM_WHY_SETTLING);
    world_step(w, 1 * ASYM_MSEC);
    assert_int_equal(w->n, 1);
}

static void idle_applications_are_not_steered(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->task.runnable = 0.4;
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_IDLE);
    assert_int_equal(w->plan->apps[0].excluded, ASYM_WHY_IDLE);
    assert_int_equal(w->orders.calls, 0);
}

static void the_first_snapshot_steers_nothing(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->task.runnable = t->task.running = 0;
    world_step(w, 0);
    assert_int_equal(w->n, 0);
    t->task.runnable = t->task.running = 1;
    world_step(w, 10 * ASYM_MSEC); /* and uses up no swap period */
    assert_int_equal(w->n, 1);
}

static void facts_that_exclude_are_told(void **state)
{
    (void)state;
    static const struct {
        uint32_t proc_flags, task_flags;
        enum asym_rule_action rule;
        uint8_t sched;
        const char *mask;
        enum asym_reason reason;
    } rows[] = {
        {ASYM_PROC_KERNEL, 0, 0, 0, "0-7", ASYM_WHY_KERNEL},
        {ASYM_PROC_SELF, 0, 0, 0, "0-7", ASYM_WHY_SELF},
        {ASYM_PROC_FOREIGN_NS, 0, 0, 0, "0-7", ASYM_WHY_FOREIGN_NS},
        {ASYM_PROC_OUTSIDE, 0, 0, 0, "0-7", ASYM_WHY_OUTSIDE},
        {ASYM_PROC_COUNTS_LATE, 0, 0, 0, "0-7", ASYM_WHY_COUNTS_LATE},
        {0, 0, ASYM_RULE_IGNORE, 0, "0-7", ASYM_WHY_RULE_IGNORE},
        {0, 0, 0, SCHED_FIFO, "0-7", ASYM_WHY_REALTIME},
        {0, 0, 0, SCHED_RR, "0-7", ASYM_WHY_REALTIME},
        {0, 0, 0, SCHED_DEADLINE, "0-7", ASYM_WHY_REALTIME},
        {0, 0, 0, SCHED_BATCH, "0-7", ASYM_WHY_MP},
        {0, 0, 0, SCHED_IDLE, "0-7", ASYM_WHY_MP},
        {0, ASYM_TASK_NO_SETAFFINITY, 0, 0, "0-7", ASYM_WHY_NO_SETAFFINITY},
        {0, ASYM_TASK_HARDLY_RAN, 0, 0, "0-7", ASYM_WHY_HARDLY_RAN},
        {0, ASYM_TASK_HARDLY_RAN, 0, 0, "3", ASYM_WHY_OWN_MASK},
        {ASYM_PROC_COUNTS_LATE, ASYM_TASK_HARDLY_RAN, 0, 0, "0-7", ASYM_WHY_COUNTS_LATE},
        {0, 0, 0, 0, "3", ASYM_WHY_OWN_MASK},
        {0, 0, 0, 0, "0-6", ASYM_WHY_OWN_MASK},
        {ASYM_PROC_KERNEL, ASYM_TASK_NO_SETAFFINITY, 0, SCHED_FIFO, "3", ASYM_WHY_KERNEL},
        {0, 0, 0, 0, "0-7", ASYM_WHY_MP},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct world w;
        world_init(&w);
        struct world_thread *t = world_thread(&w, world_proc(&w, 100), 100, 5);
        w.procs[0].flags = rows[i].proc_flags;
        w.procs[0].rule = rows[i].rule;
        t->task.flags = rows[i].task_flags;
        t->task.sched = rows[i].sched;
        t->mask = world_cpus(rows[i].mask);
        world_step(&w, TICK);
        assert_int_equal(world_planned(&w, 100)->reason, rows[i].reason);
        assert_int_equal(w.n, rows[i].reason == ASYM_WHY_MP);
        assert_int_equal(w.plan->apps[0].excluded, rows[i].reason == ASYM_WHY_MP ? ASYM_WHY_NONE : rows[i].reason);
        world_done(&w);
    }
}

static void offline_cpus_do_not_make_a_mask_narrow(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    w->machine.online = w->machine.usable = world_cpus("0-5");
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    t->mask = world_cpus("0-5");
    t->cpuset = world_cpus("0-7");
    world_step(w, TICK);
    assert_int_equal(w->n, 1);
    world_assert_mask(&w->actions[0].mask, "4-5");
    world_apply(w);
    /* it had not asked for 6-7, so it does not get them */
    world_order(w, 100, -1, false);
    world_step(w, TICK);
    assert_int_equal(w->actions[0].kind, ASYM_ACTION_RELEASE);
    assert_false(w->actions[0].whole);
    world_assert_mask(&w->actions[0].mask, "0-5");
}

static void a_cpuset_bounds_the_plan(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->mask = t->cpuset = world_cpus("2-5");
    world_step(w, TICK);
    world_assert_mask(w->orders.threads[0].may, "2-5");
    world_assert_mask(&w->actions[0].mask, "4-5");
}

static void a_cpuset_without_usable_cpus_is_not_planned_for(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->mask = t->cpuset = world_cpus("100-101");
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_NOTHING_FREE);
}

static void a_cpuset_change_that_resets_masks_is_planned_anew(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->mask = t->cpuset = world_cpus("0-5"); /* kernels before 6.2 */
    world_run(w, TICK);
    assert_int_equal(w->n, 1);
    world_assert_mask(&t->mask, "4-5");
    world_order(w, 100, -1, false);
    world_run(w, TICK);
    world_assert_mask(&t->mask, "0-5");
}

static void a_cpuset_change_that_cuts_a_mask_is_not_foreign(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->cpuset = world_cpus("0-5");
    t->mask = world_cpus("4-5"); /* since 6.2 */
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->target, 5);
    t->cpuset = world_cpus("0-7"); /* it grows back, and so does what the thread may have */
    t->mask = world_cpus("4-7");
    world_step(w, TICK);
    world_assert_mask(w->orders.threads[0].may, "0-7");
    assert_int_equal(world_planned(w, 100)->target, 5);
    w->procs[0].rule = ASYM_RULE_IGNORE;
    world_step(w, TICK);
    assert_released(w, t, ASYM_WHY_RULE_IGNORE);
}

static void a_boost_does_not_outlast_a_mask_that_somebody_else_has_set(void **state)
{
    struct world *w = *state;
    w->orders.of[100].delta = -5;
    struct world_thread *t = steered(w);
    assert_int_equal(t->task.nice, -5);
    t->mask = world_cpus("0-3");
    for (int k = 0; k <= DOUBTS; k++)
        world_run(w, TICK);
    world_assert_mask(&t->mask, "0-3");
    assert_int_equal(t->task.nice, 0);
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
}

/* Between the two files that tell of it: the cpuset first seen with the mask as it was. */
static void a_cpuset_seen_before_the_mask_follows_is_not_foreign(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->cpuset = world_cpus("0-3");
    world_order(w, 100, 2, false);
    world_step(w, TICK);
    t->mask = world_cpus("0-3");
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->target, 2);
}

/* The other way round: within one look the cpuset was read for another thread before it changed. */
static void a_mask_seen_before_its_cpuset_follows_is_not_foreign(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->mask = world_cpus("0-3");
    world_order(w, 100, 2, false);
    world_step(w, TICK);
    assert_int_equal(w->n, 0);
    t->cpuset = world_cpus("0-3");
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->target, 2);
}

/* Cpusets that change from look to look: none of the looks need have read what goes with the mask. */
static void a_doubt_begins_anew_when_the_cpuset_is_another_one(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->mask = world_cpus("3");
    t->cpuset = world_cpus("0-3");
    world_step(w, TICK);
    t->cpuset = world_cpus("0-5");
    for (int k = 0; k < DOUBTS; k++) {
        world_step(w, TICK);
        assert_int_not_equal(world_planned(w, 100)->reason, ASYM_WHY_FOREIGN);
    }
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_FOREIGN);
}

static void the_last_of_its_cpus_going_offline_is_not_foreign(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->machine.online = w->machine.usable = world_cpus("0-3");
    w->machine.generation++;
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    t->mask = world_cpus("0-7");
    world_order(w, 100, 2, false);
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->target, 2);
    /* but a mask that the kernel would not have made is */
    t->mask = world_cpus("1");
    for (int k = 0; k <= DOUBTS; k++)
        world_step(w, TICK);
    assert_int_equal(world_planned(w, 100)->reason, ASYM_WHY_FOREIGN);
}

static void rules_fast_and_slow_narrow_what_it_may_have(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    world_thread(w, world_proc(w, 200), 200, 1);
    struct world_thread *t = world_thread(w, world_proc(w, 300), 300, 1);
    w->procs[0].rule = w->procs[2].rule = ASYM_RULE_FAST;
    w->procs[1].rule = ASYM_RULE_SLOW;
    t->mask = t->cpuset = world_cpus("0-3"); /* no fast CPU in it: the rule cannot be followed */
    world_step(w, TICK);
    world_assert_mask(w->orders.threads[0].may, "4-7");
    world_assert_mask(w->orders.threads[1].may, "0-3");
    world_assert_mask(w->orders.threads[2].may, "0-3");
}

/* A steered process 100, and a thread that carries its mask. */
static struct world_thread *heir(struct world *w, unsigned proc, int32_t tid)
{
    struct world_thread *t = world_thread(w, proc, tid, 6);
    t->mask = world_cpus("4-7");
    t->task.flags = ASYM_TASK_NEWBORN;
    return t;
}

static void assert_repaired(struct world *w, struct world_thread *t)
{
    const struct asym_action *a = world_action(w, t->task.id.tid);
    assert_non_null(a);
    assert_int_equal(a->kind, ASYM_ACTION_REPAIR);
    assert_true(a->whole);
    world_assert_mask(&a->mask, "0-7");
    assert_int_equal(world_planned(w, t->task.id.tid)->target, -1);
    world_apply(w);
    world_assert_mask(&t->mask, "0-7");
    assert_int_equal(t->task.nice, 0);
}

static void a_new_thread_with_its_creators_mask_is_repaired(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = heir(w, 0, 101);
    world_step(w, 10 * ASYM_MSEC); /* between two swaps */
    assert_repaired(w, t);
    t->task.flags = 0;
    world_run(w, TICK);
    world_run(w, TICK);
    world_assert_mask(&t->mask, "4-7"); /* now steered in its own right */
    world_order(w, 101, -1, false);
    world_run(w, TICK);
    world_assert_mask(&t->mask, "0-7");
}

/* Giving back is not steering: it does not wait until the thread has run. */
static void a_new_thread_that_has_hardly_run_is_repaired_at_once(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = heir(w, 0, 101);
    t->task.flags |= ASYM_TASK_HARDLY_RAN;
    t->task.runnable = t->task.running = 0;
    t->task.state = 'S';
    world_step(w, 10 * ASYM_MSEC);
    assert_repaired(w, t);
    t->task.flags = ASYM_TASK_HARDLY_RAN;
    t->task.runnable = t->task.running = 1;
    world_run(w, TICK);
    world_assert_mask(&t->mask, "0-7");
    t->task.flags = 0;
    world_run(w, TICK);
    world_assert_mask(&t->mask, "4-7");
}

static void a_child_process_with_its_parents_mask_is_repaired(void **state)
{
    struct world *w = *state;
    steered(w)->task.nice = 0;
    unsigned p = world_proc(w, 200);
    w->procs[p].ppid = 100;
    w->procs[p].born = w->now + 5;
    struct world_thread *t = heir(w, p, 200);
    t->task.flags = 0; /* its age says it as well */
    world_step(w, TICK);
    assert_int_equal(world_planned(w, 200)->reason, ASYM_WHY_SETTLING);
    assert_repaired(w, t);
}

static void a_child_is_repaired_also_after_its_parent_was_released(void **state)
{
    struct world *w = *state;
    struct world_thread *parent = steered(w);
    w->procs[0].last_fork = w->now + 5;
    parent->mask = world_cpus("0-7");
    world_run(w, TICK);
    unsigned p = world_proc(w, 200);
    w->procs[p].ppid = 100;
    w->procs[p].born = w->now;
    struct world_thread *t = heir(w, p, 200);
    world_step(w, TICK);
    assert_repaired(w, t);
}

static void a_grandchild_is_repaired_whatever_the_order(void **state)
{
    struct world *w = *state;
    steered(w);
    unsigned grandchild = world_proc(w, 300), child = world_proc(w, 200);
    w->procs[grandchild].ppid = 200;
    w->procs[child].ppid = 100;
    struct world_thread *a = heir(w, grandchild, 300), *b = heir(w, child, 200);
    world_step(w, TICK);
    assert_int_equal(w->n, 2);
    assert_int_equal(world_action(w, 300)->kind, ASYM_ACTION_REPAIR);
    assert_repaired(w, b);
    world_assert_mask(&a->mask, "0-7");
}

static void an_heir_gets_its_nice_back_too(void **state)
{
    struct world *w = *state;
    w->orders.of[100].delta = -5;
    struct world_thread *creator = steered(w);
    assert_int_equal(creator->task.nice, -5);
    struct world_thread *t = heir(w, 0, 101);
    t->task.nice = -5;
    world_step(w, TICK);
    assert_repaired(w, t);
}

static void an_heir_that_has_raised_what_it_inherited_gets_its_nice_back_too(void **state)
{
    static const struct {
        int8_t own, boosted, then, back;
    } rows[] = {{10, 5, 6, 10}, {10, 5, 9, 10}, {10, 5, 10, 10}, {10, 5, 12, 12}, {0, -5, -3, -3}};
    (void)state;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct world w;
        world_init(&w);
        struct world_thread *creator = world_thread(&w, world_proc(&w, 100), 100, 5);
        creator->task.nice = rows[i].own;
        w.orders.of[100].delta = (int8_t)(rows[i].boosted - rows[i].own);
        world_run(&w, TICK);
        struct world_thread *t = heir(&w, 0, 101);
        t->task.nice = rows[i].then;
        world_run(&w, TICK);
        assert_int_equal(t->task.nice, rows[i].back);
        world_assert_mask(&t->mask, "0-7");
        world_done(&w);
    }
}

static void a_repair_not_done_is_asked_again(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = heir(w, 0, 101);
    world_step(w, TICK);
    world_answer(w, ASYM_VERDICT_RETRY, -EAGAIN);
    t->task.flags = 0;
    world_step(w, TICK);
    assert_repaired(w, t);
}

static void an_heir_that_was_repaired_meanwhile_is_left_alone(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = heir(w, 0, 101);
    world_step(w, 10 * ASYM_MSEC);
    world_answer(w, ASYM_VERDICT_RETRY, -EAGAIN);
    t->mask = world_cpus("0-7");
    world_step(w, 10 * ASYM_MSEC);
    assert_null(world_action(w, 101));
}

static void an_heir_that_pins_itself_is_left_alone_as_long_as_it_is_pinned(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = heir(w, 0, 101);
    world_step(w, TICK);
    world_answer(w, ASYM_VERDICT_RETRY, -EAGAIN);
    t->task.flags = 0;
    t->mask = world_cpus("5");
    for (int i = 0; i < 5; i++) {
        world_run(w, TICK);
        assert_int_equal(world_planned(w, 101)->reason, ASYM_WHY_OWN_MASK);
        world_assert_mask(&t->mask, "5");
    }
    t->mask = world_cpus("0-7");
    world_run(w, TICK);
    world_run(w, TICK);
    world_assert_mask(&t->mask, "4-7");
}

static void an_old_thread_with_the_same_mask_chose_it(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = heir(w, 0, 101);
    t->task.flags = 0;
    world_step(w, TICK);
    assert_null(world_action(w, 101));
    assert_int_equal(world_planned(w, 101)->reason, ASYM_WHY_OWN_MASK);
}

/* It has pinned itself, and its thread and its child inherit that: nothing of it was ever set for its namesake. */
static void a_successor_with_the_same_number_chose_its_mask(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    w->procs[0].id.start++;
    w->procs[0].born = w->now;
    t->task.id.start++;
    t->task.flags = ASYM_TASK_NEWBORN;
    heir(w, 0, 101);
    unsigned child = world_proc(w, 200);
    w->procs[child].ppid = 100;
    w->procs[child].born = w->now;
    heir(w, child, 200);
    world_step(w, TICK);
    for (size_t i = 0; i < w->n; i++)
        assert_int_not_equal(w->actions[i].kind, ASYM_ACTION_REPAIR);
    static const int32_t tids[] = {100, 101, 200};
    for (size_t i = 0; i < ASYM_LENGTH(tids); i++)
        world_assert_mask(&world_planned(w, tids[i])->mask, "4-7");
}

static void a_stranger_with_the_same_mask_chose_it(void **state)
{
    struct world *w = *state;
    steered(w);
    struct world_thread *t = heir(w, world_proc(w, 200), 200);
    t->task.flags = ASYM_TASK_NEWBORN;
    world_step(w, TICK);
    assert_null(world_action(w, 200));
    assert_int_equal(world_planned(w, 200)->reason, ASYM_WHY_OWN_MASK);
}

static void nice_is_own_plus_delta_within_bounds(void **state)
{
    (void)state;
    static const int8_t rows[][3] = {{0, -5, -5}, {-18, -5, -20}, {15, 10, 19},
                                     {3, 0, 3},   {-20, 127, 19}, {19, -128, -20}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct world w;
        world_init(&w);
        struct world_thread *t = world_thread(&w, world_proc(&w, 100), 100, 5);
        t->task.nice = rows[i][0];
        w.orders.of[100].delta = rows[i][1];
        world_run(&w, TICK);
        assert_int_equal(world_planned(&w, 100)->nice, rows[i][2]);
        assert_int_equal(t->task.nice, rows[i][2]);
        world_run(&w, TICK);
        assert_int_equal(w.n, 0);
        assert_int_equal(w.orders.threads[0].nice, rows[i][0]); /* a policy sees its own, not the boosted */
        w.procs[0].rule = ASYM_RULE_IGNORE;
        world_run(&w, TICK);
        assert_int_equal(t->task.nice, rows[i][0]);
        world_done(&w);
    }
}

static void a_nice_set_by_somebody_else_stays_but_the_mask_goes_on(void **state)
{
    struct world *w = *state;
    w->orders.of[100].delta = -5;
    struct world_thread *t = steered(w);
    t->task.nice = 7;
    world_order(w, 100, 1, false);
    world_run(w, TICK);
    assert_int_equal(t->task.nice, 7);
    world_assert_mask(&t->mask, "0-3");
    w->procs[0].rule = ASYM_RULE_IGNORE;
    world_run(w, TICK);
    assert_int_equal(t->task.nice, 7);
    world_assert_mask(&t->mask, "0-7");
}

/* Every thread may do so: the remainder of the boost goes back at once, and there is no other boost. */
static void a_boost_that_its_thread_raises_ends(void **state)
{
    (void)state;
    for (int8_t nice = -4; nice < 0; nice++) {
        struct world w;
        world_init(&w);
        w.orders.of[100].delta = -5;
        struct world_thread *t = steered(&w);
        t->task.nice = nice;
        world_run(&w, TICK);
        assert_int_equal(t->task.nice, 0);
        world_assert_mask(&t->mask, "4-7");
        t->task.nice = 3;
        world_run(&w, TICK);
        assert_int_equal(w.n, 0);
        w.procs[0].rule = ASYM_RULE_IGNORE;
        world_run(&w, TICK);
        assert_int_equal(t->task.nice, 3);
        world_done(&w);
    }
}

/* The daemon asks for this where the actuator could not give it back. */
static void a_nice_value_that_is_to_be_kept_is_not_planned_over(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.config.keep_nice = true;
    assert_int_equal(asym_engine_configure(w.engine, &w.config), 0);
    w.orders.of[100].delta = -5;
    struct world_thread *t = steered(&w);
    assert_int_equal(t->task.nice, 0);
    world_assert_mask(&t->mask, "4-7");
    world_run(&w, TICK);
    assert_int_equal(w.n, 0);
    world_done(&w);
}

static void a_nice_value_below_the_boost_stays(void **state)
{
    struct world *w = *state;
    w->orders.of[100].delta = -5;
    struct world_thread *t = steered(w);
    t->task.nice = -6;
    world_run(w, TICK);
    assert_int_equal(t->task.nice, -6);
    w->procs[0].rule = ASYM_RULE_IGNORE;
    world_run(w, TICK);
    assert_int_equal(t->task.nice, -6);
}

static void without_a_boost_a_new_nice_is_its_own(void **state)
{
    struct world *w = *state;
    struct world_thread *t = steered(w);
    t->task.nice = 7;
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
    w->orders.of[100].delta = -2;
    world_run(w, TICK);
    assert_int_equal(t->task.nice, 5);
    w->procs[0].rule = ASYM_RULE_IGNORE;
    world_run(w, TICK);
    assert_int_equal(t->task.nice, 7);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        T(a_steered_thread_gets_mask_and_target),
        T(an_unchanged_snapshot_gives_no_second_action),
        T(a_retry_is_asked_again_and_steers_nothing),
        T(a_thread_that_is_gone_is_forgotten),
        T(hands_off_is_for_good),
        T(busy_from_the_actuator_means_foreign),
        T(a_thread_that_has_ended_is_not_foreign),
        T(looks_in_a_hurry_do_not_make_a_mask_foreign),
        T(a_new_thread_with_an_old_tid_is_another_thread),
        T(a_reused_tid_does_not_inherit_that_it_was_steered),
        T(a_mask_set_by_somebody_else_is_never_fought),
        T(a_release_by_the_guard_is_not_foreign),
        T(a_release_by_the_guard_is_not_foreign_without_a_holdoff),
        T(fork_holdoff_releases_at_once_and_lasts),
        T(fork_holdoff_releases_sleeping_threads_too),
        T(an_exec_releases_for_as_long_as_a_new_process_settles),
        T(an_exec_is_released_at_once),
        T(a_fork_stamped_after_the_snapshot_counts),
        T(a_rule_that_comes_to_ignore_releases_at_once),
        T(who_counts_late_is_released_unless_a_rule_names_it),
        T(who_sets_its_mask_as_its_first_deed_is_not_lost),
        T(no_rule_steers_who_has_hardly_run),
        T(who_is_steered_stays_so_however_little_it_is_said_to_have_run),
        T(a_policy_that_no_longer_steers_it_releases_at_once),
        T(a_thread_that_turned_realtime_is_released),
        T(a_sleeping_thread_is_released_after_release),
        T(a_barely_active_application_is_released_after_release),
        T(a_release_not_done_is_asked_again),
        T(a_released_thread_can_be_steered_again),
        T(a_process_is_not_steered_before_it_has_settled),
        T(idle_applications_are_not_steered),
        T(the_first_snapshot_steers_nothing),
        T(facts_that_exclude_are_told),
        T(offline_cpus_do_not_make_a_mask_narrow),
        T(a_cpuset_bounds_the_plan),
        T(a_cpuset_without_usable_cpus_is_not_planned_for),
        T(a_cpuset_change_that_resets_masks_is_planned_anew),
        T(a_cpuset_change_that_cuts_a_mask_is_not_foreign),
        T(a_boost_does_not_outlast_a_mask_that_somebody_else_has_set),
        T(a_cpuset_seen_before_the_mask_follows_is_not_foreign),
        T(a_mask_seen_before_its_cpuset_follows_is_not_foreign),
        T(a_doubt_begins_anew_when_the_cpuset_is_another_one),
        T(the_last_of_its_cpus_going_offline_is_not_foreign),
        T(rules_fast_and_slow_narrow_what_it_may_have),
        T(a_new_thread_with_its_creators_mask_is_repaired),
        T(a_new_thread_that_has_hardly_run_is_repaired_at_once),
        T(a_child_process_with_its_parents_mask_is_repaired),
        T(a_child_is_repaired_also_after_its_parent_was_released),
        T(a_grandchild_is_repaired_whatever_the_order),
        T(an_heir_gets_its_nice_back_too),
        T(an_heir_that_has_raised_what_it_inherited_gets_its_nice_back_too),
        T(a_repair_not_done_is_asked_again),
        T(an_heir_that_was_repaired_meanwhile_is_left_alone),
        T(an_heir_that_pins_itself_is_left_alone_as_long_as_it_is_pinned),
        T(an_old_thread_with_the_same_mask_chose_it),
        T(a_successor_with_the_same_number_chose_its_mask),
        T(a_stranger_with_the_same_mask_chose_it),
        T(nice_is_own_plus_delta_within_bounds),
        T(a_nice_set_by_somebody_else_stays_but_the_mask_goes_on),
        T(a_boost_that_its_thread_raises_ends),
        T(a_nice_value_that_is_to_be_kept_is_not_planned_over),
        T(a_nice_value_below_the_boost_stays),
        T(without_a_boost_a_new_nice_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
