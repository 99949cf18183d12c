/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which threads the engine steers, whose mask is in force, and what it restores. */
#include <sched.h>

#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

/* One process with one thread, steered to the fast CPUs 4-7. */
static struct engine_fixture_thread *steered(struct engine_fixture *w)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run_asks(w, TICK, 1);
    engine_fixture_assert_mask(&t->mask, "4-7");
    return t;
}

TEST_ENGINE(a_steered_thread_gets_mask_and_target)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->task.cpu = 1;
    engine_fixture_step(w, TICK);
    const struct asym_action *a = engine_fixture_action(w, 100);
    assert_int_equal(a->kind, ASYM_ACTION_STEER);
    engine_fixture_assert_mask(&a->expect, "0-7");
    engine_fixture_assert_mask(&a->mask, "4-7");
    const struct asym_plan_task *p = engine_fixture_planned(w, 100);
    assert_int_equal(p->target, 5);
    assert_true(p->moves);
    assert_int_equal(w->plan->n_moves, 1);
    assert_ptr_equal(p->reason, &engine_fixture_placed);
}

TEST_ENGINE(the_actuator_says_what_was_changed)
{
    static const struct {
        int error;
        enum asym_exclusion why;
        const char *text;
    } rows[] = {
        {-EBUSY, ASYM_WHY_FOREIGN, "its affinity changed after asymd had set it"},
        {-ESTALE, ASYM_WHY_FOREIGN_NICE, "its nice value changed after asymd had set it"},
    };
    for (int32_t i = 0; i < 2; i++) {
        const int32_t pid = 100 + i;
        engine_fixture_thread(w, engine_fixture_proc(w, pid), pid, 5 + i);
        engine_fixture_step(w, TICK);
        engine_fixture_answer(w, ASYM_OUTCOME_HANDS_OFF, rows[i].error);
        engine_fixture_step(w, TICK);
        engine_fixture_assert_why(w, pid, asym_why(rows[i].why));
        assert_string_equal(asym_why(rows[i].why)->text, rows[i].text);
        assert_float_equal(engine_fixture_planned(w, pid)->figure[0], 0, 0);
    }
}

/* Samples that must find an unexplained mask before it counts as an external change. */
#define DOUBTS 2

TEST(a_mask_set_by_another_process_is_never_fought)
{
    static const char *const masks[] = {"0-3", "4", "0-7"};
    for (size_t i = 0; i < ASYM_LENGTH(masks); i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *t = steered(&w);
        t->mask = engine_fixture_cpus(masks[i]);
        for (int k = 0; k < DOUBTS; k++) {
            engine_fixture_step(&w, TICK); /* the kernel may still be applying a new cpuset */
            assert_int_equal(w.n, 0);
            engine_fixture_assert_why(&w, 100, asym_why(ASYM_WHY_NEXT_SWAP));
        }
        for (int k = 0; k < 3; k++) {
            engine_fixture_step(&w, TICK);
            /* The engine repeats FORGET until the actuator has done it. */
            assert_int_equal(w.n, k < 2);
            if (k < 2) {
                assert_int_equal(w.actions[0].kind, ASYM_ACTION_FORGET);
                engine_fixture_assert_mask(&t->mask, masks[i]);
                engine_fixture_answer(&w, k ? ASYM_OUTCOME_DONE : ASYM_OUTCOME_RETRY, k ? 0 : -EAGAIN);
            }
            engine_fixture_assert_why(&w, 100, asym_why(ASYM_WHY_FOREIGN));
        }
        t->mask = engine_fixture_cpus("0-7"); /* not even after it has restored its mask itself */
        engine_fixture_step_asks(&w, TICK, 0);
        t->listed = false;
        engine_fixture_step_asks(&w, 20 * ASYM_SEC, 0);
    }
}

/* Even if the holdoff is over before the next sample, the fork explains the mask. */
TEST(a_release_by_the_fork_guard_is_not_foreign_without_a_holdoff)
{
    static const asym_usec holdoffs[] = {0, 10 * ASYM_MSEC};
    for (size_t i = 0; i < ASYM_LENGTH(holdoffs); i++) {
        ENGINE_FIXTURE(w);
        w.config.enforce.fork_holdoff = holdoffs[i];
        assert_int_equal(asym_engine_configure(w.engine, &w.config), 0);
        struct engine_fixture_thread *t = steered(&w);
        engine_fixture_run(&w, ASYM_SEC);
        w.procs[0].last_fork = w.now + TICK / 2;
        t->mask = engine_fixture_cpus("0-7");
        engine_fixture_step(&w, TICK);
        engine_fixture_run(&w, ASYM_SEC);
        assert_ptr_not_equal(engine_fixture_planned(&w, 100)->reason, asym_why(ASYM_WHY_FOREIGN));
        engine_fixture_assert_mask(&t->mask, "4-7"); /* asymd steers it again */
        /* One fork explains one change only. */
        t->mask = engine_fixture_cpus("0-7");
        for (int k = 0; k <= DOUBTS; k++)
            engine_fixture_step(&w, TICK);
        engine_fixture_assert_why(&w, 100, asym_why(ASYM_WHY_FOREIGN));
    }
}

TEST(no_rule_steers_a_thread_that_has_hardly_run)
{
    static const enum asym_rule_action actions[] = {ASYM_RULE_STEER, ASYM_RULE_FAST, ASYM_RULE_SLOW};
    for (size_t i = 0; i < ASYM_LENGTH(actions); i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *t = engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
        w.procs[0].rule = actions[i];
        w.procs[0].rule_name = "rule one";
        t->task.flags = ASYM_TASK_HARDLY_RAN;
        engine_fixture_step_asks(&w, TICK, 0);
        engine_fixture_assert_why(&w, 100, asym_why(ASYM_WHY_HARDLY_RAN));
    }
}

/* It slept at the moment of the sample, and ran before. */
TEST_ENGINE(a_thread_that_has_run_since_the_last_sample_is_active)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->task.runnable = 0;
    t->task.running = 0.6;
    t->task.state = 'S';
    w->runnable[0] = 1;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_why(w, 100, &engine_fixture_placed);
}

/* Where n threads of a job are runnable, its processes wait n seconds each, but one that is steered stays so. */
TEST(a_new_process_of_a_job_has_its_class_at_once_and_a_whole_mask)
{
    static const struct {
        double runnable;
        uint32_t n_procs;
        asym_usec settle;
    } rows[] = {
        {9, 9, 9 * ASYM_SEC},      {2, 2, 2 * ASYM_SEC}, {900, 900, 10 * ASYM_SEC}, /* fork_holdoff */
        {9, 1, 500 * ASYM_MSEC},                                                    /* many threads of one process */
        {1.2, 9, 500 * ASYM_MSEC},                                                  /* the link at the end of a build */
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
        w.job = rows[i].n_procs;
        w.runnable[0] = rows[i].runnable;
        w.procs[0].born = w.now;
        engine_fixture_run_asks(&w, rows[i].settle - 1 * ASYM_MSEC, 0);
        const struct asym_plan_task *planned = engine_fixture_planned(&w, 100);
        assert_ptr_equal(planned->reason, asym_why(ASYM_WHY_SETTLING));
        assert_ptr_equal(w.plan->apps[0].excluded, asym_why(ASYM_WHY_SETTLING));
        assert_float_equal(planned->figure[0], (double)rows[i].settle / ASYM_SEC, 1e-9);
        assert_int_equal(planned->class, rows[i].runnable > 5 ? ASYM_CLASS_HP : ASYM_CLASS_MP);
        engine_fixture_run_asks(&w, 1 * ASYM_MSEC, 1);
        w.job = 900;
        w.runnable[0] = 900;
        engine_fixture_run(&w, TICK);
        assert_true(engine_fixture_planned(&w, 100)->target >= 0);
    }
}

TEST_ENGINE(idle_applications_are_not_steered)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->task.runnable = 0.4;
    engine_fixture_step_asks(w, TICK, 0);
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_IDLE));
    assert_ptr_equal(w->plan->apps[0].excluded, asym_why(ASYM_WHY_IDLE));
    assert_int_equal(w->orders.calls, 0);
}

TEST_ENGINE(the_first_snapshot_steers_nothing)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->task.runnable = t->task.running = 0;
    engine_fixture_step_asks(w, 0, 0);
    t->task.runnable = t->task.running = 1;
    engine_fixture_step(w, 10 * ASYM_MSEC); /* the change uses up no swap period */
    assert_int_equal(w->n, 1);
}

TEST(facts_that_exclude_are_reported)
{
    static const struct {
        uint32_t proc_flags, task_flags;
        enum asym_rule_action rule;
        uint8_t sched;
        const char *mask;
        enum asym_exclusion exclusion;
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
        {0, 0, 0, SCHED_BATCH, "0-7", ASYM_WHY_NONE},
        {0, 0, 0, SCHED_IDLE, "0-7", ASYM_WHY_NONE},
        {0, ASYM_TASK_NO_SETAFFINITY, 0, 0, "0-7", ASYM_WHY_NO_SETAFFINITY},
        {0, ASYM_TASK_HARDLY_RAN, 0, 0, "0-7", ASYM_WHY_HARDLY_RAN},
        {0, ASYM_TASK_HARDLY_RAN, 0, 0, "3", ASYM_WHY_OWN_MASK},
        {ASYM_PROC_COUNTS_LATE, ASYM_TASK_HARDLY_RAN, 0, 0, "0-7", ASYM_WHY_COUNTS_LATE},
        {0, 0, 0, 0, "3", ASYM_WHY_OWN_MASK},
        {0, 0, 0, 0, "0-6", ASYM_WHY_OWN_MASK},
        {ASYM_PROC_KERNEL, ASYM_TASK_NO_SETAFFINITY, 0, SCHED_FIFO, "3", ASYM_WHY_KERNEL},
        {0, 0, 0, 0, "0-7", ASYM_WHY_NONE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *t = engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
        w.procs[0].flags = rows[i].proc_flags;
        w.procs[0].rule = rows[i].rule;
        t->task.flags = rows[i].task_flags;
        t->task.sched = rows[i].sched;
        t->mask = engine_fixture_cpus(rows[i].mask);
        engine_fixture_step(&w, TICK);
        const struct asym_reason *reason = asym_why(rows[i].exclusion);
        engine_fixture_assert_why(&w, 100, reason ? reason : &engine_fixture_placed);
        assert_int_equal(w.n, reason ? 0 : 1);
        assert_ptr_equal(w.plan->apps[0].excluded, reason);
    }
}

/* A steered process 100, and a thread that carries its mask. */
static struct engine_fixture_thread *inherited_affinity(struct engine_fixture *w, unsigned proc, int32_t tid)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, proc, tid, 6);
    t->mask = engine_fixture_cpus("4-7");
    t->task.flags = ASYM_TASK_NEWBORN;
    return t;
}

static void assert_repaired(struct engine_fixture *w, struct engine_fixture_thread *t)
{
    const struct asym_action *a = engine_fixture_action(w, t->task.id.tid);
    assert_non_null(a);
    assert_int_equal(a->kind, ASYM_ACTION_REPAIR);
    assert_true(a->full_cpuset);
    engine_fixture_assert_mask(&a->mask, "0-7");
    assert_int_equal(engine_fixture_planned(w, t->task.id.tid)->target, -1);
    engine_fixture_apply(w);
    engine_fixture_assert_mask(&t->mask, "0-7");
    assert_int_equal(t->task.nice, 0);
}

/* With reset-on-fork a child of a boosted thread has nice 0. Another thread of its program has the same mask, and no boost. */
TEST_ENGINE(a_child_of_a_boosted_thread_gets_the_nice_value_of_its_program)
{
    const unsigned proc = engine_fixture_proc(w, 100);
    for (int32_t tid = 100; tid < 102; tid++)
        engine_fixture_thread(w, proc, tid, 5)->task.nice = 5;
    w->orders.of[101].delta = -10;
    engine_fixture_run(w, TICK);
    const struct engine_fixture_thread *child = inherited_affinity(w, proc, 102);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&child->mask, "0-7");
    assert_int_equal(child->task.nice, 5);
}

TEST_ENGINE(a_grandchild_is_repaired_whatever_the_order)
{
    steered(w);
    unsigned grandchild = engine_fixture_proc(w, 300), child = engine_fixture_proc(w, 200);
    w->procs[grandchild].ppid = 200;
    w->procs[child].ppid = 100;
    struct engine_fixture_thread *a = inherited_affinity(w, grandchild, 300), *b = inherited_affinity(w, child, 200);
    engine_fixture_step_asks(w, TICK, 2);
    assert_int_equal(engine_fixture_action(w, 300)->kind, ASYM_ACTION_REPAIR);
    assert_repaired(w, b);
    engine_fixture_assert_mask(&a->mask, "0-7");
}

TEST(a_child_that_has_raised_its_inherited_nice_gets_it_back_too)
{
    static const struct {
        int8_t own, boosted, then, back;
    } rows[] = {{10, 5, 6, 10}, {10, 5, 9, 10}, {10, 5, 10, 10}, {10, 5, 12, 12}, {0, -5, -3, -3}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *creator = engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
        creator->task.nice = rows[i].own;
        w.orders.of[100].delta = (int8_t)(rows[i].boosted - rows[i].own);
        engine_fixture_run(&w, TICK);
        struct engine_fixture_thread *t = inherited_affinity(&w, 0, 101);
        t->task.nice = rows[i].then;
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, rows[i].back);
        engine_fixture_assert_mask(&t->mask, "0-7");
    }
}

/* The state of a leader before a worker on CPUs 4-7 calls exec. */
static const struct {
    bool listed;
    int32_t cpu; /* -1: not steered */
} former_leaders[] = {{false, 1}, {true, 1}, {true, 5}, {true, -1}};

/* The worker has the leader's number now, and keeps what asymd set on it. */
static struct engine_fixture_thread *called_exec(struct engine_fixture *w, size_t row, int8_t boost)
{
    const unsigned proc = engine_fixture_proc(w, 100);
    struct engine_fixture_thread *leader = engine_fixture_thread(w, proc, 100, former_leaders[row].cpu);
    struct engine_fixture_thread *worker = engine_fixture_thread(w, proc, 101, 5);
    leader->listed = former_leaders[row].listed;
    w->orders.of[101].delta = boost;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&worker->mask, "4-7");
    leader->listed = true;
    worker->listed = false;
    leader->mask = worker->mask;
    leader->task.nice = worker->task.nice;
    leader->task.flags = ASYM_TASK_EXECUTED;
    w->procs[proc].last_exec = w->now + 1;
    return leader;
}

/* No process event has told the fork guard of it. */
TEST(a_worker_that_calls_exec_is_repaired_and_steered_again)
{
    for (size_t i = 0; i < 2 * ASYM_LENGTH(former_leaders); i++) {
        ENGINE_FIXTURE(w);
        const int8_t boost = i % 2 ? -5 : 0;
        struct engine_fixture_thread *leader = called_exec(&w, i / 2, boost);
        const bool is_known = former_leaders[i / 2].cpu == 5 && boost == 0;
        engine_fixture_step(&w, 10 * ASYM_MSEC);
        /* Mask and nice value are the leader's, too: a release gives both back. */
        assert_int_equal(engine_fixture_action(&w, 100)->kind, is_known ? ASYM_ACTION_RELEASE : ASYM_ACTION_REPAIR);
        engine_fixture_apply(&w);
        engine_fixture_assert_mask(&leader->mask, "0-7");
        assert_int_equal(leader->task.nice, 0);
        leader->task.flags = 0;
        engine_fixture_order(&w, 100, 1, false);
        engine_fixture_run(&w, 10 * ASYM_MSEC);
        engine_fixture_assert_why(&w, 100, asym_why(ASYM_WHY_SETTLING));
        engine_fixture_run(&w, w.config.enforce.settle);
        engine_fixture_run(&w, TICK);
        engine_fixture_assert_mask(&leader->mask, "0-3");
    }
}

/* Two workers have the same mask. The one that calls exec is found by its boost. */
TEST(of_workers_with_one_mask_the_boosted_caller_is_known)
{
    static const int8_t boosts[][2] = {{0, -5}, {-3, -5}, {-5, -5}, {-5, 0}};
    for (size_t i = 0; i < ASYM_LENGTH(boosts); i++) {
        ENGINE_FIXTURE(w);
        const unsigned proc = engine_fixture_proc(&w, 100);
        struct engine_fixture_thread *leader = engine_fixture_thread(&w, proc, 100, 1);
        struct engine_fixture_thread *other = engine_fixture_thread(&w, proc, 101, 5);
        struct engine_fixture_thread *caller = engine_fixture_thread(&w, proc, 102, 5);
        w.orders.of[101].delta = boosts[i][0];
        w.orders.of[102].delta = boosts[i][1];
        engine_fixture_run(&w, TICK);
        assert_int_equal(caller->task.nice, boosts[i][1]);
        other->listed = caller->listed = false;
        leader->mask = caller->mask;
        leader->task.nice = caller->task.nice;
        leader->task.flags = ASYM_TASK_EXECUTED;
        w.procs[proc].last_exec = w.now + 1;
        engine_fixture_run(&w, TICK);
        engine_fixture_assert_mask(&leader->mask, "0-7");
        assert_int_equal(leader->task.nice, 0);
    }
}

/* Steer a worker and another thread of the leader 100 to CPUs 4-7. asymd releases the other one again. Returns the worker. */
static struct engine_fixture_thread *worker_and_a_released_one(struct engine_fixture *w)
{
    const unsigned proc = engine_fixture_proc(w, 100);
    engine_fixture_thread(w, proc, 100, 1)->listed = false;
    struct engine_fixture_thread *released = engine_fixture_thread(w, proc, 102, 5);
    struct engine_fixture_thread *worker = engine_fixture_thread(w, proc, 101, 5);
    w->orders.of[101].delta = -5;
    engine_fixture_run(w, TICK);
    engine_fixture_order(w, 102, -1, false);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&released->mask, "0-7");
    engine_fixture_assert_mask(&worker->mask, "4-7");
    return worker;
}

/* Between the sample and its actions. The kernel has the worker's number no more. */
TEST_ENGINE(a_worker_that_calls_exec_before_its_action_is_repaired)
{
    struct engine_fixture_thread *worker = worker_and_a_released_one(w), *leader = &w->threads[0];
    engine_fixture_order(w, 101, 1, false);
    engine_fixture_step_asks(w, TICK, 1);
    assert_int_equal(engine_fixture_action(w, 101)->kind, ASYM_ACTION_STEER);
    engine_fixture_answer(w, ASYM_OUTCOME_GONE, -ESRCH);
    leader->listed = true;
    worker->listed = false;
    leader->mask = worker->mask;
    leader->task.nice = worker->task.nice;
    leader->task.flags = ASYM_TASK_EXECUTED;
    w->procs[0].last_exec = w->now + 1;
    engine_fixture_step(w, TICK);
    assert_non_null(engine_fixture_action(w, 100));
    assert_int_equal(engine_fixture_action(w, 100)->kind, ASYM_ACTION_REPAIR);
    engine_fixture_apply(w);
    engine_fixture_assert_mask(&leader->mask, "0-7");
    assert_int_equal(leader->task.nice, 0);
}

/* The worker has inherited a mask, and calls exec before asymd repairs it. Its creator has another mask by then. */
TEST_ENGINE(a_newborn_that_calls_exec_before_its_repair_is_repaired)
{
    const unsigned proc = engine_fixture_proc(w, 100);
    struct engine_fixture_thread *leader = engine_fixture_thread(w, proc, 100, -1);
    struct engine_fixture_thread *creator = engine_fixture_thread(w, proc, 101, 5);
    engine_fixture_run(w, TICK);
    struct engine_fixture_thread *worker = engine_fixture_thread(w, proc, 102, -1);
    worker->mask = creator->mask;
    worker->task.flags = ASYM_TASK_NEWBORN;
    engine_fixture_order(w, 101, -1, false);
    engine_fixture_step(w, TICK);
    assert_int_equal(engine_fixture_action(w, 101)->kind, ASYM_ACTION_RELEASE);
    assert_int_equal(engine_fixture_action(w, 102)->kind, ASYM_ACTION_REPAIR);
    leader->mask = worker->mask;
    worker->task.id.start++; /* the kernel has this thread no more */
    engine_fixture_apply(w);
    creator->listed = worker->listed = false;
    leader->task.flags = ASYM_TASK_EXECUTED;
    w->procs[proc].last_exec = w->now + 1;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&leader->mask, "0-7");
}

/* Exec keeps a negative nice value, and a worker may have raised what asymd lent it. 7 is a value of its own. */
TEST(a_worker_that_has_raised_its_boost_and_calls_exec_gets_its_nice_back)
{
    static const struct {
        int8_t then, back;
    } rows[] = {{-5, 0}, {-3, 0}, {-1, 0}, {0, 0}, {7, 7}, {-6, -6}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *leader = called_exec(&w, 0, -5);
        leader->task.nice = rows[i].then;
        engine_fixture_run(&w, TICK);
        engine_fixture_assert_mask(&leader->mask, "0-7");
        assert_int_equal(leader->task.nice, rows[i].back);
    }
}

/*
 * It has also changed its nice value: its mask is still the one that asymd set, and a release gives both back. A worker with the
 * same mask does not explain the nice value.
 */
TEST(a_leader_that_calls_exec_and_changes_its_nice_is_still_steered)
{
    static const struct {
        bool worker;
        const char *cpuset, *mask;
        int8_t boost, then, back;
    } rows[] = {
        {false, "0-7", "4-7", 0, 3, 3},   {true, "0-7", "4-7", 0, 3, 3},   {false, "0-5", "4-5", 0, 3, 3},
        {false, "0-7", "4-7", -5, -3, 0}, {false, "0-7", "4-7", -5, 3, 3},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        w.orders.of[100].delta = rows[i].boost;
        w.orders.of[101].delta = -7;
        const unsigned proc = engine_fixture_proc(&w, 100);
        struct engine_fixture_thread *leader = engine_fixture_thread(&w, proc, 100, 5);
        struct engine_fixture_thread *worker = engine_fixture_thread(&w, proc, 101, 5);
        worker->listed = rows[i].worker;
        engine_fixture_run(&w, TICK);
        engine_fixture_assert_mask(&leader->mask, "4-7");
        worker->listed = false;
        leader->cpuset = engine_fixture_cpus(rows[i].cpuset);
        leader->mask = engine_fixture_cpus(rows[i].mask);
        leader->task.nice = rows[i].then;
        leader->task.flags = ASYM_TASK_EXECUTED;
        w.procs[proc].last_exec = w.now + 1;
        engine_fixture_step(&w, TICK);
        assert_int_equal(engine_fixture_action(&w, 100)->kind, ASYM_ACTION_RELEASE);
        assert_int_equal(engine_fixture_action(&w, 100)->nice, rows[i].back);
    }
}

/* A worker that had pinned itself: the record of the leader goes, and the mask stays. */
TEST_ENGINE(a_worker_that_calls_exec_keeps_its_own_mask)
{
    struct engine_fixture_thread *leader = steered(w);
    leader->mask = engine_fixture_cpus("6");
    leader->task.flags = ASYM_TASK_EXECUTED;
    w->procs[0].last_exec = w->now + 1;
    engine_fixture_step(w, TICK);
    const struct asym_action *a = engine_fixture_action(w, 100);
    assert_int_equal(a->kind, ASYM_ACTION_FORGET);
    assert_null(a->reason);
    engine_fixture_apply(w);
    leader->task.flags = 0;
    for (int k = 0; k < 10; k++) {
        engine_fixture_run_asks(w, TICK, 0);
        engine_fixture_assert_mask(&leader->mask, "6");
        engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_OWN_MASK));
    }
}

/* asymd had steered it to these CPUs, and has released it since it forked. Then it ran taskset: exec keeps the new mask. */
TEST_ENGINE(a_mask_that_was_set_before_an_exec_is_its_own)
{
    struct engine_fixture_thread *t = steered(w);
    w->procs[0].last_fork = w->now + 1;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
    t->mask = engine_fixture_cpus("4-7");
    t->task.flags = ASYM_TASK_EXECUTED;
    w->procs[0].last_fork = 0;
    w->procs[0].last_exec = w->now + 1;
    engine_fixture_step_asks(w, TICK, 0);
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_OWN_MASK));
}

/* Without an exec, a leader that has the mask of a thread that has ended has set it itself. */
TEST(a_leader_with_the_mask_of_a_worker_keeps_it)
{
    for (size_t i = 0; i < 2; i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *leader = called_exec(&w, i, 0);
        leader->task.flags = 0;
        w.procs[0].last_exec = 0;
        for (int k = 0; k < 5; k++) {
            engine_fixture_run(&w, TICK);
            engine_fixture_assert_mask(&leader->mask, "4-7");
        }
        engine_fixture_assert_why(&w, 100, asym_why(former_leaders[i].listed ? ASYM_WHY_FOREIGN : ASYM_WHY_OWN_MASK));
    }
}

/*
 * The process pinned itself; its thread and its child inherit that mask. asymd set nothing on this process, only on an
 * earlier one with its number.
 */
TEST_ENGINE(a_successor_with_the_same_number_chose_its_mask)
{
    struct engine_fixture_thread *t = steered(w);
    w->procs[0].id.start++;
    w->procs[0].born = w->now;
    t->task.id.start++;
    t->task.flags = ASYM_TASK_NEWBORN;
    inherited_affinity(w, 0, 101);
    unsigned child = engine_fixture_proc(w, 200);
    w->procs[child].ppid = 100;
    w->procs[child].born = w->now;
    inherited_affinity(w, child, 200);
    engine_fixture_step(w, TICK);
    for (size_t i = 0; i < w->n; i++)
        assert_int_not_equal(w->actions[i].kind, ASYM_ACTION_REPAIR);
    static const int32_t tids[] = {100, 101, 200};
    for (size_t i = 0; i < ASYM_LENGTH(tids); i++)
        engine_fixture_assert_mask(engine_fixture_planned(w, tids[i])->mask, "4-7");
}

TEST_ENGINE(a_stranger_with_the_same_mask_chose_it)
{
    steered(w);
    struct engine_fixture_thread *t = inherited_affinity(w, engine_fixture_proc(w, 200), 200);
    t->task.flags = ASYM_TASK_NEWBORN;
    engine_fixture_step(w, TICK);
    assert_null(engine_fixture_action(w, 200));
    engine_fixture_assert_why(w, 200, asym_why(ASYM_WHY_OWN_MASK));
}

TEST(nice_is_own_plus_delta_within_bounds)
{
    static const int8_t rows[][3] = {{0, -5, -5}, {-18, -5, -20}, {15, 10, 19},
                                     {3, 0, 3},   {-20, 127, 19}, {19, -128, -20}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        struct engine_fixture_thread *t = engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, 5);
        t->task.nice = rows[i][0];
        w.orders.of[100].delta = rows[i][1];
        engine_fixture_run(&w, TICK);
        assert_int_equal(engine_fixture_planned(&w, 100)->nice, rows[i][2]);
        assert_int_equal(t->task.nice, rows[i][2]);
        engine_fixture_run_asks(&w, TICK, 0);
        assert_int_equal(w.orders.threads[0].nice,
                         rows[i][0]); /* a policy sees the thread's own nice value, not the boosted one */
        w.procs[0].rule = ASYM_RULE_IGNORE;
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, rows[i][0]);
    }
}

/* Every thread may raise its nice value: asymd takes back the rest of the boost at once and lends no other. */
TEST(a_boost_that_its_thread_raises_ends)
{
    for (int8_t nice = -4; nice < 0; nice++) {
        ENGINE_FIXTURE(w);
        w.orders.of[100].delta = -5;
        struct engine_fixture_thread *t = steered(&w);
        t->task.nice = nice;
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, 0);
        engine_fixture_assert_mask(&t->mask, "4-7");
        t->task.nice = 3;
        engine_fixture_run_asks(&w, TICK, 0);
        w.procs[0].rule = ASYM_RULE_IGNORE;
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, 3);
    }
}

/* The daemon sets this if the actuator could not restore nice values. */
TEST(a_nice_value_that_is_to_be_kept_is_not_planned_over)
{
    ENGINE_FIXTURE(w);
    w.config.keep_nice = true;
    assert_int_equal(asym_engine_configure(w.engine, &w.config), 0);
    w.orders.of[100].delta = -5;
    struct engine_fixture_thread *t = steered(&w);
    assert_int_equal(t->task.nice, 0);
    engine_fixture_assert_mask(&t->mask, "4-7");
    engine_fixture_run_asks(&w, TICK, 0);
}

/* The effect of the CPUs, the nice value and the class of a rule on the plan. */

/* A process with one thread, which the policy puts on CPU 5, one of the fast CPUs 4-7. */
static struct engine_fixture_thread *ruled(struct engine_fixture *w, const struct asym_rule_facts *facts)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    w->procs[0].rule_name = "rule one";
    w->procs[0].rule_facts = facts;
    return t;
}

TEST_ENGINE(cpus_bound_what_the_policy_may_choose)
{
    const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus("2-5")};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(w->orders.threads[0].allowed, "2-5");
    engine_fixture_assert_mask(&t->mask, "4-5");
    engine_fixture_assert_why(w, 100, &engine_fixture_placed);
}

TEST(a_rule_narrows_what_it_may_have_to_no_less_than_one_cpu)
{
    static const struct {
        const char *cpus, *cpuset, *allowed;
        enum asym_rule_action action;
    } rows[] = {
        {"", "0-7", "4-7", ASYM_RULE_FAST},     {"", "0-7", "0-3", ASYM_RULE_SLOW},
        {"", "0-3", "0-3", ASYM_RULE_FAST},     /* it holds no fast CPU, so the rule has no effect */
        {"8-9", "0-7", "0-7", ASYM_RULE_STEER}, /* the machine has no such CPU */
        {"2-9", "0-7", "2-7", ASYM_RULE_STEER}, /* it has some of them */
        {"0-1", "4-7", "4-7", ASYM_RULE_STEER}, /* the cpuset leaves them out */
        {"0-1,4", "3-7", "4", ASYM_RULE_STEER}, {"2-5", "0-7", "4-5", ASYM_RULE_FAST}, /* fast within the CPUs */
        {"2-5", "0-7", "2-3", ASYM_RULE_SLOW},  {"0-1", "0-7", "0-1", ASYM_RULE_FAST}, /* none of the CPUs is fast */
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus(rows[i].cpus)};
        struct engine_fixture_thread *t = ruled(&w, &facts);
        w.procs[0].rule = rows[i].action;
        t->mask = t->cpuset = engine_fixture_cpus(rows[i].cpuset);
        engine_fixture_step(&w, TICK);
        engine_fixture_assert_mask(w.orders.threads[0].allowed, rows[i].allowed);
    }
}

/* All have the same own mask and cpuset. */
TEST_ENGINE(each_process_has_the_cpus_of_its_own_rule)
{
    const struct asym_rule_facts one = {.cpus = engine_fixture_cpus("2-5")}, two = {.cpus = engine_fixture_cpus("6-7")};
    ruled(w, &one);
    engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, 6);
    w->procs[1].rule_facts = &two;
    engine_fixture_thread(w, engine_fixture_proc(w, 300), 300, 6);
    engine_fixture_thread(w, engine_fixture_proc(w, 400), 400, 6);
    w->procs[3].rule = ASYM_RULE_FAST;
    engine_fixture_thread(w, engine_fixture_proc(w, 500), 500, 6);
    w->procs[4].rule = ASYM_RULE_SLOW;
    engine_fixture_step(w, TICK);
    static const char *const allowed[] = {"2-5", "6-7", "0-7", "4-7", "0-3"};
    for (size_t i = 0; i < ASYM_LENGTH(allowed); i++)
        engine_fixture_assert_mask(w->orders.threads[i].allowed, allowed[i]);
}

TEST_ENGINE(cpus_hold_although_the_policy_leaves_the_thread_alone)
{
    const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus("2-5")};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "2-5");
    const struct asym_plan_task *plan = engine_fixture_planned(w, 100);
    assert_ptr_equal(plan->reason, &asym_reason_rule);
    assert_int_equal(plan->target, 2); /* it ran on CPU 0, which the rule leaves out */
    engine_fixture_run_asks(w, TICK, 0);
    /* Without the rule the thread gets its own mask back. */
    w->procs[0].rule_facts = NULL;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
    engine_fixture_assert_why(w, 100, &engine_fixture_unsteered);
}

TEST_ENGINE(the_mask_of_a_rule_is_no_foreign_mask)
{
    const struct asym_rule_facts facts = {.cpus = engine_fixture_cpus("2-5")},
                                 other = {.cpus = engine_fixture_cpus("6-7")};
    struct engine_fixture_thread *t = ruled(w, &facts);
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    w->procs[0].rule_facts = &other;
    for (int i = 0; i < 5; i++)
        engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "6-7");
    engine_fixture_assert_why(w, 100, &asym_reason_rule);
}

TEST(a_nice_value_of_a_rule_is_set_and_restored)
{
    static const int8_t values[] = {-5, 0, 10};
    static const int32_t cpus[] = {5, -1}; /* -1: the policy leaves the thread alone */
    for (size_t i = 0; i < ASYM_LENGTH(values) * ASYM_LENGTH(cpus); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.nice = values[i / 2], .has_nice = true};
        struct engine_fixture_thread *t = ruled(&w, &facts);
        t->task.nice = 2;
        engine_fixture_order(&w, 100, cpus[i % 2], false);
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, values[i / 2]);
        engine_fixture_assert_mask(&t->mask, cpus[i % 2] < 0 ? "0-7" : "4-7");
        engine_fixture_run_asks(&w, TICK, 0);
        w.procs[0].rule_facts = NULL;
        w.procs[0].rule = ASYM_RULE_IGNORE;
        engine_fixture_run(&w, TICK);
        assert_int_equal(t->task.nice, 2);
        engine_fixture_assert_mask(&t->mask, "0-7");
    }
}

static const struct asym_rule_facts nice_10 = {.nice = 10, .has_nice = true};

/* With a nice value only, asymd has to set a mask as well: it must not keep the thread off CPUs that its cpuset gains. */
TEST_ENGINE(a_nice_value_alone_leaves_all_cpus)
{
    struct engine_fixture_thread *t = ruled(w, &nice_10);
    t->mask = t->cpuset = engine_fixture_cpus("0-5");
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    assert_int_equal(t->task.nice, 10);
    t->cpuset = engine_fixture_cpus("0-7");
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
    engine_fixture_assert_why(w, 100, &asym_reason_rule);
}

TEST_ENGINE(the_boost_of_a_policy_counts_from_the_rules_value)
{
    struct engine_fixture_thread *t = ruled(w, &nice_10);
    w->orders.of[100].delta = -3;
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].nice, 10);
    assert_int_equal(t->task.nice, 7);
}

/* An ordinary user's asymd could not give the value back. */
TEST_ENGINE(no_rule_sets_what_asymd_cannot_restore)
{
    struct engine_fixture_thread *t = ruled(w, &nice_10);
    w->config.keep_nice = true;
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].nice, 0);
    assert_int_equal(t->task.nice, 0);
    engine_fixture_assert_mask(&t->mask, "4-7");
}

TEST_ENGINE(a_user_who_renices_the_program_wins)
{
    struct engine_fixture_thread *t = ruled(w, &nice_10);
    engine_fixture_run(w, TICK);
    t->task.nice = 4;
    for (int i = 0; i < 3; i++)
        engine_fixture_run(w, TICK);
    assert_int_equal(t->task.nice, 4);
}

/* A child of the thread that runs at nice 10 inherits the value, whatever its own rule is. */
TEST_ENGINE(a_child_gets_the_nice_value_of_its_creator_before_the_rule)
{
    struct engine_fixture_thread *t = ruled(w, &nice_10);
    engine_fixture_run(w, TICK);
    struct engine_fixture_thread *child = engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, -1);
    w->procs[1].ppid = 100;
    w->procs[1].id.start = 5000;
    child->task.id.start = 5000;
    w->procs[1].born = w->now;
    child->task.flags = ASYM_TASK_NEWBORN;
    child->task.nice = 10;
    child->mask = t->mask;
    engine_fixture_run(w, TICK);
    assert_int_equal(child->task.nice, 0);
    engine_fixture_assert_mask(&child->mask, "0-7");
}

TEST(a_class_overrides_the_count)
{
    static const struct {
        enum asym_rule_class class;
        double runnable;
        enum asym_phase phase;
        enum asym_class of;
    } rows[] = {
        {ASYM_RULE_CLASS_AUTO, 20, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP},
        {ASYM_RULE_CLASS_SERIAL, 20, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},
        {ASYM_RULE_CLASS_AUTO, 1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP},
        {ASYM_RULE_CLASS_PARALLEL, 1, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP},
        {ASYM_RULE_CLASS_PARALLEL, 0.4, ASYM_PHASE_IDLE, ASYM_CLASS_NONE},
        {ASYM_RULE_CLASS_SERIAL, 0.4, ASYM_PHASE_IDLE, ASYM_CLASS_NONE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.policy_class = rows[i].class};
        ruled(&w, &facts);
        w.runnable[0] = rows[i].runnable;
        engine_fixture_step(&w, TICK);
        assert_int_equal(w.plan->apps[0].phase, rows[i].phase);
        assert_int_equal(w.plan->apps[0].class, rows[i].of);
    }
}

/* By the count, the one thread that is left would be in a serial phase. */
TEST(a_parallel_program_by_rule_has_no_serial_phase)
{
    static const struct {
        enum asym_rule_class class;
        enum asym_class of;
    } rows[] = {
        {ASYM_RULE_CLASS_AUTO, ASYM_CLASS_SP},
        {ASYM_RULE_CLASS_SERIAL, ASYM_CLASS_SP},
        {ASYM_RULE_CLASS_PARALLEL, ASYM_CLASS_HP},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        const struct asym_rule_facts facts = {.policy_class = rows[i].class};
        ruled(&w, &facts);
        w.runnable[0] = 4;
        engine_fixture_run(&w, TICK);
        w.runnable[0] = 1;
        engine_fixture_run(&w, TICK);
        assert_int_equal(engine_fixture_planned(&w, 100)->class, rows[i].of);
    }
}

TEST_ENGINE(without_a_rule_an_allow_list_steers_nothing)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    w->procs[0].rule = ASYM_RULE_UNLISTED;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_UNLISTED));
    assert_ptr_equal(w->plan->apps[0].excluded, asym_why(ASYM_WHY_UNLISTED));
}

/* The user has not seen the program that a rule of the library matches. */
TEST_ENGINE(a_rule_of_the_library_protects_programs_that_count_late)
{
    const struct asym_rule_facts library = {.library = true}, own = {.library = false};
    ruled(w, &library);
    w->procs[0].flags = ASYM_PROC_COUNTS_LATE;
    engine_fixture_step(w, TICK);
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_COUNTS_LATE));
    w->procs[0].rule_facts = &own;
    engine_fixture_step(w, TICK);
    engine_fixture_assert_why(w, 100, &engine_fixture_placed);
}

TEST_MAIN
