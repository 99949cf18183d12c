/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of pa (Saez 2010, 2.1), by hand: which threads get the fast CPUs, and for how long. */
#include "base/mask.h"
#include "support/reason-text.h"
#include "support/test.h"
#include "support/turns.h"

#define PA(w, ...) TURNS_WITH(w, "pa", "0", TURN, __VA_ARGS__)

/* From now on only this thread of its application runs. */
static void become_serial(struct turns *w, size_t app, size_t task)
{
    gen_load_share(w->load, app, 0);
    gen_load_share_one(w->load, task, 1);
}

TEST(mp_threads_hold_fast_cpus_and_hp_threads_run_on_slow_ones)
{
    PA(w, 6, 2, 2, 8);
    turn(&w);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(is_fast(&w, i), i < 2);
        assert_int_equal(w.plan->tasks[i].exclusive, i < 2);
        assert_why(w.plan->tasks[i].reason, i < 2 ? "few threads: a fast CPU each" : "highly parallel");
    }
    for (int c = 0; c < 6; c++)
        assert_int_equal(count_on(&w, c), c < 2 ? 1 : 2);
}

/* One thread with a high nice value beside two others. */
TEST(a_program_in_the_background_leaves_the_fast_cpus_to_others)
{
    PA(w, 4, 2, 1, 2);
    w.load->tasks[0].nice = 19;
    turn(&w);
    assert_true(!is_fast(&w, 0) && is_fast(&w, 1) && is_fast(&w, 2));
    assert_why(w.plan->tasks[0].reason, "background: its nice value leaves the fast CPUs to others");
    gen_load_share(w.load, 1, 0);
    turn(&w);
    assert_true(is_fast(&w, 0));
    assert_why(w.plan->tasks[0].reason, "background: a spare fast CPU");
}

TEST(a_rule_can_count_a_program_as_highly_parallel)
{
    const struct asym_rule_facts rule = {.policy_class = ASYM_RULE_CLASS_PARALLEL};
    PA(w, 4, 2, 1, 2);
    w.load->procs[0].rule_facts = &rule;
    turn(&w);
    assert_false(is_fast(&w, 0));
    assert_why(w.plan->tasks[0].reason, "its rule counts it as highly parallel");
}

TEST(a_thread_that_becomes_serial_goes_before_mp_threads)
{
    PA(w, 6, 2, 2, 8);
    turn(&w);
    become_serial(&w, 1, 5);
    turn(&w);
    const struct asym_plan_task *sp = &w.plan->tasks[5];
    assert_int_equal(sp->class, ASYM_CLASS_SP);
    assert_why(sp->reason, "serial phase: on a fast CPU");
    assert_true(is_fast(&w, 5) && sp->exclusive);
    assert_float_equal((float)sp->figure[0], 1, 1e-6F);
    assert_int_equal(is_fast(&w, 0) + is_fast(&w, 1), 1);
}

TEST(the_boost_ends_and_the_thread_takes_turns)
{
    unsigned had[10] = {0};
    PA(w, 6, 2, 2, 8);
    turn(&w);
    become_serial(&w, 1, 5);
    for (unsigned k = 0; k < 10; k++) {
        turn(&w);
        assert_true(is_fast(&w, 5));
        assert_why(w.plan->tasks[5].reason, "serial phase: on a fast CPU");
    }
    for (unsigned k = 0; k < 30; k++) {
        turn(&w);
        assert_int_equal(w.plan->tasks[5].class, ASYM_CLASS_MP);
        for (size_t i = 0; i < 10; i++)
            had[i] += is_fast(&w, i);
    }
    assert_in_range(had[5], 19, 21);
    assert_in_range(had[0], 19, 21);
    assert_in_range(had[1], 19, 21);
}

TEST(mp_threads_share_fast_cpus_in_turns)
{
    unsigned had[5] = {0};
    PA(w, 5, 2, 1, 1, 1, 1, 1);
    for (unsigned k = 0; k < 50; k++) {
        unsigned now = 0;
        turn(&w);
        for (size_t i = 0; i < 5; i++) {
            had[i] += is_fast(&w, i);
            now += is_fast(&w, i);
            assert_why(w.plan->tasks[i].reason,
                       is_fast(&w, i) ? "few threads: its turn" : "few threads: waits for its turn");
            assert_float_equal((float)w.plan->tasks[i].figure[0], 5, 1e-6F);
            assert_float_equal((float)w.plan->tasks[i].figure[1], 2, 1e-6F);
        }
        assert_int_equal(now, 2);
    }
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(had[i], 20);
}

TEST(a_new_thread_neither_waits_for_all_nor_keeps_them_out)
{
    unsigned had[3] = {0};
    PA(w, 3, 1, 1, 1, 1);
    gen_load_share(w.load, 2, 0);
    for (unsigned k = 0; k < 20; k++)
        turn(&w);
    gen_load_share(w.load, 2, 1);
    count_turns(&w, 30, had);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(had[i], 9, 11);
}

TEST(hp_threads_fill_fast_cpus_that_are_free)
{
    PA(w, 6, 3, 1, 9);
    turn(&w);
    assert_true(is_fast(&w, 0) && w.plan->tasks[0].exclusive);
    assert_int_equal(count_on(&w, w.plan->tasks[0].target), 1);
    unsigned spare = 0;
    for (size_t i = 1; i < 10; i++) {
        assert_false(w.plan->tasks[i].exclusive);
        assert_false(asym_mask_has(w.plan->tasks[i].mask, w.plan->tasks[0].target));
        assert_why(w.plan->tasks[i].reason, is_fast(&w, i) ? "a spare fast CPU" : "highly parallel");
        spare += is_fast(&w, i);
    }
    assert_in_range(spare, 3, 4);
}

TEST(more_sp_threads_than_fast_cpus_the_longest_waiting_first)
{
    PA(w, 8, 2, 4, 4, 4);
    turn(&w);
    for (size_t a = 3; a-- > 0;) {
        become_serial(&w, a, 4 * a);
        turn(&w);
    }
    assert_true(is_fast(&w, 8) && is_fast(&w, 4));
    assert_false(is_fast(&w, 0));
    assert_why(w.plan->tasks[0].reason, "serial phase: waits (%.0f threads want a fast CPU, %.0f can have one)");
    assert_float_equal((float)w.plan->tasks[0].figure[0], 3, 1e-6F);
    assert_float_equal((float)w.plan->tasks[0].figure[1], 2, 1e-6F);
}

TEST(a_master_ranks_with_sp_and_a_spinning_thread_last)
{
    PA(w, 6, 1, 8, 1, 1);
    w.load->tasks[3].flags = ASYM_TASK_MASTER;
    w.load->tasks[8].flags = ASYM_TASK_SPINNING;
    turn(&w);
    assert_true(is_fast(&w, 3) && w.plan->tasks[3].exclusive);
    assert_why(w.plan->tasks[3].reason, "master thread, as its program says");
    assert_false(is_fast(&w, 8) || is_fast(&w, 9));
    assert_false(w.plan->tasks[8].exclusive);
}

/* A serial phase that a program reports changes the mapping between two turns, but no thread's turn. */
TEST(an_early_plan_gives_way_to_a_master_and_keeps_the_turns)
{
    bool had[11];
    PA(w, 6, 2, 8, 1, 1, 1);
    turn(&w);
    for (size_t i = 0; i < 11; i++)
        had[i] = is_fast(&w, i);
    for (unsigned k = 0; k < 4; k++) {
        w.load->s.urgent = true;
        w.load->tasks[3].flags = k % 2 == 0 ? ASYM_TASK_MASTER : 0;
        pass(&w, TURN / 10);
        assert_int_equal(is_fast(&w, 3), k % 2 == 0);
        for (size_t i = 8; i < 11; i++)
            assert_true(had[i] || !is_fast(&w, i));
    }
    assert_why(w.plan->tasks[3].reason, "highly parallel");
    for (size_t i = 8; i < 11; i++)
        assert_int_equal(is_fast(&w, i), had[i]);
}

TEST(alike_cpus_are_not_exclusive)
{
    static const unsigned machines[][2] = {{4, 4}, {1, 1}, {3, 0}};
    for (size_t k = 0; k < ASYM_LENGTH(machines); k++) {
        PA(w, machines[k][0], machines[k][1], 1, 5);
        turn(&w);
        for (size_t i = 0; i < 6; i++) {
            assert_false(w.plan->tasks[i].exclusive);
            assert_why(w.plan->tasks[i].reason, "no CPU is known to be faster");
            assert_true(asym_mask_equal(w.plan->tasks[i].mask, &w.machine.usable));
        }
    }
}

/* The thread of this application runs for this share of the time, and never waits. */
static void sleep_most(struct turns *w, size_t app, double duty)
{
    gen_load_share(w->load, app, duty);
    for (size_t i = 0; i < w->load->apps[app].n_tasks; i++)
        w->load->tasks[w->load->apps[app].first_task + i].running = duty;
}

/* A game of one thread that sleeps, and as many busy threads as there are CPUs, then one, then as many again. */
static void boosts_while_all_cpus_are_busy(const char *policy, const char *why)
{
    TURNS_WITH(w, policy, "-5", TURN, 8, 4, 1, 8);
    w.load->tasks[0].nice = 3;
    sleep_most(&w, 0, 0.6);
    turn(&w);
    assert_true(is_fast(&w, 0) && !w.plan->tasks[0].exclusive);
    assert_int_equal(w.load->tasks[0].nice, -2);
    assert_why(w.plan->tasks[0].reason, why);
    gen_load_share(w.load, 1, 0);
    turn(&w);
    assert_int_equal(w.load->tasks[0].nice, 3);
    gen_load_share(w.load, 1, 1);
    for (unsigned k = 0; k < 15; k++)
        turn(&w);
    assert_int_equal(w.load->tasks[0].nice, -2);
    sleep_most(&w, 0, 1);
    for (unsigned k = 0; k < 15; k++)
        turn(&w);
    assert_true(is_fast(&w, 0) && w.plan->tasks[0].exclusive == (strcmp(policy, "pa") == 0));
    assert_int_equal(w.load->tasks[0].nice, 3);
}

TEST(a_light_thread_of_a_serial_program_is_boosted_while_all_cpus_are_busy)
{
    boosts_while_all_cpus_are_busy("pa", "few threads, sleeps");
    boosts_while_all_cpus_are_busy("mintlp", "its program has few");
}

/* Six threads of a game fit on three fast CPUs beside a busy one: none takes turns. Busy ones do. */
TEST(light_threads_take_no_turns_if_they_fit)
{
    PA(w, 8, 4, 1, 1, 1, 1, 1, 1, 1);
    for (size_t app = 1; app < 7; app++)
        sleep_most(&w, app, 0.5);
    for (unsigned k = 0; k < 3; k++) {
        turn(&w);
        for (size_t i = 0; i < 7; i++) {
            assert_true(is_fast(&w, i));
            assert_int_equal(w.plan->tasks[i].exclusive, i == 0);
            assert_false(w.plan->tasks[i].reason->rotates);
        }
    }
    for (size_t app = 1; app < 7; app++)
        gen_load_share(w.load, app, 1);
    for (unsigned k = 0; k < 15; k++)
        turn(&w);
    unsigned n_fast = 0;
    for (size_t i = 0; i < 7; i++)
        n_fast += is_fast(&w, i);
    assert_int_equal(n_fast, 4);
}

/* Make n of the four fast CPUs favoured, from the last one down. */
static void favour(struct turns *w, unsigned n)
{
    for (unsigned c = 4 - n; c < 4; c++)
        w->machine.cpus[c].favour = 100 + c;
    assert_int_equal(asym_machine_finish(&w->machine), 0);
    w->machine.generation++;
}

TEST(a_serial_thread_goes_to_the_favoured_core)
{
    PA(w, 8, 4, 8);
    favour(&w, 2);
    turn(&w);
    size_t t = 0; /* a thread on another fast CPU */
    while (!is_fast(&w, t) || w.plan->tasks[t].target == 3)
        t++;
    become_serial(&w, 0, t);
    for (unsigned k = 0; k < 5; k++) {
        turn(&w);
        assert_int_equal(w.plan->tasks[t].class, ASYM_CLASS_SP);
        assert_int_equal(w.plan->tasks[t].target, 3);
        assert_true(w.plan->tasks[t].exclusive);
    }
}

/* With two serial threads the second takes the next best core, and neither ever loses its core to the other. */
TEST(serial_threads_do_not_trade_places_for_favour)
{
    PA(w, 8, 4, 8, 8);
    favour(&w, 2);
    turn(&w);
    become_serial(&w, 0, 1);
    turn(&w);
    assert_int_equal(w.plan->tasks[1].target, 3);
    become_serial(&w, 1, 9);
    for (unsigned k = 0; k < 5; k++) {
        turn(&w);
        assert_int_equal(w.plan->tasks[1].target, 3);
        assert_int_equal(w.plan->tasks[9].target, 2);
    }
}

/* The phases of a master may be too short to justify a move, so it keeps its CPU. */
TEST(a_master_stays_where_its_phase_begins)
{
    PA(w, 8, 4, 8);
    favour(&w, 1);
    turn(&w);
    size_t on_fast = 0;
    while (!is_fast(&w, on_fast) || w.plan->tasks[on_fast].target == 3)
        on_fast++;
    const int32_t cpu = w.plan->tasks[on_fast].target;
    w.load->s.urgent = true;
    w.load->tasks[on_fast].flags = ASYM_TASK_MASTER;
    pass(&w, TURN / 10);
    assert_int_equal(w.plan->tasks[on_fast].target, cpu);
    assert_why(w.plan->tasks[on_fast].reason, "as its program says");
}

/* With three speeds, two of them fast, the serial thread moves from the second fastest type to the fastest. */
TEST(of_two_fast_types_a_serial_thread_has_the_faster)
{
    PA(w, 8, 4, 8);
    w.machine.cpus[3].speed *= 1.2;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    w.machine.generation++;
    assert_int_equal(asym_mask_count(&w.machine.fast), 4);
    turn(&w);
    size_t t = 0;
    while (!is_fast(&w, t) || w.plan->tasks[t].target == 3)
        t++;
    become_serial(&w, 0, t);
    turn(&w);
    assert_int_equal(w.plan->tasks[t].target, 3);
}

TEST_MAIN
