/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of none, mintlp, busyfcs and rr, with results computed by hand. */
#include <math.h>
#include <string.h>

#include <asym/engine.h>

#include "base/macro.h"
#include "base/mask.h"
#include "config/settings.h"
#include "support/reason-text.h"
#include "support/test.h"
#include "support/turns.h"

TEST(none_steers_nothing_but_classifies)
{
    TURNS(w, "none", 4, 2, 1, 6);
    turn(&w);
    assert_int_equal(w.n_actions, 0);
    assert_int_equal(w.plan->apps[0].class, ASYM_CLASS_MP);
    assert_int_equal(w.plan->apps[0].phase, ASYM_PHASE_SERIAL);
    assert_int_equal(w.plan->apps[1].class, ASYM_CLASS_HP);
    assert_int_equal(w.plan->apps[1].phase, ASYM_PHASE_PARALLEL);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(w.plan->tasks[i].target, -1);
        assert_why(w.plan->tasks[i].reason, "steers nothing");
    }
}

TEST(mintlp_fills_fast_cpus_in_order_of_parallelism)
{
    TURNS(w, "mintlp", 6, 3, 4, 1, 2); /* threads 0-3, 4, 5-6 */
    turn(&w);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(is_fast(&w, i), i >= 4);
        assert_why(w.plan->tasks[i].reason, i >= 4 ? "its program has few" : "programs with fewer");
        assert_false(w.plan->tasks[i].exclusive);
    }
    for (int c = 0; c < 3; c++)
        assert_int_equal(count_on(&w, c), 1);
    for (int c = 3; c < 6; c++)
        assert_in_range(count_on(&w, c), 1, 2);
}

TEST(under_mintlp_a_thread_that_runs_alone_goes_before_the_others_of_its_program)
{
    TURNS(w, "mintlp", 4, 1, 3);
    turn(&w);
    const unsigned slow = is_fast(&w, 0) ? 1 : 0;
    w.load->tasks[slow].flags = ASYM_TASK_ALONE;
    turn(&w);
    assert_true(is_fast(&w, slow));
}

TEST(mintlp_knows_no_fairness_and_does_not_migrate_for_noise)
{
    TURNS(w, "mintlp", 4, 2, 2, 2);
    turn(&w);
    for (unsigned k = 0; k < 10; k++) {
        /* The runnable counts are 2.0 and 1.96, and change sides each time. */
        gen_load_share(w.load, 0, k % 2 ? 1 : 0.98);
        gen_load_share(w.load, 1, k % 2 ? 0.98 : 1);
        turn(&w);
        assert_int_equal(w.n_actions, 0);
        assert_true(is_fast(&w, 0) && is_fast(&w, 1));
    }
}

TEST(busyfcs_keeps_fast_cpus_busy_before_slow_ones)
{
    for (unsigned n = 1; n <= 12; n++) {
        TURNS(w, "busyfcs", 6, 2, n);
        for (size_t i = 0; i < n; i++)
            w.load->tasks[i].cpu = 5;
        turn(&w);
        /* Each CPU has an even share; fast CPUs get the extra threads first. */
        for (int c = 0; c < 6; c++)
            assert_in_range(count_on(&w, c), n / 6, n / 6 + (n % 6 != 0));
        for (int c = 0; c < 2; c++)
            assert_int_equal(count_on(&w, c), n / 6 + (n % 6 > (unsigned)c));
        for (size_t i = 0; i < n; i++)
            assert_why(w.plan->tasks[i].reason,
                       is_fast(&w, i) ? "fast CPUs are filled first" : "every fast CPU is busy");
        turn(&w);
        assert_int_equal(w.n_actions, 0);
    }
}

/* Sets of CPUs are filled one after the other: the second one put a thread beside that of the first, which has an idle core. */
TEST(busyfcs_leaves_no_core_idle_beside_two_threads_of_another)
{
    static const uint64_t cpus[] = {1 << 0 | 1 << 2, 1 << 1 | 1 << 3, 1 << 1 | 1 << 3};
    TURNS(w, "busyfcs", 4, 2, 3);
    w.machine.cpus[1].core = w.machine.cpus[0].core;
    w.machine.smt_gain = 0.27;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    for (size_t i = 0; i < 3; i++)
        w.load->masks[i] = w.load->cpusets[i] = (struct asym_mask){.w = {cpus[i]}};
    gen_load_share_masks(w.load);
    turn(&w);
    for (int c = 1; c < 4; c++)
        assert_int_equal(count_on(&w, c), 1);
}

TEST(rr_gives_all_threads_equal_fast_time)
{
    unsigned had[7] = {0};
    TURNS(w, "rr", 7, 2, 1, 6); /* parallelism does not count */
    count_turns(&w, 70, had);
    for (size_t i = 0; i < 7; i++)
        assert_in_range(had[i], 19, 21);
}

/* It slept, or had a slow CPU while it spun, and claims nothing for that. */
TEST(rr_does_not_let_a_new_thread_or_one_that_spun_catch_up)
{
    for (unsigned spins = 0; spins < 2; spins++) {
        unsigned had[3] = {0};
        TURNS(w, "rr", 3, 1, 1, 1, 1);
        w.load->tasks[2].flags = spins ? ASYM_TASK_SPINNING : 0;
        if (!spins)
            gen_load_share(w.load, 2, 0);
        count_turns(&w, 40, had);
        assert_true(!spins || had[2] == 0);
        if (spins)
            assert_why(w.plan->tasks[2].reason, "spins at a barrier");
        if (!spins)
            gen_load_share(w.load, 2, 1);
        w.load->tasks[2].flags = 0;
        memset(had, 0, sizeof had);
        count_turns(&w, 30, had);
        for (size_t i = 0; i < 3; i++)
            assert_in_range(had[i], 9, 11);
    }
}

/* A thread that is first at a barrier is so because it had the fast CPU. */
TEST(rr_charges_a_thread_for_the_time_before_it_spins)
{
    TURNS(w, "rr", 3, 1, 1, 1, 1);
    turn(&w);
    assert_true(is_fast(&w, 0));
    w.load->tasks[0].flags = ASYM_TASK_SPINNING;
    turn(&w);
    w.load->tasks[0].flags = 0;
    turn(&w);
    assert_true(is_fast(&w, 2));
}

/* A thread of a program with a barrier in each turn spins at every second plan. It has its part of the turns in which it works. */
TEST(rr_starves_no_thread_that_spins_every_second_plan)
{
    unsigned had = 0;
    TURNS(w, "rr", 3, 1, 1, 1, 1);
    for (unsigned k = 0; k < 60; k++) {
        w.load->tasks[2].flags = k % 2 ? ASYM_TASK_SPINNING : 0;
        turn(&w);
        assert_false(k % 2 && is_fast(&w, 2));
        had += is_fast(&w, 2);
    }
    assert_in_range(had, 9, 11);
}

TEST(rr_shares_eight_speeds_equally)
{
    double had[8] = {0};
    TURNS(w, "rr", 8, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    for (unsigned c = 0; c < 8; c++)
        w.machine.cpus[c].speed = c + 1;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    for (unsigned k = 0; k < 200; k++) {
        turn(&w);
        for (int c = 0; c < 8; c++)
            assert_int_equal(count_on(&w, c), 1);
        for (size_t i = 0; i < 8; i++)
            had[i] += w.machine.cpus[w.plan->tasks[i].target].speed / 200;
    }
    for (size_t i = 0; i < 8; i++)
        assert_true(had[i] > 4.4 && had[i] < 4.6); /* the mean speed is 4.5 */
}

/* Equal fast time is a tenth as many turns for the thread that has the CPU for ten times as long in each. */
TEST(rr_counts_the_time_that_a_thread_ran)
{
    unsigned had[2] = {0};
    TURNS(w, "rr", 3, 1, 1, 1);
    w.load->tasks[0].running = 0.1;
    w.load->tasks[1].running = 1;
    count_turns(&w, 110, had);
    assert_in_range(had[0], 98, 102);
    assert_in_range(had[1], 8, 12);
}

/* The types differ in kind only. The first one counts as the fast one; without a thread on it there would be no share to take. */
TEST(rr_shares_types_of_equal_speed)
{
    unsigned had[3] = {0};
    TURNS(w, "rr", 3, 1, 1, 1, 1);
    w.machine.types[1].speed = w.machine.types[0].speed;
    for (unsigned k = 0; k < 30; k++) {
        turn(&w);
        for (size_t i = 0; i < 3; i++) {
            had[i] += is_fast(&w, i);
            assert_true(isfinite(w.plan->tasks[i].figure[0]));
        }
        /* Turns are shared as equally as on types of different speeds. */
        assert_in_range(had[0], k / 3, k / 3 + 1);
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(had[i], 10);
}

/* Among CPUs that are otherwise equal the favoured one fills first. */
TEST(new_threads_take_favoured_cpus_first)
{
    static const char *const policies[] = {"mintlp", "busyfcs", "rr", "response-time", "throughput"};
    for (size_t k = 0; k < ASYM_LENGTH(policies); k++) {
        const unsigned n = 2;
        TURNS(w, policies[k], 8, 4, 2);
        w.machine.cpus[1].favour = w.machine.cpus[3].favour = 7;
        assert_int_equal(asym_machine_finish(&w.machine), 0);
        for (size_t i = 0; i < n; i++)
            w.load->tasks[i].cpu = 7; /* on no fast CPU yet */
        turn(&w);
        assert_int_equal(count_on(&w, 1) + count_on(&w, 3), 2);
    }
}

/* Count the threads whose target is not the CPU they run on, and the running threads that the engine releases. */
static size_t step_and_count(struct turns *w, size_t *ret_released)
{
    const struct asym_action *actions;
    size_t n, moved = 0;
    gen_load_pass(w->load, TURN);
    assert_int_equal(asym_engine_step(w->e, &w->load->s, &w->plan, &actions, &n), 0);
    *ret_released = 0;
    for (size_t i = 0; i < w->plan->n_tasks; i++)
        moved += w->plan->tasks[i].target >= 0 && w->plan->tasks[i].target != w->load->tasks[i].cpu;
    for (size_t i = 0; i < n; i++)
        *ret_released += actions[i].kind == ASYM_ACTION_RELEASE;
    return moved;
}

/* Returns the migrations that the second policy would need if it started new on the current threads. */
static size_t from_scratch(const struct turns *w, const struct asym_engine_config *config)
{
    struct turns other = *w;
    size_t released;
    assert_int_equal(asym_engine_new(config, &other.e), 0);
    /* A mask that the first policy has set is not a mask of the thread's own. */
    ASYM_AUTO_FREE struct asym_mask *masks = malloc(w->load->s.n_tasks * sizeof *masks);
    assert_non_null(masks);
    memcpy(masks, w->load->masks, w->load->s.n_tasks * sizeof *masks);
    memcpy(w->load->masks, w->load->cpusets, w->load->s.n_tasks * sizeof *masks);
    gen_load_share_masks(w->load);
    /* A boost is not a nice value of the thread's own either. */
    int8_t nice[TURNS_MOST];
    for (size_t i = 0; i < w->load->s.n_tasks; i++) {
        nice[i] = w->load->tasks[i].nice;
        w->load->tasks[i].nice = 0;
    }
    const size_t moved = step_and_count(&other, &released);
    w->load->s.now -= TURN; /* the engine that goes on sees the same moment: it has missed no interval */
    for (size_t i = 0; i < w->load->s.n_tasks; i++)
        w->load->tasks[i].nice = nice[i];
    memcpy(w->load->masks, masks, w->load->s.n_tasks * sizeof *masks);
    gen_load_share_masks(w->load);
    asym_engine_free(other.e);
    return moved;
}

/*
 * After a switch the new policy takes over the threads as they are: the engine releases no thread only to steer it again,
 * and it moves no more threads than the policy would move if asymd had not steered them before.
 */
TEST(a_switch_of_policies_moves_few_threads)
{
    const unsigned sizes[] = {1, 1, 2, 6, 12};
    struct asym_settings *settings;
    size_t storms = 0, moved = 0, most = 0;
    assert_int_equal(asym_settings_new(&settings), 0);
    for (size_t a = 1; asym_policy_at(a); a++) {
        for (size_t b = 1; asym_policy_at(b); b++) {
            if (a == b)
                continue; /* this is a reload: state and turns continue */
            ASYM_CLEANUP(turns_end) struct turns w;
            size_t released, before, after;
            const struct asym_engine_config first = asym_settings_engine_config(settings, asym_policy_at(a)),
                                            second = asym_settings_engine_config(settings, asym_policy_at(b));
            turns_begin(&w, &first, 8, 4, sizes, ASYM_LENGTH(sizes));
            for (int i = 0; i < 5; i++)
                turn(&w);
            before = from_scratch(&w, &second);
            assert_int_equal(asym_engine_configure(w.e, &second), 0);
            after = step_and_count(&w, &released);
            asym_engine_outcomes(w.e, NULL, 0);
            if (after > before || released > 0)
                print_message("%s to %s: %zu moved, %zu from scratch, %zu let go\n", asym_policy_at(a)->name,
                              asym_policy_at(b)->name, after, before, released);
            storms += after > before || released > 0;
            moved += after;
            most += before;
        }
    }
    print_message("all switches: %zu migrations, %zu from scratch\n", moved, most);
    assert_int_equal(storms, 0);
    asym_settings_free(settings);
}

TEST_MAIN
