/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When the engine calls a policy, what the policy sees, how its targets become masks, and transit CPUs of running threads whose new
 * mask leaves out their CPU.
 */
#include <limits.h>
#include <math.h>
#include <sched.h>

#include "base/mask.h"
#include "support/engine-fixture.h"
#include "support/test.h"
#define TICK (100 * ASYM_MSEC)

static void configure(struct engine_fixture *w)
{
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
}

/* Run, and the policy must have been called so often. A macro, so that a failure names the line of the test. */
#define run_calls(w, dt, n_calls)                                                                                      \
    do {                                                                                                               \
        engine_fixture_run(w, dt);                                                                                     \
        assert_int_equal((w)->orders.calls, n_calls);                                                                  \
    } while (0)

TEST_ENGINE(mappings_change_at_the_swap_period_only)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    run_calls(w, TICK, 1);
    engine_fixture_order(w, 100, 1, false);
    for (int i = 0; i < 3; i++) {
        run_calls(w, 25 * ASYM_MSEC, 1);
        assert_int_equal(w->n, 0);
        assert_int_equal(engine_fixture_planned(w, 100)->target, 5);
        engine_fixture_assert_mask(engine_fixture_planned(w, 100)->mask, "4-7");
    }
    run_calls(w, 25 * ASYM_MSEC, 2);
    assert_int_equal(w->orders.interval, 100 * ASYM_MSEC);
    engine_fixture_assert_mask(&t->mask, "0-3");
}

/* The times between snapshots of one swap period after a plan in which the policy asked for 30 ms, and whether each is a plan. */
TEST_ENGINE(a_policy_may_ask_for_a_plan_before_the_period_ends)
{
    static const struct {
        asym_usec again, dt;
        bool refreshed, plans;
        asym_usec next; /* the time at which a loop takes the next snapshot; 0: as ever */
    } rows[] = {
        {30 * ASYM_MSEC, 30 * ASYM_MSEC, false, true, 30 * ASYM_MSEC},
        {30 * ASYM_MSEC, 15 * ASYM_MSEC, false, false, 15 * ASYM_MSEC},
        {30 * ASYM_MSEC, 30 * ASYM_MSEC, true, false, ASYM_MSEC}, /* nothing was measured since */
        {1, 15 * ASYM_MSEC, false, false, 5 * ASYM_MSEC},         /* not within ASYM_AGAIN_LEAST */
        {1, 20 * ASYM_MSEC, false, true, 20 * ASYM_MSEC},
        {0, 30 * ASYM_MSEC, false, false, 0},
    };
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        w->orders.again = rows[i].again;
        w->refreshed = false;
        engine_fixture_run(w, TICK);
        const unsigned before = w->orders.calls;
        w->refreshed = rows[i].refreshed;
        engine_fixture_run(w, rows[i].dt);
        assert_int_equal(w->orders.calls - before, rows[i].plans);
        assert_int_equal(asym_engine_again(w->engine), rows[i].next);
        if (rows[i].plans)
            assert_int_equal(w->orders.since_swap, rows[i].dt); /* the swap period goes on */
        w->refreshed = false;
        engine_fixture_run(w, TICK - rows[i].dt);
    }
    w->paused = true; /* without threads to map no plan is due */
    engine_fixture_run(w, TICK);
    assert_int_equal(asym_engine_again(w->engine), 0);
}

TEST_ENGINE(a_thread_seen_between_two_swaps_waits)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, 5);
    engine_fixture_run_asks(w, TICK / 2, 0);
    assert_int_equal(engine_fixture_planned(w, 200)->target, -1);
    engine_fixture_assert_why(w, 200, asym_why(ASYM_WHY_NEXT_SWAP));
    engine_fixture_run(w, TICK / 2);
    assert_int_equal(engine_fixture_action(w, 200)->kind, ASYM_ACTION_STEER);
}

TEST_ENGINE(a_steered_thread_that_wakes_between_two_swaps_keeps_its_mask)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, 6);
    engine_fixture_run(w, TICK);
    t->listed = false;
    engine_fixture_run(w, TICK);
    t->listed = true;
    engine_fixture_run_asks(w, TICK / 2, 0);
    assert_int_equal(engine_fixture_planned(w, 200)->target, 6);
    engine_fixture_assert_mask(engine_fixture_planned(w, 200)->mask, "4-7");
}

TEST_ENGINE(a_timer_that_is_a_little_early_does_not_lose_a_period)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    for (unsigned i = 1; i <= 20; i++) {
        run_calls(w, i % 2 ? TICK - 300 : TICK + 300, i);
    }
    /* A timer that is always early does not gain periods either: some steps do not plan. */
    unsigned before = w->orders.calls;
    for (unsigned i = 0; i < 1000; i++)
        engine_fixture_run(w, 96 * ASYM_MSEC);
    assert_in_range(w->orders.calls - before, 900, 961);
}

TEST_ENGINE(a_changed_machine_is_planned_for_at_once)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    w->machine.generation++;
    run_calls(w, 10 * ASYM_MSEC, 2);
    run_calls(w, 10 * ASYM_MSEC, 2);
}

TEST_ENGINE(changed_settings_are_planned_for_at_once)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    w->config.enforce.pin = ASYM_PIN_CPU;
    configure(w);
    run_calls(w, 10 * ASYM_MSEC, 2);
    engine_fixture_assert_mask(&w->threads[0].mask, "5");
}

TEST_ENGINE(the_same_policy_keeps_its_state_and_a_new_one_starts_from_zero)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    for (unsigned char i = 0; i < 3; i++) {
        engine_fixture_run(w, TICK);
        assert_int_equal(w->orders.policy_state, i);
        assert_int_equal(w->orders.state[0], i);
    }
    configure(w);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.policy_state, 3);
    assert_int_equal(w->orders.state[0], 3);
    assert_int_equal(w->orders.interval, TICK);
    w->config.policy = &engine_fixture_policy_cpu;
    configure(w);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.policy_state, 0);
    assert_int_equal(w->orders.state[0], 0);
    assert_int_equal(w->orders.interval, 0);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.state[0], 1);
    w->config.policy = &engine_fixture_policy_type;
    configure(w);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.state[0], 0);
}

/* No thread was planned meanwhile: the measurements of the next plan are of one interval, not of the gap. */
TEST_ENGINE(a_gap_without_threads_is_no_interval)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    t->listed = false;
    for (unsigned k = 0; k < 3; k++)
        engine_fixture_run(w, TICK);
    t->listed = true;
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.interval, TICK);
}

/* A refreshed snapshot repeats the measurements of the last one. */
TEST_ENGINE(the_interval_of_a_plan_is_that_of_its_new_measurements)
{
    static const struct {
        unsigned after;
        bool refreshed;
        unsigned interval; /* milliseconds */
    } rows[] = {{100, false, 0}, {100, false, 100}, {30, true, 0}, {30, true, 0}, {40, false, 100}, {100, false, 100}};
    w->config.policy = &engine_fixture_policy_reacts;
    configure(w);
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        w->refreshed = rows[i].refreshed;
        w->urgent = rows[i].refreshed ? ASYM_URGENT_REPORT : ASYM_URGENT_NOT;
        run_calls(w, rows[i].after * ASYM_MSEC, i + 1);
        assert_int_equal(w->orders.interval, rows[i].interval * ASYM_MSEC);
    }
}

TEST_ENGINE(nice_groups_are_numbered_for_the_policy)
{
    static const int32_t sessions[] = {4194303, 0, 7, 4194303, 12};
    static const uint32_t numbers[] = {1, 0, 2, 1, 3};
    for (int32_t i = 0; i < (int32_t)ASYM_LENGTH(sessions); i++) {
        engine_fixture_thread(w, engine_fixture_proc(w, 100 + i), 100 + i, 5);
    }
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < ASYM_LENGTH(sessions); i++)
            w->procs[i].nice_group = sessions[i] != 0 ? sessions[i] - k : 0;
        engine_fixture_run(w, TICK);
        assert_int_equal(w->orders.n_nice_groups, 3);
        for (size_t i = 0; i < ASYM_LENGTH(sessions); i++)
            assert_int_equal(w->orders.threads[i].nice_group, numbers[i]);
    }
}

TEST_ENGINE(another_policy_takes_over_what_is_steered)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    struct engine_fixture_thread *asleep = engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, 5);
    engine_fixture_run(w, TICK);
    asleep->listed = false;
    w->config.policy = &engine_fixture_policy_cpu;
    configure(w);
    engine_fixture_run(w, 10 * ASYM_MSEC);
    engine_fixture_assert_mask(&t->mask, "5");
    /* Threads that do not run are released: the new policy has not assigned them. */
    engine_fixture_assert_mask(&asleep->mask, "0-7");
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "0-7");
}

TEST_ENGINE(per_thread_state_is_zero_for_a_new_thread_and_stays_with_its_thread)
{
    unsigned p = engine_fixture_proc(w, 100);
    struct engine_fixture_thread *first = engine_fixture_thread(w, p, 100, 5);
    engine_fixture_run(w, TICK);
    for (int32_t tid = 101; tid < 140; tid++)
        engine_fixture_thread(w, p, tid, 5);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.state[0], 1);
    assert_int_equal(w->orders.state[39], 0);
    first->listed = false;
    engine_fixture_run(w, TICK);
    first->listed = true;
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.state[0], 2);
    assert_int_equal(w->orders.state[39], 2);
}

TEST_ENGINE(a_policy_sees_active_applications_with_steerable_threads_only)
{
    unsigned a = engine_fixture_proc(w, 100), b = engine_fixture_proc(w, 200), c = engine_fixture_proc(w, 300),
             d = engine_fixture_proc(w, 400);
    engine_fixture_thread(w, a, 100, 5)->task.runnable = 0.2;
    engine_fixture_thread(w, b, 200, 5)->mask = engine_fixture_cpus("1");
    engine_fixture_thread(w, c, 300, 5);
    engine_fixture_thread(w, c, 301, 5)->mask = engine_fixture_cpus("1");
    engine_fixture_thread(w, c, 302, 5);
    engine_fixture_thread(w, c, 303, 5)->task.runnable = 0.5;
    engine_fixture_thread(w, d, 400, 5);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.n_apps, 2);
    assert_int_equal(w->orders.n_threads, 4);
    assert_int_equal(w->orders.apps[0].id.tgid, 300);
    assert_int_equal(w->orders.apps[0].first_thread, 0);
    assert_int_equal(w->orders.apps[0].n_threads, 3);
    assert_true(fabs(w->orders.apps[0].runnable - 3.5) < 1e-9);
    assert_int_equal(w->orders.apps[1].first_thread, 3);
    assert_int_equal(w->orders.threads[1].id.tid, 302);
    assert_int_equal(w->orders.threads[3].app, 1);
}

TEST_ENGINE(equal_sets_have_equal_addresses)
{
    unsigned p = engine_fixture_proc(w, 100);
    for (int32_t tid = 100; tid < 104; tid++) {
        struct engine_fixture_thread *t = engine_fixture_thread(w, p, tid, 2);
        t->cpuset = t->mask = engine_fixture_cpus(tid % 2 ? "0-3" : "2-5");
    }
    engine_fixture_run(w, TICK);
    assert_ptr_equal(w->orders.threads[0].allowed, w->orders.threads[2].allowed);
    assert_ptr_equal(w->orders.threads[1].allowed, w->orders.threads[3].allowed);
    assert_ptr_not_equal(w->orders.threads[0].allowed, w->orders.threads[1].allowed);
}

TEST_ENGINE(the_preferred_cpu_is_the_last_target_in_force_or_else_where_it_ran)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->task.cpu = 2;
    engine_fixture_step(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 2);
    engine_fixture_answer(w, ASYM_OUTCOME_RETRY, -EAGAIN);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 2); /* the plan says 5, but the action was not done */
    engine_fixture_order(w, 100, 1, false);
    engine_fixture_step(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 5);
    engine_fixture_answer(w, ASYM_OUTCOME_RETRY, -EAGAIN);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 5); /* still so: the action to 1 was not done */
    engine_fixture_order(w, 100, 3, false); /* the mask is the same: no action, so the target is in force */
    engine_fixture_run_asks(w, TICK, 0);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 3);
}

TEST_ENGINE(a_thread_prefers_no_cpu_outside_its_cpuset)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 2);
    t->cpuset = engine_fixture_cpus("2-3");
    t->task.cpu = 6;
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, -1);
}

TEST_ENGINE(nothing_to_narrow_is_nothing_to_do)
{
    engine_fixture_machine(&w->machine, 8, 0, 4);
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->mask = engine_fixture_cpus("0-63"); /* as the kernel shows a mask on a machine with 64 possible CPUs */
    engine_fixture_run_asks(w, TICK, 0);
    assert_int_equal(engine_fixture_planned(w, 100)->target, 5);
    t->listed = false;
    engine_fixture_run_asks(w, 10 * ASYM_SEC, 0); /* it was not steered, so there is nothing to release */
}

/* On CPUs that are alike the thread's own mask is what the plan gives it. The kernel may run it on another CPU than its target. */
static struct engine_fixture_thread *fits(struct engine_fixture *w)
{
    engine_fixture_machine(&w->machine, 8, 0, 4);
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->task.cpu = 2;
    engine_fixture_run(w, TICK);
    engine_fixture_run_asks(w, TICK, 0);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 5);
    return t;
}

/* Its own mask no longer fits the plan, and the new one could not be set. */
TEST_ENGINE(a_target_that_a_failed_action_replaces_is_not_in_force)
{
    fits(w);
    engine_fixture_thread(w, engine_fixture_proc(w, 200), 200, 7);
    engine_fixture_order(w, 200, 7, true);
    engine_fixture_step(w, TICK);
    engine_fixture_assert_mask(&engine_fixture_action(w, 100)->mask, "0-6");
    engine_fixture_answer(w, ASYM_OUTCOME_RETRY, -EAGAIN);
    engine_fixture_step(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 2);
}

TEST_ENGINE(a_target_that_fits_outlasts_a_sleep_but_no_end_of_steering)
{
    struct engine_fixture_thread *t = fits(w);
    t->task.runnable = t->task.running = 0;
    t->task.state = 'S';
    engine_fixture_run(w, TICK);
    engine_fixture_assert_why(w, 100, asym_why(ASYM_WHY_IDLE));
    t->task.runnable = t->task.running = 1;
    t->task.state = 'R';
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 5);
    engine_fixture_order(w, 100, -1, false);
    engine_fixture_run(w, TICK);
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.threads[0].preferred_cpu, 2);
}

TEST(pin_says_how_wide_the_mask_is)
{
    static const struct {
        int pin;
        const struct asym_policy *policy;
        int32_t cpu;
        const char *mask;
    } rows[] = {
        {ASYM_PIN_CPU, &engine_fixture_policy_type, 5, "5"},
        {ASYM_PIN_LLC, &engine_fixture_policy_type, 5, "4-5"},
        {ASYM_PIN_LLC, &engine_fixture_policy_type, 1, "0-1"},
        {ASYM_PIN_TYPE, &engine_fixture_policy_cpu, 5, "4-7"},
        {ASYM_PIN_TYPE, &engine_fixture_policy_cpu, 0, "0-3"},
        {-1, &engine_fixture_policy_type, 6, "4-7"},
        {-1, &engine_fixture_policy_cpu, 6, "6"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ENGINE_FIXTURE(w);
        engine_fixture_machine(&w.machine, 4, 4, 2);
        w.config.policy = rows[i].policy;
        w.config.enforce.pin = rows[i].pin;
        configure(&w);
        struct engine_fixture_thread *t = engine_fixture_thread(&w, engine_fixture_proc(&w, 100), 100, rows[i].cpu);
        engine_fixture_run(&w, TICK);
        engine_fixture_assert_mask(&t->mask, rows[i].mask);
    }
}

/* CPU 5 is left idle; thread 102 has it as its target, and thread 103 holds CPU 6. */
TEST_ENGINE(a_policy_gives_each_thread_its_width_and_leaves_cpus_idle)
{
    static const struct {
        int32_t tid, cpu;
        enum asym_pin width;
        bool exclusive;
        const char *mask;
    } rows[] = {
        {100, 0, ASYM_PIN_TYPE, false, "0-3"}, {101, 4, ASYM_PIN_ALL, false, "0-4,7"},
        {102, 5, ASYM_PIN_CPU, false, "5"},    {103, 6, ASYM_PIN_TYPE, true, "6"},
        {104, 7, ASYM_PIN_LLC, false, "4,7"},  {105, 7, ASYM_PIN_TYPE, false, "4,7"},
    };
    w->config.policy = &engine_fixture_policy_each;
    configure(w);
    w->orders.spare = engine_fixture_cpus("5");
    const unsigned p = engine_fixture_proc(w, 100);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        engine_fixture_thread(w, p, rows[i].tid, rows[i].cpu);
        engine_fixture_order(w, rows[i].tid, rows[i].cpu, rows[i].exclusive);
        w->orders.of[rows[i].tid % 1000].width = rows[i].width;
    }
    for (unsigned k = 0; k < 2; k++) { /* the second plan is the one of the first step */
        engine_fixture_run(w, TICK / 4);
        for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
            engine_fixture_assert_mask(&w->threads[i].mask, rows[i].mask);
    }
    w->config.enforce.pin = ASYM_PIN_CPU; /* the user's width replaces that of the policy */
    configure(w);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&w->threads[1].mask, "4");
}

TEST_ENGINE(the_policy_learns_of_unsteered_and_sleeping_threads)
{
    w->config.policy = &engine_fixture_policy_each;
    configure(w);
    const unsigned p = engine_fixture_proc(w, 100), q = engine_fixture_proc(w, 200), self = engine_fixture_proc(w, 300);
    struct engine_fixture_thread *t = engine_fixture_thread(w, p, 100, 4),
                                 *sleeper = engine_fixture_thread(w, p, 101, 5);
    engine_fixture_thread(w, p, 102, 0)->task.sched = SCHED_FIFO;
    struct engine_fixture_thread *young[2] = {engine_fixture_thread(w, q, 200, 0), engine_fixture_thread(w, q, 201, 0)};
    w->procs[q].born = w->now; /* it settles */
    w->procs[self].flags = ASYM_PROC_SELF;
    engine_fixture_thread(w, self, 300, 0);
    young[1]->task.runnable = young[1]->task.running = 0.5;
    t->task.critical = 0.25;
    engine_fixture_run(w, TICK);
    assert_int_equal(w->orders.n_apps, 1);
    assert_true(fabs(w->orders.threads[0].critical - 0.25) < 1e-9);
    assert_true(fabs(w->orders.apps[0].unsteered - 1) < 1e-9);
    assert_true(fabs(w->orders.unsteered - 2.5) < 1e-9);
    /* One of three threads, and all of 1.5: the mean by what they need. */
    assert_true(fabs(w->orders.unsteered_weight - (1. / 3 + 1.5 / 1.5) / 2.5) < 1e-9);
    assert_true(fabs((double)w->orders.asleep[5] - 0) < 1e-9);
    for (unsigned k = 0; k < 50; k++)
        engine_fixture_run(w, TICK);
    sleeper->listed = false;
    engine_fixture_run(w, TICK);
    assert_true(fabs((double)w->orders.asleep[5] - exp(-0.1 / 0.3)) < 0.02);
    assert_true(fabs((double)w->orders.asleep[4] - 0) < 1e-9);
    sleeper->listed = true;
    w->orders.of[101].width = ASYM_PIN_TYPE; /* it wakes on any CPU of that type: it has no seat to keep */
    engine_fixture_run(w, TICK);
    sleeper->listed = false;
    engine_fixture_run(w, TICK);
    assert_true(fabs((double)w->orders.asleep[5] - 0) < 1e-9);
}

TEST_ENGINE(pin_llc_stays_within_the_targets_type)
{
    engine_fixture_machine(&w->machine, 4, 4, 8);
    w->config.enforce.pin = ASYM_PIN_LLC;
    configure(w);
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "4-7");
}

TEST_ENGINE(an_exclusive_cpu_is_used_by_exclusive_threads_only)
{
    unsigned p = engine_fixture_proc(w, 100), q = engine_fixture_proc(w, 200);
    struct engine_fixture_thread *a = engine_fixture_thread(w, p, 100, 4), *b = engine_fixture_thread(w, p, 101, 6);
    struct engine_fixture_thread *c = engine_fixture_thread(w, q, 200, 5), *d = engine_fixture_thread(w, q, 201, 1);
    engine_fixture_order(w, 100, 4, true);
    engine_fixture_order(w, 101, 6, true);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&a->mask, "4,6"); /* exclusive threads share the exclusive CPUs of their type */
    engine_fixture_assert_mask(&b->mask, "4,6");
    engine_fixture_assert_mask(&c->mask, "5,7");
    engine_fixture_assert_mask(&d->mask, "0-3");
    assert_true(engine_fixture_planned(w, 100)->exclusive);
    assert_false(engine_fixture_planned(w, 200)->exclusive);
    engine_fixture_run(w, TICK / 2); /* the same holds between swaps */
    assert_int_equal(w->n, 0);
    engine_fixture_order(w, 100, 4, false);
    engine_fixture_order(w, 101, 6, false);
    engine_fixture_run(w, TICK / 2);
    engine_fixture_assert_mask(&c->mask, "4-7");
}

TEST_ENGINE(other_threads_share_the_cpus_when_all_are_exclusive)
{
    engine_fixture_machine(&w->machine, 4, 1, 5);
    unsigned p = engine_fixture_proc(w, 100);
    engine_fixture_thread(w, p, 100, 4);
    struct engine_fixture_thread *t = engine_fixture_thread(w, p, 101, 4);
    engine_fixture_order(w, 100, 4, true);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&t->mask, "4"); /* the kernel accepts no empty mask */
}

TEST_ENGINE(pin_cpu_pins_an_exclusive_thread_to_its_one_cpu)
{
    w->config.enforce.pin = ASYM_PIN_CPU;
    configure(w);
    unsigned p = engine_fixture_proc(w, 100);
    struct engine_fixture_thread *a = engine_fixture_thread(w, p, 100, 4), *b = engine_fixture_thread(w, p, 101, 5);
    engine_fixture_order(w, 100, 4, true);
    engine_fixture_order(w, 101, 5, true);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&a->mask, "4");
    engine_fixture_assert_mask(&b->mask, "5");
}

/* A process with one thread that has this duty, and is planned on cpu. */
static struct engine_fixture_thread *add_thread(struct engine_fixture *w, int32_t tid, int32_t cpu, double duty)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, tid), tid, cpu);
    t->task.runnable = t->task.running = duty;
    return t;
}

static void set_limit(struct engine_fixture *w, enum asym_pin pin)
{
    w->config.enforce.exclusive_from = 0.7;
    w->config.enforce.pin = (int)pin;
    configure(w);
}

/* A game that sleeps most of the time on CPU 4; five busy threads on the four slow CPUs, one on CPU 5. */
TEST_ENGINE(a_light_thread_shares_its_cpu_with_a_crowd)
{
    set_limit(w, ASYM_PIN_TYPE);
    struct engine_fixture_thread *game = add_thread(w, 100, 4, 0.6), *busy = add_thread(w, 200, 5, 1), *crowd[5];
    for (int32_t i = 0; i < 5; i++)
        crowd[i] = add_thread(w, 300 + i, i % 4, 1);
    engine_fixture_order(w, 100, 4, true);
    engine_fixture_run(w, TICK);
    assert_false(engine_fixture_planned(w, 100)->exclusive);
    engine_fixture_assert_mask(&game->mask, "4-7");
    engine_fixture_assert_mask(&busy->mask, "5-7");
    for (int32_t i = 0; i < 5; i++)
        engine_fixture_assert_mask(&crowd[i]->mask, "0-4");
    /* Asleep for a while: nothing changes, and its CPU stays shared. */
    game->listed = false;
    engine_fixture_run_asks(w, 5 * TICK, 0);
    /* Busy for more than a second: it holds the CPU. */
    game->listed = true;
    game->task.runnable = game->task.running = 1;
    for (unsigned i = 0; i < 15; i++)
        engine_fixture_run(w, TICK);
    assert_true(engine_fixture_planned(w, 100)->exclusive);
    engine_fixture_assert_mask(&game->mask, "4");
    engine_fixture_assert_mask(&crowd[0]->mask, "0-3");
}

/* Five threads of one program on the four slow CPUs. While the kernel says that one of them is alone, the others want no CPU. */
TEST_ENGINE(mates_of_a_thread_that_is_alone_are_no_crowd)
{
    set_limit(w, ASYM_PIN_TYPE);
    add_thread(w, 100, 4, 0.6);
    struct engine_fixture_thread *alone = add_thread(w, 300, 0, 1);
    for (int32_t i = 1; i < 5; i++) {
        struct engine_fixture_thread *mate = engine_fixture_thread(w, alone->task.proc, 300 + i, i % 4);
        mate->task.runnable = mate->task.running = 1;
    }
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&alone->mask, "0-4");
    alone->task.flags |= ASYM_TASK_ALONE;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&alone->mask, "0-3");
}

/* The next turn comes soon, but the CPU would be idle for a part of each turn. Thread 304 is measured on its core type. */
TEST_ENGINE(threads_in_turns_are_a_crowd_but_not_where_they_are_measured)
{
    set_limit(w, ASYM_PIN_TYPE);
    struct engine_fixture_thread *game = add_thread(w, 100, 4, 0.6), *crowd[5];
    for (int32_t i = 0; i < 5; i++) {
        crowd[i] = add_thread(w, 300 + i, i % 4, 1);
        w->orders.of[300 + i].in_turns = true;
    }
    w->orders.of[100].in_turns = w->orders.of[303].counted = w->orders.of[304].counted = true;
    w->orders.of[303].in_turns = false;
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&game->mask, "4-7");
    for (int32_t i = 0; i < 4; i++)
        engine_fixture_assert_mask(&crowd[i]->mask, "0-4");
    engine_fixture_assert_mask(&crowd[4]->mask, "0-3");
}

/* Four busy threads have a CPU each: they keep their masks, whatever the CPU of the game does. */
TEST_ENGINE(without_a_crowd_nothing_is_shared)
{
    set_limit(w, ASYM_PIN_TYPE);
    add_thread(w, 100, 4, 0.6);
    struct engine_fixture_thread *busy = add_thread(w, 200, 5, 1), *slow = add_thread(w, 300, 0, 1);
    for (int32_t i = 1; i < 4; i++)
        add_thread(w, 300 + i, i, 1);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&busy->mask, "4-7");
    engine_fixture_assert_mask(&slow->mask, "0-3");
}

/* Another thread holds one of the two CPUs that the thread may use, and the light one shares the other. */
TEST_ENGINE(a_busy_thread_beside_a_held_and_a_shared_cpu_has_a_mask)
{
    set_limit(w, ASYM_PIN_TYPE);
    add_thread(w, 100, 4, 0.6);
    add_thread(w, 200, 5, 1);
    struct engine_fixture_thread *busy = add_thread(w, 201, 5, 1);
    busy->mask = busy->cpuset = (struct asym_mask){{0x30}};
    for (int32_t i = 0; i < 5; i++)
        add_thread(w, 300 + i, i % 4, 1);
    engine_fixture_order(w, 200, 5, true);
    engine_fixture_run(w, TICK);
    assert_false(asym_mask_empty(engine_fixture_planned(w, 201)->mask));
    engine_fixture_assert_mask(engine_fixture_planned(w, 201)->mask, "4");
}

TEST_ENGINE(the_two_of_a_crowded_cpu_get_the_shared_one_under_pin_cpu)
{
    set_limit(w, ASYM_PIN_CPU);
    struct engine_fixture_thread *light = add_thread(w, 100, 4, 0.6), *one = add_thread(w, 200, 0, 1);
    struct engine_fixture_thread *other = add_thread(w, 201, 0, 1), *alone = add_thread(w, 202, 1, 1);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&light->mask, "4-7");
    engine_fixture_assert_mask(&one->mask, "0,4");
    engine_fixture_assert_mask(&other->mask, "0,4");
    engine_fixture_assert_mask(&alone->mask, "1");
}

/* The fast CPUs 4 and 5 have light threads only, and 7 has none. */
TEST_ENGINE(light_threads_use_each_others_cpus_under_pin_cpu)
{
    set_limit(w, ASYM_PIN_CPU);
    struct engine_fixture_thread *one = add_thread(w, 100, 4, 0.5), *other = add_thread(w, 101, 5, 0.5);
    struct engine_fixture_thread *beside = add_thread(w, 102, 6, 0.5), *busy = add_thread(w, 200, 6, 1);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&one->mask, "4-5,7");
    engine_fixture_assert_mask(&other->mask, "4-5,7");
    engine_fixture_assert_mask(&beside->mask, "4-7");
    engine_fixture_assert_mask(&busy->mask, "4-6");
    engine_fixture_order(w, 200, 7, true);
    engine_fixture_run(w, TICK);
    engine_fixture_assert_mask(&one->mask, "4-6");
}

/* Its duty swings across the limit within each second, as a game's does. Masks change for the first second at most. */
TEST_ENGINE(masks_stay_while_a_duty_swings)
{
    set_limit(w, ASYM_PIN_TYPE);
    struct engine_fixture_thread *game = add_thread(w, 100, 4, 0.9);
    for (int32_t i = 0; i < 8; i++)
        add_thread(w, 200 + i, i % 4, 1);
    engine_fixture_order(w, 100, 4, true);
    size_t changes = 0;
    for (unsigned i = 0; i < 200; i++) {
        game->task.runnable = game->task.running = i % 4 < 2 ? 0.95 : 0.35;
        engine_fixture_run(w, TICK);
        changes += i >= 10 ? w->n : 0;
    }
    assert_int_equal(changes, 0);
}

TEST_ENGINE(a_target_it_may_not_have_is_not_followed)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    t->cpuset = t->mask = engine_fixture_cpus("0-3");
    engine_fixture_run_asks(w, TICK, 0);
    assert_int_equal(engine_fixture_planned(w, 100)->target, -1);
    engine_fixture_order(w, 100, INT_MAX, true);
    engine_fixture_run_asks(w, TICK, 0);
}

TEST_ENGINE(a_policy_that_asks_for_more_memory_gets_it)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    w->orders.small_arena = 3;
    run_calls(w, TICK, 1);
    assert_int_equal(w->n, 1);
}

TEST_ENGINE(a_policy_that_is_never_content_is_an_error_and_not_a_hang)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    w->orders.error = -ENOBUFS;
    assert_int_equal(engine_fixture_try_step(w, TICK), -ENOMEM);
    w->orders.error = 0;
    engine_fixture_run_asks(w, TICK, 1);
}

static int plan_without_reason(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    for (size_t i = 0; i < in->n_threads; i++)
        ret[i] = (struct asym_assignment){.cpu = 0};
    return 0;
}

TEST_ENGINE(a_policy_that_gives_no_reason_is_reported_as_such)
{
    static const struct asym_policy mute = {.name = "mute", .pin = ASYM_PIN_CPU, .plan = plan_without_reason};
    w->config.policy = &mute;
    configure(w);
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    assert_string_equal(engine_fixture_planned(w, 100)->reason->text, "the policy gives no reason");
}

TEST_ENGINE(an_error_of_the_policy_is_passed_on)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    w->orders.error = -EDOM;
    assert_int_equal(engine_fixture_try_step(w, TICK), -EDOM);
}

TEST_ENGINE(an_empty_snapshot_is_an_empty_plan)
{
    engine_fixture_run_asks(w, TICK, 0);
    assert_int_equal(w->plan->n_tasks, 0);
    assert_int_equal(w->plan->n_apps, 0);
    assert_int_equal(w->orders.calls, 0);
}

TEST_ENGINE(outcomes_that_are_missing_count_as_not_done)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_step(w, TICK);
    asym_engine_outcomes(w->engine, NULL, 0);
    engine_fixture_step_asks(w, TICK, 1);
    engine_fixture_step(w, TICK); /* no program has reported anything */
    assert_int_equal(w->n, 1);
}

TEST_ENGINE(an_sp_thread_comes_to_the_policy_with_the_begin_of_its_phase)
{
    unsigned p = engine_fixture_proc(w, 100);
    engine_fixture_thread(w, p, 100, 5);
    struct engine_fixture_thread *other = engine_fixture_thread(w, p, 101, 5);
    engine_fixture_run(w, TICK);
    other->listed = false;
    engine_fixture_run(w, TICK);
    engine_fixture_run(w, 3 * TICK);
    assert_int_equal(engine_fixture_planned(w, 100)->class, ASYM_CLASS_SP);
    assert_int_equal(w->orders.threads[0].class_since, w->now - 3 * TICK);
}

TEST_ENGINE(a_policy_with_every_snapshot_plans_at_every_snapshot)
{
    w->config.policy = &engine_fixture_policy_every_snapshot;
    configure(w);
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    for (unsigned i = 1; i <= 5; i++) {
        run_calls(w, 10 * ASYM_MSEC, i);
    }
}

/* An early plan uses up no swap and does not begin a new swap period. */
TEST_ENGINE(a_reported_phase_is_planned_for_at_once)
{
    w->config.policy = &engine_fixture_policy_reacts;
    configure(w);
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    run_calls(w, TICK, 1);
    assert_int_equal(w->orders.since_swap, 0);
    run_calls(w, 10 * ASYM_MSEC, 1);
    w->urgent = ASYM_URGENT_REPORT;
    run_calls(w, 20 * ASYM_MSEC, 2);
    assert_int_equal(w->orders.since_swap, 30 * ASYM_MSEC);
    w->urgent = ASYM_URGENT_NOT;
    run_calls(w, 60 * ASYM_MSEC, 2);
    run_calls(w, 10 * ASYM_MSEC, 3);
    assert_int_equal(w->orders.since_swap, 0);
}

/* Phases that come just before each sample would else leave it no plan with measurements. */
TEST_ENGINE(a_refreshed_snapshot_does_not_take_the_place_of_a_sample)
{
    static const struct {
        const struct asym_policy *policy;
        unsigned early;
    } rows[] = {{&engine_fixture_policy_type, 0}, {&engine_fixture_policy_reacts, 1}};
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        w->config.policy = rows[i].policy;
        configure(w);
        engine_fixture_run(w, TICK);
        const unsigned before = w->orders.calls;
        w->refreshed = true;
        w->urgent = ASYM_URGENT_PHASE;
        run_calls(w, TICK - ASYM_MSEC, before + rows[i].early);
        w->refreshed = false;
        w->urgent = ASYM_URGENT_NOT;
        run_calls(w, ASYM_MSEC, before + rows[i].early + 1);
        assert_int_equal(w->orders.interval, TICK);
        assert_int_equal(w->orders.since_swap, 0);
    }
}

static void sleep_now(struct asym_task *task, bool does)
{
    task->state = does ? 'S' : 'R';
    task->runnable = task->running = does ? 0 : 1;
}

/* The last plan goes on: the exchange counts as none. A thread that this plan did not have may take a CPU in it. */
TEST_ENGINE(a_phase_that_the_kernel_tells_exchanges_cpus_of_the_last_plan)
{
    w->config.policy = &engine_fixture_policy_exchanges;
    configure(w);
    const unsigned p = engine_fixture_proc(w, 100);
    engine_fixture_thread(w, p, 100, 5);
    engine_fixture_thread(w, p, 101, 2);
    w->orders.again = 50 * ASYM_MSEC;
    asym_mask_set(&w->orders.spare, 7);
    run_calls(w, TICK, 1);
    w->refreshed = true;
    w->urgent = ASYM_URGENT_PHASE;
    run_calls(w, 10 * ASYM_MSEC, 1);
    assert_int_equal(w->orders.exchanges, 1);
    assert_int_equal(w->orders.interval, 0);
    assert_int_equal(engine_fixture_planned(w, 100)->target, 2);
    assert_int_equal(engine_fixture_planned(w, 101)->target, 5);
    engine_fixture_assert_mask(&engine_fixture_action(w, 101)->mask, "5");
    assert_int_equal(asym_engine_again(w->engine), 40 * ASYM_MSEC);
    sleep_now(&engine_fixture_thread(w, p, 102, 3)->task, false);
    sleep_now(&w->threads[0].task, true);
    run_calls(w, 10 * ASYM_MSEC, 1);
    engine_fixture_assert_mask(&engine_fixture_action(w, 102)->mask, "2");
    engine_fixture_assert_mask(&engine_fixture_action(w, 100)->mask, "0-7");
    sleep_now(&w->threads[0].task, false);
    w->urgent = ASYM_URGENT_NOT;
    run_calls(w, 10 * ASYM_MSEC, 1);
    assert_int_equal(w->orders.exchanges, 2);
    assert_int_equal(engine_fixture_planned(w, 102)->target, 2);
    assert_int_equal(engine_fixture_planned(w, 100)->target, -1);
    w->urgent = ASYM_URGENT_REPORT; /* of a program, which asks for a plan */
    run_calls(w, 10 * ASYM_MSEC, 2);
    assert_int_equal(w->orders.exchanges, 2);
    assert_int_equal(engine_fixture_planned(w, 100)->target, 5);
    w->refreshed = false;
    w->urgent = ASYM_URGENT_PHASE;
    run_calls(w, 60 * ASYM_MSEC, 3);
    assert_int_equal(w->orders.interval, TICK);
    assert_int_equal(w->orders.exchanges, 2);
}

/* The order to go on comes between two samples, and the plan of before the pause may be hours old. */
TEST_ENGINE(a_resumption_is_planned_for_at_once)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    w->paused = true;
    run_calls(w, 10 * TICK, 1);
    w->paused = false;
    w->refreshed = true;
    run_calls(w, TICK / 2, 2);
}

TEST_ENGINE(a_policy_that_uses_no_reports_waits_for_its_period)
{
    engine_fixture_thread(w, engine_fixture_proc(w, 100), 100, 5);
    engine_fixture_run(w, TICK);
    w->urgent = ASYM_URGENT_REPORT;
    run_calls(w, 20 * ASYM_MSEC, 1);
}

/* The threads with a sample, and those whose sample belongs to one core type. */
TEST_ENGINE(a_sample_comes_to_the_policy_with_the_core_type_it_is_of)
{
    unsigned p = engine_fixture_proc(w, 100);
    engine_fixture_thread(w, p, 100, 5);
    engine_fixture_thread(w, p, 101, 2)->instructions = 1e9;
    engine_fixture_thread(w, p, 102, 6);
    engine_fixture_thread(w, p, 103, 6)->instructions = 2e9;
    engine_fixture_run(w, TICK);
    assert_null(w->orders.threads[0].sample);
    assert_int_equal(w->orders.threads[1].sampled_on, -1); /* its mask allowed both core types */
    engine_fixture_run(w, TICK);
    static const struct {
        double instructions;
        int type;
    } want[] = {{0, -1}, {1e9, 1}, {0, -1}, {2e9, 0}};
    for (size_t i = 0; i < 4; i++) {
        const struct asym_policy_thread *t = &w->orders.threads[i];
        assert_int_equal(t->sampled_on, want[i].type);
        assert_true(!t->sample == !(want[i].instructions > 0));
        assert_true(!t->sample || !(t->sample->instructions < want[i].instructions));
    }
    /* The loop of one that spins is not its work. */
    w->threads[1].task.flags = ASYM_TASK_SPINNING;
    engine_fixture_run(w, TICK);
    assert_null(w->orders.threads[1].sample);
    assert_non_null(w->orders.threads[3].sample);
}

TEST_ENGINE(threads_to_be_counted_are_in_the_plan)
{
    unsigned p = engine_fixture_proc(w, 100);
    engine_fixture_thread(w, p, 100, 5);
    engine_fixture_thread(w, p, 101, 5);
    w->orders.of[101].counted = true;
    engine_fixture_run(w, TICK);
    assert_false(engine_fixture_planned(w, 100)->counted);
    assert_true(engine_fixture_planned(w, 101)->counted);
    /* no plan is due, but the monitoring goes on */
    engine_fixture_run(w, TICK / 4);
    assert_true(engine_fixture_planned(w, 101)->counted);
}

/* A thread that runs on one CPU and has another as its target. CPUs 0-3 are slow, 4-7 fast; two LLCs. */
static struct engine_fixture_thread *runner(struct engine_fixture *w, unsigned proc, int32_t tid, int32_t on,
                                            int32_t to)
{
    struct engine_fixture_thread *t = engine_fixture_thread(w, proc, tid, to);
    t->task.cpu = on;
    return t;
}

/* -1: no transit CPU */
static int transit_cpu(const struct engine_fixture *w, int32_t tid)
{
    const struct asym_action *a = engine_fixture_action(w, tid);
    assert_non_null(a);
    assert_true(a->transit_cpu == 0 || asym_mask_has(&a->mask, (int)a->transit_cpu - 1));
    return (int)a->transit_cpu - 1;
}

/* Threads 100, 101 and so on: the CPU on which each runs, its target, the CPU to which it goes first, and its kind. */
enum { NONE = -1, ANY = -2 }; /* no transit CPU; not asserted */
enum { OF_PROGRAM, SLEEPS, EXCLUSIVE, IGNORED, SELF };

static const struct placement {
    const char *name;
    int32_t favoured, sibling; /* this CPU is favoured; this one is on the core of the one before it; 0: none */
    size_t n;
    int32_t rows[8][4];
    const char *mask; /* of thread 100; NULL: not asserted */
} cases[] = {
    /* One that stays on its CPU needs no transit CPU. */
    {"it goes to a CPU where no thread runs", .n = 4, .mask = "0-3",
     .rows = {{4, 0, 2}, {0, 1, NONE}, {1, 2, ANY}, {3, 3, ANY}}},
    /* The serial thread takes a fast CPU, and the thread there gets the CPU that the serial one left. */
    {"one that makes room gets the CPU that is left", .n = 5, .mask = "4",
     .rows = {{1, 4, NONE, EXCLUSIVE}, {4, 3, 1}, {0, 0, ANY}, {2, 2, ANY}, {3, 3, ANY}}},
    {"of idle CPUs that are equal it gets the favoured one", .n = 2, .favoured = 2, .rows = {{4, 0, 2}, {0, 0, ANY}}},
    {"no two are sent to one CPU", .n = 8,
     .rows = {{0, 4, 4}, {1, 5, 5}, {2, 6, 6}, {3, 7, 7}, {4, 0, 0}, {5, 1, 1}, {6, 2, 2}, {7, 3, 3}}},
    {"without an idle CPU the kernel chooses", .n = 5,
     .rows = {{0, 0, ANY}, {1, 1, ANY}, {2, 2, ANY}, {3, 3, ANY}, {4, 0, NONE}}},
    {"one that sleeps takes no CPU and needs none", .n = 3,
     .rows = {{0, 0, ANY, SLEEPS}, {4, 1, NONE, SLEEPS}, {5, 0, 0}}},
    {"an unsteered thread occupies its CPU too", .n = 3, .rows = {{2, 2, ANY, IGNORED}, {4, 2, 1}, {0, 0, ANY}}},
    {"the CPU of asymd counts as idle but comes last", .n = 5,
     .rows = {{2, 2, ANY, SELF}, {4, 2, 0}, {5, 2, 2}, {1, 1, ANY}, {3, 3, ANY}}},
    {"idle cores come before idle siblings", .n = 3, .sibling = 3, .rows = {{4, 2, 0}, {3, 3, ANY}, {1, 1, ANY}}},
};

static void check_case(void **state)
{
    const struct placement *c = *state;
    ENGINE_FIXTURE(w);
    const unsigned p = engine_fixture_proc(&w, 100), ignored = engine_fixture_proc(&w, 200),
                   self = engine_fixture_proc(&w, 300);
    w.procs[ignored].rule = ASYM_RULE_IGNORE;
    w.procs[self].flags = ASYM_PROC_SELF;
    if (c->favoured)
        w.machine.cpus[c->favoured].favour = 1;
    if (c->sibling)
        w.machine.cpus[c->sibling].core = w.machine.cpus[c->sibling - 1].core;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    for (size_t k = 0; k < c->n; k++) {
        const int32_t *row = c->rows[k], tid = 100 + (int32_t)k, how = row[3];
        const unsigned proc = how == IGNORED ? ignored : how == SELF ? self : p;
        runner(&w, proc, tid, row[0], row[1])->task.state = how == SLEEPS ? 'S' : 'R';
        engine_fixture_order(&w, tid, row[1], how == EXCLUSIVE);
    }
    engine_fixture_step(&w, TICK);
    for (size_t k = 0; k < c->n; k++)
        if (c->rows[k][2] != ANY)
            assert_int_equal(transit_cpu(&w, 100 + (int32_t)k), c->rows[k][2]);
    if (c->mask)
        engine_fixture_assert_mask(&engine_fixture_action(&w, 100)->mask, c->mask);
}

TEST_ROWS(check_case, cases)

/* 100 takes CPU 4, and would leave its CPU for one where 101 still runs, if its action came first. */
TEST_ENGINE(others_leave_a_cpu_before_a_thread_takes_it_exclusively)
{
    static const int32_t rows[][2] = {{1, 4}, {4, 3}, {0, 0}, {5, 2}, {5, 5}}, order[] = {101, 103, 100, 104, 102};
    const unsigned p = engine_fixture_proc(w, 100);
    for (int32_t i = 0; i < 5; i++)
        runner(w, p, 100 + i, rows[i][0], rows[i][1]);
    engine_fixture_order(w, 100, 4, true);
    engine_fixture_order(w, 104, 5, true);
    engine_fixture_step_asks(w, TICK, ASYM_LENGTH(order));
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(w->actions[i].id.tid, order[i]);
}

/* A refresh repeats the CPU of the last sample: the engine must not move the thread off it a second time. */
TEST_ENGINE(a_thread_that_has_moved_occupies_its_new_cpu)
{
    const unsigned p = engine_fixture_proc(w, 100);
    struct engine_fixture_thread *t = runner(w, p, 100, 5, 5);
    runner(w, p, 101, 4, 3);
    for (int32_t i = 0; i < 3; i++)
        runner(w, p, 102 + i, i, i);
    engine_fixture_run(w, TICK);
    assert_int_equal(transit_cpu(w, 101), 3);
    engine_fixture_order(w, 100, 3, false);
    engine_fixture_step(w, TICK);
    assert_int_equal(t->task.cpu, 5);
    assert_null(engine_fixture_action(w, 101));
    assert_int_equal(transit_cpu(w, 100), -1);
}

TEST_MAIN
