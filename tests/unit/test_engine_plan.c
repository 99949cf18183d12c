/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a policy is shown and when, and how its targets become masks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/mask.h"
#include "support/world.h"

#define TICK (100 * ASYM_MSEC)

static void configure(struct world *w)
{
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
}

static void mappings_change_at_the_swap_period_only(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    assert_int_equal(w->orders.calls, 1);
    world_order(w, 100, 1, false);
    for (int i = 0; i < 3; i++) {
        world_run(w, 25 * ASYM_MSEC);
        assert_int_equal(w->orders.calls, 1);
        assert_int_equal(w->n, 0);
        assert_int_equal(world_planned(w, 100)->target, 5);
        world_assert_mask(&world_planned(w, 100)->mask, "4-7");
    }
    world_run(w, 25 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 2);
    assert_int_equal(w->orders.interval, 100 * ASYM_MSEC);
    world_assert_mask(&t->mask, "0-3");
}

static void a_thread_seen_between_two_swaps_waits(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    world_thread(w, world_proc(w, 200), 200, 5);
    world_run(w, TICK / 2);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 200)->target, -1);
    assert_int_equal(world_planned(w, 200)->reason, ASYM_WHY_NEXT_SWAP);
    world_run(w, TICK / 2);
    assert_int_equal(world_action(w, 200)->kind, ASYM_ACTION_STEER);
}

static void a_steered_thread_that_wakes_between_two_swaps_keeps_its_mask(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    struct world_thread *t = world_thread(w, world_proc(w, 200), 200, 6);
    world_run(w, TICK);
    t->listed = false;
    world_run(w, TICK);
    t->listed = true;
    world_run(w, TICK / 2);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 200)->target, 6);
    world_assert_mask(&world_planned(w, 200)->mask, "4-7");
}

static void a_timer_that_is_a_little_early_does_not_lose_a_period(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    for (unsigned i = 1; i <= 20; i++) {
        world_run(w, i % 2 ? TICK - 300 : TICK + 300);
        assert_int_equal(w->orders.calls, i);
    }
    /* nor does it gain any: always early, it is held back in the end */
    unsigned before = w->orders.calls;
    for (unsigned i = 0; i < 1000; i++)
        world_run(w, 96 * ASYM_MSEC);
    assert_in_range(w->orders.calls - before, 900, 961);
}

static void a_changed_machine_is_planned_for_at_once(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    w->machine.generation++;
    world_run(w, 10 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 2);
    world_run(w, 10 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 2);
}

static void changed_settings_are_planned_for_at_once(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    w->config.enforce.pin = ASYM_PIN_CPU;
    configure(w);
    world_run(w, 10 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 2);
    world_assert_mask(&w->threads[0].mask, "5");
}

static void the_same_policy_keeps_its_state_and_a_new_one_starts_from_zero(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    for (unsigned char i = 0; i < 3; i++) {
        world_run(w, TICK);
        assert_int_equal(w->orders.policy_state, i);
        assert_int_equal(w->orders.state[0], i);
    }
    configure(w);
    world_run(w, TICK);
    assert_int_equal(w->orders.policy_state, 3);
    assert_int_equal(w->orders.state[0], 3);
    assert_int_equal(w->orders.interval, TICK);
    w->config.policy = &world_policy_cpu;
    configure(w);
    world_run(w, TICK);
    assert_int_equal(w->orders.policy_state, 0);
    assert_int_equal(w->orders.state[0], 0);
    assert_int_equal(w->orders.interval, 0);
    world_run(w, TICK);
    assert_int_equal(w->orders.state[0], 1);
    w->config.policy = &world_policy_type;
    configure(w);
    world_run(w, TICK);
    assert_int_equal(w->orders.state[0], 0);
}

static void another_policy_takes_over_what_is_steered(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    struct world_thread *asleep = world_thread(w, world_proc(w, 200), 200, 5);
    world_run(w, TICK);
    asleep->listed = false;
    w->config.policy = &world_policy_cpu;
    configure(w);
    world_run(w, 10 * ASYM_MSEC);
    world_assert_mask(&t->mask, "5");
    /* what does not run is given back: the new policy has not asked for it */
    world_assert_mask(&asleep->mask, "0-7");
    world_order(w, 100, -1, false);
    world_run(w, TICK);
    world_assert_mask(&t->mask, "0-7");
}

static void per_thread_state_is_zero_for_a_new_thread_and_stays_with_its_thread(void **state)
{
    struct world *w = *state;
    unsigned p = world_proc(w, 100);
    struct world_thread *first = world_thread(w, p, 100, 5);
    world_run(w, TICK);
    for (int32_t tid = 101; tid < 140; tid++)
        world_thread(w, p, tid, 5);
    world_run(w, TICK);
    assert_int_equal(w->orders.state[0], 1);
    assert_int_equal(w->orders.state[39], 0);
    first->listed = false;
    world_run(w, TICK);
    first->listed = true;
    world_run(w, TICK);
    assert_int_equal(w->orders.state[0], 2);
    assert_int_equal(w->orders.state[39], 2);
}

static void a_policy_sees_active_applications_with_steerable_threads_only(void **state)
{
    struct world *w = *state;
    unsigned a = world_proc(w, 100), b = world_proc(w, 200), c = world_proc(w, 300), d = world_proc(w, 400);
    world_thread(w, a, 100, 5)->task.runnable = 0.2;
    world_thread(w, b, 200, 5)->mask = world_cpus("1");
    world_thread(w, c, 300, 5);
    world_thread(w, c, 301, 5)->mask = world_cpus("1");
    world_thread(w, c, 302, 5);
    world_thread(w, c, 303, 5)->task.runnable = 0.5;
    world_thread(w, d, 400, 5);
    world_run(w, TICK);
    assert_int_equal(w->orders.n_apps, 2);
    assert_int_equal(w->orders.n_threads, 4);
    assert_int_equal(w->orders.apps[0].id.tgid, 300);
    assert_int_equal(w->orders.apps[0].first_thread, 0);
    assert_int_equal(w->orders.apps[0].n_threads, 3);
    assert_float_equal(w->orders.apps[0].runnable, 3.5, 1e-9);
    assert_int_equal(w->orders.apps[1].first_thread, 3);
    assert_int_equal(w->orders.threads[1].id.tid, 302);
    assert_int_equal(w->orders.threads[3].app, 1);
}

static void equal_sets_have_equal_addresses(void **state)
{
    struct world *w = *state;
    unsigned p = world_proc(w, 100);
    for (int32_t tid = 100; tid < 104; tid++) {
        struct world_thread *t = world_thread(w, p, tid, 2);
        t->cpuset = t->mask = world_cpus(tid % 2 ? "0-3" : "2-5");
    }
    world_run(w, TICK);
    assert_ptr_equal(w->orders.threads[0].may, w->orders.threads[2].may);
    assert_ptr_equal(w->orders.threads[1].may, w->orders.threads[3].may);
    assert_ptr_not_equal(w->orders.threads[0].may, w->orders.threads[1].may);
}

static void home_is_the_last_target_in_force_else_where_it_ran(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->task.cpu = 2;
    world_step(w, TICK);
    assert_int_equal(w->orders.threads[0].home, 2);
    world_answer(w, ASYM_VERDICT_RETRY, -EAGAIN);
    world_run(w, TICK);
    assert_int_equal(w->orders.threads[0].home, 2); /* 5 was planned, but not done */
    world_order(w, 100, 1, false);
    world_step(w, TICK);
    assert_int_equal(w->orders.threads[0].home, 5);
    world_answer(w, ASYM_VERDICT_RETRY, -EAGAIN);
    world_run(w, TICK);
    assert_int_equal(w->orders.threads[0].home, 5); /* still: 1 was not done */
    world_order(w, 100, 3, false);                  /* the same mask: nothing to do, and so in force */
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
    world_run(w, TICK);
    assert_int_equal(w->orders.threads[0].home, 3);
}

static void home_is_nowhere_when_it_may_not_be_there(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 2);
    t->cpuset = world_cpus("2-3");
    t->task.cpu = 6;
    world_run(w, TICK);
    assert_int_equal(w->orders.threads[0].home, -1);
}

static void nothing_to_narrow_is_nothing_to_do(void **state)
{
    struct world *w = *state;
    world_machine(&w->machine, 8, 0, 4);
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->mask = world_cpus("0-63"); /* as the kernel shows it where 64 CPUs are possible */
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->target, 5);
    t->listed = false;
    world_run(w, 10 * ASYM_SEC);
    assert_int_equal(w->n, 0); /* not steered: nothing to give back */
}

static void pin_says_how_wide_the_mask_is(void **state)
{
    (void)state;
    static const struct {
        int pin;
        const struct asym_policy *policy;
        int32_t cpu;
        const char *mask;
    } rows[] = {
        {ASYM_PIN_CPU, &world_policy_type, 5, "5"},
        {ASYM_PIN_LLC, &world_policy_type, 5, "4-5"},
        {ASYM_PIN_LLC, &world_policy_type, 1, "0-1"},
        {ASYM_PIN_TYPE, &world_policy_cpu, 5, "4-7"},
        {ASYM_PIN_TYPE, &world_policy_cpu, 0, "0-3"},
        {-1, &world_policy_type, 6, "4-7"},
        {-1, &world_policy_cpu, 6, "6"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct world w;
        world_init(&w);
        world_machine(&w.machine, 4, 4, 2);
        w.config.policy = rows[i].policy;
        w.config.enforce.pin = rows[i].pin;
        configure(&w);
        struct world_thread *t = world_thread(&w, world_proc(&w, 100), 100, rows[i].cpu);
        world_run(&w, TICK);
        world_assert_mask(&t->mask, rows[i].mask);
        world_done(&w);
    }
}

static void pin_llc_stays_within_the_targets_type(void **state)
{
    struct world *w = *state;
    world_machine(&w->machine, 4, 4, 8);
    w->config.enforce.pin = ASYM_PIN_LLC;
    configure(w);
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    world_assert_mask(&t->mask, "4-7");
}

static void a_claim_is_exclusive(void **state)
{
    struct world *w = *state;
    unsigned p = world_proc(w, 100), q = world_proc(w, 200);
    struct world_thread *a = world_thread(w, p, 100, 4), *b = world_thread(w, p, 101, 6);
    struct world_thread *c = world_thread(w, q, 200, 5), *d = world_thread(w, q, 201, 1);
    world_order(w, 100, 4, true);
    world_order(w, 101, 6, true);
    world_run(w, TICK);
    world_assert_mask(&a->mask, "4,6"); /* claimers share what is claimed of their type */
    world_assert_mask(&b->mask, "4,6");
    world_assert_mask(&c->mask, "5,7");
    world_assert_mask(&d->mask, "0-3");
    assert_true(world_planned(w, 100)->claim);
    assert_false(world_planned(w, 200)->claim);
    world_run(w, TICK / 2); /* and stays so between swaps */
    assert_int_equal(w->n, 0);
    world_order(w, 100, 4, false);
    world_order(w, 101, 6, false);
    world_run(w, TICK / 2);
    world_assert_mask(&c->mask, "4-7");
}

static void where_all_is_claimed_the_others_share(void **state)
{
    struct world *w = *state;
    world_machine(&w->machine, 4, 1, 5);
    unsigned p = world_proc(w, 100);
    world_thread(w, p, 100, 4);
    struct world_thread *t = world_thread(w, p, 101, 4);
    world_order(w, 100, 4, true);
    world_run(w, TICK);
    world_assert_mask(&t->mask, "4"); /* an empty mask cannot be set */
}

static void a_claim_under_pin_cpu_is_just_that_cpu(void **state)
{
    struct world *w = *state;
    w->config.enforce.pin = ASYM_PIN_CPU;
    configure(w);
    unsigned p = world_proc(w, 100);
    struct world_thread *a = world_thread(w, p, 100, 4), *b = world_thread(w, p, 101, 5);
    world_order(w, 100, 4, true);
    world_order(w, 101, 5, true);
    world_run(w, TICK);
    world_assert_mask(&a->mask, "4");
    world_assert_mask(&b->mask, "5");
}

static void a_target_it_may_not_have_is_not_followed(void **state)
{
    struct world *w = *state;
    struct world_thread *t = world_thread(w, world_proc(w, 100), 100, 5);
    t->cpuset = t->mask = world_cpus("0-3");
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(world_planned(w, 100)->target, -1);
    world_order(w, 100, INT_MAX, true);
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
}

static void a_policy_that_asks_for_more_memory_gets_it(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    w->orders.small_arena = 3;
    world_run(w, TICK);
    assert_int_equal(w->orders.calls, 1);
    assert_int_equal(w->n, 1);
}

static void a_policy_that_is_never_content_is_an_error_and_not_a_hang(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    w->orders.error = -ENOBUFS;
    assert_int_equal(world_try_step(w, TICK), -ENOMEM);
    w->orders.error = 0;
    world_run(w, TICK);
    assert_int_equal(w->n, 1);
}

static void an_error_of_the_policy_is_passed_on(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    w->orders.error = -EDOM;
    assert_int_equal(world_try_step(w, TICK), -EDOM);
}

static void an_empty_snapshot_is_an_empty_plan(void **state)
{
    struct world *w = *state;
    world_run(w, TICK);
    assert_int_equal(w->n, 0);
    assert_int_equal(w->plan->n_tasks, 0);
    assert_int_equal(w->plan->n_apps, 0);
    assert_int_equal(w->orders.calls, 0);
}

static void outcomes_that_are_missing_count_as_not_done(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    world_step(w, TICK);
    asym_engine_outcomes(w->engine, NULL, 0);
    world_step(w, TICK);
    assert_int_equal(w->n, 1);
    world_step(w, TICK); /* nobody even said anything */
    assert_int_equal(w->n, 1);
}

static void an_sp_thread_is_told_how_much_of_its_boost_is_left(void **state)
{
    struct world *w = *state;
    unsigned p = world_proc(w, 100);
    world_thread(w, p, 100, 5);
    struct world_thread *other = world_thread(w, p, 101, 5);
    world_run(w, TICK);
    other->listed = false;
    world_run(w, TICK);
    world_run(w, 3 * TICK);
    assert_int_equal(world_planned(w, 100)->class, ASYM_CLASS_SP);
    assert_int_equal(w->orders.threads[0].class_since, w->now - 3 * TICK);
}

static void a_policy_that_keeps_its_own_period_is_asked_at_every_look(void **state)
{
    struct world *w = *state;
    w->config.policy = &world_policy_own_period;
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
    world_thread(w, world_proc(w, 100), 100, 5);
    for (unsigned i = 1; i <= 5; i++) {
        world_run(w, 10 * ASYM_MSEC);
        assert_int_equal(w->orders.calls, i);
    }
}

/* And an early plan uses up no swap, nor is it taken for a new turn. */
static void what_a_program_tells_of_is_not_waited_for(void **state)
{
    struct world *w = *state;
    w->config.policy = &world_policy_reacts;
    assert_int_equal(asym_engine_configure(w->engine, &w->config), 0);
    world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    assert_int_equal(w->orders.calls, 1);
    assert_int_equal(w->orders.in_turn, 0);
    world_run(w, 10 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 1);
    w->urgent = true;
    world_run(w, 20 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 2);
    assert_int_equal(w->orders.in_turn, 30 * ASYM_MSEC);
    w->urgent = false;
    world_run(w, 60 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 2);
    world_run(w, 10 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 3);
    assert_int_equal(w->orders.in_turn, 0);
}

static void but_by_a_policy_that_has_no_use_for_it(void **state)
{
    struct world *w = *state;
    world_thread(w, world_proc(w, 100), 100, 5);
    world_run(w, TICK);
    w->urgent = true;
    world_run(w, 20 * ASYM_MSEC);
    assert_int_equal(w->orders.calls, 1);
}

/* Who was counted, and of whom it can be said on which core type. */
static void a_sample_comes_to_the_policy_with_the_core_type_it_is_of(void **state)
{
    struct world *w = *state;
    unsigned p = world_proc(w, 100);
    world_thread(w, p, 100, 5);
    world_thread(w, p, 101, 2)->instructions = 1e9;
    world_thread(w, p, 102, 6);
    world_thread(w, p, 103, 6)->instructions = 2e9;
    world_run(w, TICK);
    assert_null(w->orders.threads[0].sample);
    assert_int_equal(w->orders.threads[1].sampled_on, -1); /* it could run anywhere */
    world_run(w, TICK);
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
}

static void who_is_to_be_counted_is_in_the_plan(void **state)
{
    struct world *w = *state;
    unsigned p = world_proc(w, 100);
    world_thread(w, p, 100, 5);
    world_thread(w, p, 101, 5);
    w->orders.of[101].monitor = true;
    world_run(w, TICK);
    assert_false(world_planned(w, 100)->monitor);
    assert_true(world_planned(w, 101)->monitor);
    /* nobody asks for it between two plans, but it goes on */
    world_run(w, TICK / 4);
    assert_true(world_planned(w, 101)->monitor);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        T(mappings_change_at_the_swap_period_only),
        T(a_thread_seen_between_two_swaps_waits),
        T(a_steered_thread_that_wakes_between_two_swaps_keeps_its_mask),
        T(a_timer_that_is_a_little_early_does_not_lose_a_period),
        T(a_changed_machine_is_planned_for_at_once),
        T(changed_settings_are_planned_for_at_once),
        T(the_same_policy_keeps_its_state_and_a_new_one_starts_from_zero),
        T(another_policy_takes_over_what_is_steered),
        T(per_thread_state_is_zero_for_a_new_thread_and_stays_with_its_thread),
        T(a_policy_sees_active_applications_with_steerable_threads_only),
        T(equal_sets_have_equal_addresses),
        T(home_is_the_last_target_in_force_else_where_it_ran),
        T(home_is_nowhere_when_it_may_not_be_there),
        T(nothing_to_narrow_is_nothing_to_do),
        T(pin_says_how_wide_the_mask_is),
        T(pin_llc_stays_within_the_targets_type),
        T(a_claim_is_exclusive),
        T(where_all_is_claimed_the_others_share),
        T(a_claim_under_pin_cpu_is_just_that_cpu),
        T(a_target_it_may_not_have_is_not_followed),
        T(a_policy_that_asks_for_more_memory_gets_it),
        T(a_policy_that_is_never_content_is_an_error_and_not_a_hang),
        T(an_error_of_the_policy_is_passed_on),
        T(an_empty_snapshot_is_an_empty_plan),
        T(outcomes_that_are_missing_count_as_not_done),
        T(an_sp_thread_is_told_how_much_of_its_boost_is_left),
        T(a_policy_that_keeps_its_own_period_is_asked_at_every_look),
        T(what_a_program_tells_of_is_not_waited_for),
        T(but_by_a_policy_that_has_no_use_for_it),
        T(a_sample_comes_to_the_policy_with_the_core_type_it_is_of),
        T(who_is_to_be_counted_is_in_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
