/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of static-ipc, hass, ipc-driven and eshmp, with programs of a given speed on each core type. */

#include "base/macro.h"
#include "base/mask.h"
#include "config/settings.h"
#include "support/policy-fixture.h"
#include "support/reason-text.h"
#include "support/test.h"

#define TICK (10 * ASYM_MSEC)

/* The work of a thread on each core type. */
struct program {
    double ips[4], ipc;
};

static struct policy_fixture w;
static struct asym_settings *settings;
static struct program programs[POLICY_FIXTURE_MOST];

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < ASYM_LENGTH(programs); i++)
        programs[i] = (struct program){.ipc = 0};
    return asym_settings_new(&settings);
}

static int tear_down(void **state)
{
    (void)state;
    asym_settings_free(settings);
    return 0;
}

/* One program of so many threads. Speeds rise with the number of the CPU. */
static void begin(const char *policy, const double *speeds, size_t n, unsigned n_threads)
{
    policy_fixture_begin(&w, policy, speeds, n);
    w.params = asym_settings_params(settings, w.policy);
    policy_fixture_enter(&w, n_threads);
}

static const double two_types[] = {1, 1, 2, 2}, three_types[] = {1, 2, 4};

/* Let time pass: each thread that the policy monitors is counted, on the core type where the policy placed it. */
static void run(asym_usec time)
{
    for (unsigned t = 0; t < w.n_threads; t++) {
        struct policy_fixture_thread *thread = &w.threads[t];
        const struct program *p = &programs[t];
        thread->sample = (struct asym_sample){.instructions = 0};
        if (!thread->here || !thread->answer.counted || !(p->ipc > 0))
            continue;
        const double seconds = (double)time / (double)ASYM_SEC;
        const double instructions = p->ips[w.machine.cpus[thread->preferred_cpu].type] * seconds;
        thread->sample = (struct asym_sample){
            .seconds = seconds, .instructions = instructions, .cycles = instructions / p->ipc, .llc_misses = -1};
    }
    policy_fixture_plan_after(&w, time);
}

static void run_ticks(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        run(TICK);
}

/* Each of the first n threads stalls less than the one before. */
static void stall_less(unsigned n)
{
    for (unsigned t = 0; t < n; t++)
        programs[t] = (struct program){.ips = {1e9 * (t + 1), 1e9 * (t + 1)}, .ipc = 0.5 * (t + 1)};
}

static bool is_fast(unsigned thread)
{
    return asym_mask_has(&w.machine.fast, policy_fixture_cpu(&w, thread));
}

static unsigned monitored(void)
{
    unsigned n = 0;
    for (unsigned t = 0; t < w.n_threads; t++)
        n += w.threads[t].here && is_why(w.threads[t].answer.reason, "measured for");
    return n;
}

/* --- by profiles --- */

static const struct asym_profile gains_little = {.ips = {1.2e9, 1e9}, .mpki = {20, 20}},
                                 gains_some = {.ips = {1.5e9, 1e9}, .mpki = {5, 5}},
                                 gains_much = {.ips = {2e9, 1e9}, .mpki = {0, 0}},
                                 half_known = {.ips = {2e9, 0}, .mpki = {-1, -1}};

TEST_WITH(static_ipc_holds_the_fast_cpus_for_those_that_gain_most, set_up, tear_down)
{
    static const struct asym_profile *const of[] = {&gains_little, NULL, &gains_much, &half_known, &gains_some};
    begin("static-ipc", two_types, 4, 5);
    for (size_t i = 0; i < ASYM_LENGTH(of); i++)
        w.threads[i].profile = of[i];
    policy_fixture_plan(&w);
    for (unsigned t = 0; t < 5; t++)
        assert_int_equal(is_fast(t), t == 2 || t == 4);
    assert_why(w.threads[2].answer.reason, "holds one");
    assert_int_equal((int)(w.threads[2].answer.figure[0] * 100 + 0.5), 200);
    assert_why(w.threads[0].answer.reason, "others gain more");
    assert_why(w.threads[1].answer.reason, "no profile");
    assert_why(w.threads[3].answer.reason, "no profile");
    /* When the best thread leaves, the next one moves up; when it is back, it goes first again. */
    w.threads[2].here = false;
    policy_fixture_plan(&w);
    assert_true(is_fast(0) && is_fast(4));
    w.threads[2].here = true;
    policy_fixture_plan(&w);
    assert_true(!is_fast(0) && is_fast(2) && is_fast(4));
}

TEST_WITH(static_ipc_moves_no_thread_for_a_negligible_difference, set_up, tear_down)
{
    static const struct asym_profile a = {.ips = {1.500e9, 1e9}}, b = {.ips = {1.502e9, 1e9}};
    begin("static-ipc", two_types, 4, 2);
    w.threads[0].profile = w.threads[1].profile = &a;
    policy_fixture_plan(&w);
    assert_true(is_fast(0) && is_fast(1));
    unsigned late = policy_fixture_enter(&w, 1);
    w.threads[late].profile = &b;
    policy_fixture_plan(&w);
    assert_true(is_fast(0) && is_fast(1) && !is_fast(late));
    assert_int_equal(w.moved, 0);
}

TEST_WITH(hass_assigns_once, set_up, tear_down)
{
    begin("hass", two_types, 4, 4);
    for (unsigned t = 0; t < 4; t++)
        w.threads[t].profile = t % 2 ? &gains_much : &gains_little;
    policy_fixture_plan(&w);
    /* Among threads that appear together the ones that gain most go first. */
    assert_true(is_fast(1) && is_fast(3) && !is_fast(0) && !is_fast(2));
    assert_why(w.threads[1].answer.reason, "assigned once");
    assert_true(w.threads[1].answer.figure[0] > w.threads[0].answer.figure[0]);
    for (unsigned t = 0; t < 4; t++)
        assert_true(w.threads[t].answer.figure[1] == 2); /* threads on its core type */
    /* Fast CPUs that become free go to the next new thread. */
    w.threads[1].here = w.threads[3].here = false;
    policy_fixture_plan(&w);
    assert_true(!is_fast(0) && !is_fast(2));
    unsigned late = policy_fixture_enter(&w, 1);
    w.threads[late].profile = &gains_little;
    policy_fixture_plan(&w);
    assert_true(is_fast(late) && !is_fast(0) && !is_fast(2));
    assert_true(w.threads[late].answer.figure[1] == 1 && w.threads[0].answer.figure[1] == 2);
}

/* It spins for a moment, and has its core type for life. */
TEST_WITH(hass_assigns_a_thread_that_spins_like_others, set_up, tear_down)
{
    begin("hass", two_types, 4, 4);
    for (unsigned t = 0; t < 4; t++)
        w.threads[t].profile = t == 0 ? &gains_much : &gains_little;
    w.threads[0].spinning = true;
    policy_fixture_plan(&w);
    assert_true(is_fast(0));
}

/* A thread that begins while the fast CPUs have a thread each goes to the idle slow CPU, however much it gains. */
TEST_WITH(hass_fills_idle_cpus_before_it_shares_fast_ones, set_up, tear_down)
{
    begin("hass", two_types, 4, 4);
    for (unsigned t = 0; t < 4; t++)
        w.threads[t].profile = &gains_some;
    policy_fixture_plan(&w);
    for (unsigned t = 0; t < 4; t++) {
        if (is_fast(t))
            continue;
        w.threads[t].here = false;
        policy_fixture_plan(&w);
        break;
    }
    unsigned late = policy_fixture_enter(&w, 1);
    w.threads[late].profile = &gains_much;
    policy_fixture_plan(&w);
    assert_false(is_fast(late));
    for (int c = 0; c < 4; c++)
        assert_int_equal(w.count[c], 1);
    /* When all CPUs are taken, the estimate decides: here half of a fast CPU beats two thirds of a slow one. */
    unsigned more = policy_fixture_enter(&w, 2);
    w.threads[more].profile = w.threads[more + 1].profile = &gains_much;
    policy_fixture_plan(&w);
    assert_true(is_fast(more) && is_fast(more + 1));
}

/* Rule 3 is stronger than "once". */
TEST_WITH(hass_leaves_no_fast_cpu_idle_beside_a_crowded_slow_one, set_up, tear_down)
{
    begin("hass", two_types, 4, 6);
    for (unsigned t = 0; t < 6; t++)
        w.threads[t].profile = t < 2 ? &gains_much : &gains_little;
    policy_fixture_plan(&w);
    for (unsigned t = 0; t < 6; t++)
        if (is_fast(t))
            w.threads[t].here = false;
    policy_fixture_plan(&w);
    for (int c = 0; c < 2; c++)
        assert_true(w.count[c] < 2);
}

/* Stall time does not shrink with speed: 25 ns of 50 ns are stall here, so that double the speed is 1.33 times as fast. */
TEST_WITH(hass_counts_stall_time_apart, set_up, tear_down)
{
    static const struct asym_profile stalls = {.ips = {0, 20e6}, .mpki = {-1, 312.5}};
    begin("hass", two_types, 4, 1);
    w.threads[0].profile = &stalls;
    policy_fixture_plan(&w);
    assert_int_equal((int)(w.threads[0].answer.figure[0] * 1000 + 0.5), 1333);
}

/* --- ipc-driven --- */

TEST_WITH(ipc_driven_measures_on_each_type_and_then_decides, set_up, tear_down)
{
    begin("ipc-driven", two_types, 4, 3);
    programs[0] = (struct program){.ips = {1.1e9, 1e9}, .ipc = 1};
    programs[1] = (struct program){.ips = {2e9, 1e9}, .ipc = 1};
    programs[2] = (struct program){.ips = {1.9e9, 1e9}, .ipc = 1};
    run_ticks(60);
    assert_true(!is_fast(0) && is_fast(1) && is_fast(2));
    assert_int_equal(monitored(), 0);
    assert_int_equal((int)(w.threads[1].answer.figure[0] * 10 + 0.5), 20);
    for (int i = 0; i < 100; i++) {
        run(TICK);
        assert_int_equal(w.moved, 0);
    }
}

static unsigned type_of(unsigned thread)
{
    return (unsigned)w.machine.cpus[policy_fixture_cpu(&w, thread)].type;
}

/* The ratio of the fastest to the slowest type ranks the threads over all types between them, too. */
TEST_WITH(ipc_driven_ranks_over_all_core_types, set_up, tear_down)
{
    static const double gains[] = {1.4, 1.2, 1.6, 1.1, 1.3, 1.5};
    static const double speeds[] = {1, 1, 2, 2, 3, 4};
    static const unsigned types[] = {2, 3, 0, 3, 2, 1};
    begin("ipc-driven", speeds, 6, 6);
    for (unsigned t = 0; t < 6; t++)
        programs[t] = (struct program){.ips = {gains[t] * 1e9, 1e9, 1e9, 1e9}, .ipc = 1};
    run_ticks(100);
    assert_int_equal(monitored(), 0);
    for (unsigned t = 0; t < 6; t++)
        assert_int_equal(type_of(t), types[t]);
    for (int i = 0; i < 100; i++) {
        run(TICK);
        assert_int_equal(w.moved, 0);
    }
    /* If a thread leaves, those that gain less move up. */
    w.threads[5].here = false;
    run(TICK);
    assert_int_equal(type_of(0), 1);
    assert_int_equal(type_of(4), 2);
    assert_int_equal(type_of(1), 2);
}

static unsigned samples_in_turns(void)
{
    unsigned n = 0;
    for (int i = 0; i < 100; i++) {
        run(TICK);
        n += monitored();
    }
    return n;
}

/* The cost for which the papers compare it: a turn of five ticks on each type. */
TEST_WITH(ipc_driven_costs_a_turn_for_each_core_type, set_up, tear_down)
{
    unsigned samples[2];
    for (int i = 0; i < 2; i++) {
        begin("ipc-driven", i ? three_types : two_types, i ? 3 : 4, 1);
        programs[0] = (struct program){.ips = {4e9, 2e9, 1e9}, .ipc = 1};
        samples[i] = samples_in_turns();
    }
    assert_int_equal(samples[0], 2 * 5);
    assert_int_equal(samples[1], 3 * 5);
}

TEST_WITH(ipc_driven_measures_again_when_a_phase_changes, set_up, tear_down)
{
    begin("ipc-driven", two_types, 4, 1);
    programs[0] = (struct program){.ips = {2e9, 1e9}, .ipc = 2};
    assert_int_equal(samples_in_turns(), 10);
    programs[0].ipc = 2.15; /* below phase_change */
    assert_int_equal(samples_in_turns(), 0);
    programs[0].ipc = 1.5;
    assert_int_equal(samples_in_turns(), 10);
    assert_int_equal(samples_in_turns(), 0);
}

/* Each second tick it is at a barrier: its turns last for twice as long. */
TEST_WITH(ipc_driven_measures_a_thread_that_spins_now_and_then, set_up, tear_down)
{
    unsigned last = 0;
    begin("ipc-driven", two_types, 4, 1);
    programs[0] = (struct program){.ips = {2e9, 1e9}, .ipc = 2};
    for (unsigned k = 0; k < 30; k++) {
        w.threads[0].spinning = k % 2;
        run(TICK);
        last = monitored() ? k : last;
    }
    assert_in_range(last, 16, 22);
    assert_int_equal((int)(w.threads[0].answer.figure[0] * 10 + 0.5), 20);
}

TEST_WITH(ipc_driven_takes_no_turns_of_threads_without_counters, set_up, tear_down)
{
    begin("ipc-driven", two_types, 4, 6);
    assert_int_equal(samples_in_turns(), 0);
    assert_why(w.threads[0].answer.reason, "not measured");
}

/* With more new threads than CPUs of a type, as many take a turn at a time as there are CPUs, and all get their turn. */
TEST_WITH(ipc_driven_has_as_many_in_turns_as_there_is_room_for, set_up, tear_down)
{
    begin("ipc-driven", two_types, 4, 20);
    for (unsigned t = 0; t < 20; t++)
        programs[t] = (struct program){.ips = {1e9 + 5e7 * t, 1e9}, .ipc = 1};
    for (int i = 0; i < 250; i++) {
        run(TICK);
        assert_true(monitored() <= 4);
    }
    assert_int_equal(monitored(), 0);
    assert_true(is_fast(19) && is_fast(18));
    for (unsigned t = 0; t < 20; t++)
        assert_true(w.threads[t].answer.figure[0] > 0);
}

static void set(const char *setting)
{
    struct asym_error err = {""};
    assert_int_equal(asym_settings_set(settings, setting, "the test", &err), 0);
}

static void begin_periodic(const double *speeds, size_t n, unsigned n_threads)
{
    set("policy.ipc-driven.monitoring=periodic");
    begin("ipc-driven", speeds, n, n_threads);
}

/* A period of one thread: five ticks on each of two types and ten of execution, whether or not its phase changes. */
TEST_WITH(ipc_driven_periodic_measures_again_after_each_execution, set_up, tear_down)
{
    begin_periodic(two_types, 4, 1);
    programs[0] = (struct program){.ips = {2e9, 1e9}, .ipc = 1};
    assert_in_range(samples_in_turns(), 45, 50);
    assert_in_range(samples_in_turns(), 45, 50);
    assert_int_equal((int)(w.threads[0].answer.figure[0] * 10 + 0.5), 20);
}

/* All threads take their turn on a type at the same time, however few CPUs it has. */
TEST_WITH(ipc_driven_periodic_puts_more_threads_on_the_type_of_a_sample, set_up, tear_down)
{
    unsigned most[3] = {0};
    begin_periodic(three_types, 3, 3);
    for (unsigned t = 0; t < 3; t++)
        programs[t] = (struct program){.ips = {4e9 + 1e9 * t, 2e9, 1e9}, .ipc = 1};
    for (int i = 0; i < 100; i++) {
        run(TICK);
        assert_true(monitored() == 0 || monitored() == 3);
        for (int c = 0; c < 3; c++)
            most[c] = ASYM_MAX(most[c], w.count[c]);
        /* Between the periods the thread that gains most holds the fastest CPU alone. */
        if (i > 20 && monitored() == 0)
            assert_true(is_fast(2) && !is_fast(0) && !is_fast(1));
    }
    for (int c = 0; c < 3; c++)
        assert_int_equal(most[c], 3);
}

/* A thread that begins 80 ms after another has a period of its own. */
TEST_WITH(ipc_driven_periodic_has_a_period_for_each_thread, set_up, tear_down)
{
    unsigned n = 0;
    begin_periodic(two_types, 4, 2);
    programs[0] = programs[1] = (struct program){.ips = {2e9, 1e9}, .ipc = 1};
    w.threads[1].here = false;
    run_ticks(8);
    w.threads[1].here = true;
    run_ticks(40);
    for (int i = 0; i < 100; i++) {
        run(TICK);
        n += monitored() == 1;
    }
    assert_in_range(n, 50, 100);
}

/* The exception to rule 3: some of 100 samples find an idle fast CPU beside a slow one with two threads. */
TEST_WITH(ipc_driven_periodic_leaves_fast_cpus_idle_in_turns, set_up, tear_down)
{
    unsigned n = 0;
    begin_periodic(two_types, 4, 4);
    for (unsigned t = 0; t < 4; t++)
        programs[t] = (struct program){.ips = {2e9, 1e9}, .ipc = 1};
    for (int i = 0; i < 100; i++) {
        run(TICK);
        n += (w.count[0] > 1 || w.count[1] > 1) && (w.count[2] == 0 || w.count[3] == 0);
    }
    assert_in_range(n, 20, 30);
}

/* Saez 2010, 2.2.1: its loop would seem to gain. While it spins it does not crowd the type on which the others are measured. */
TEST_WITH(ipc_driven_periodic_gives_no_turn_to_a_thread_that_spins, set_up, tear_down)
{
    begin_periodic(three_types, 3, 3);
    for (unsigned t = 0; t < 3; t++)
        programs[t] = (struct program){.ips = {4e9, 2e9, 1e9}, .ipc = 1};
    while (monitored() < 3)
        run(TICK);
    programs[0].ipc = 0;
    w.threads[0].spinning = true;
    for (int i = 0; i < 100; i++) {
        run(TICK);
        assert_true(monitored() == 0 || monitored() == 2);
        for (int c = 0; c < 3; c++)
            assert_true(w.count[c] < 3);
    }
}

/* --- eshmp --- */

/* Four of five threads have a turn in each period. The one that spins is none of them, until it works. */
TEST_WITH(eshmp_chooses_no_thread_that_spins_before_one_that_works, set_up, tear_down)
{
    begin("eshmp", two_types, 4, 5);
    stall_less(5);
    w.threads[0].spinning = true;
    for (unsigned k = 0; k < 60; k++) {
        run(TICK);
        assert_why(w.threads[0].answer.reason, "spins");
        for (unsigned t = 1; t < 5; t++)
            assert_false(is_why(w.threads[t].answer.reason, "shares a CPU until its turn"));
    }
    w.threads[0].spinning = false;
    run_ticks(30);
    assert_why(w.threads[0].answer.reason, "stalls");
}

/* max IPC 4 at 2 GHz: MIPS 8e9; 2e9 instructions a second leave (8e9 - 2e9) / (2e9 * 8e9) s = 0.375 ns. */
TEST_WITH(eshmp_measures_the_stall_time_per_instruction, set_up, tear_down)
{
    begin("eshmp", two_types, 4, 2);
    programs[0] = (struct program){.ips = {2e9, 2e9}, .ipc = 1};
    programs[1] = (struct program){.ips = {9e9, 9e9}, .ipc = 4.5}; /* more than MIPS: 0, not less */
    run_ticks(7);
    assert_why(w.threads[0].answer.reason, "stalls");
    assert_int_equal((int)(w.threads[0].answer.figure[0] * 1000 + 0.5), 375);
    assert_int_equal((int)(w.threads[1].answer.figure[0] * 1000 + 0.5), 0);
    /* Equation 6: an instruction takes 0.125 ns on a fast CPU, 0.25 ns on a slow one, and the stall time. */
    assert_int_equal((int)(w.threads[0].answer.figure[1] * 1000 + 0.5), 1250);
    assert_int_equal((int)(w.threads[1].answer.figure[1] * 1000 + 0.5), 2000);
}

/*
 * Speeds by capacity have the IPC in them: 2 here is 2.5 GHz over 2 GHz, times 4 over 2.5 instructions per cycle. Equation 6 has
 * the measured frequencies: an instruction takes 0.1 ns on a fast CPU, 0.2 ns on a slow one, and 0.3 ns of stall time.
 */
TEST_WITH(eshmp_counts_the_ipc_of_a_type_once, set_up, tear_down)
{
    set("policy.eshmp.max_ipc_slow=2.5");
    begin("eshmp", two_types, 4, 4);
    for (unsigned t = 0; t < 4; t++)
        programs[t] = (struct program){.ips = {2.5e9, 2e9}, .ipc = 1};
    run_ticks(7);
    for (unsigned t = 0; t < 4; t++) {
        assert_why(w.threads[t].answer.reason, "stalls");
        assert_int_equal((int)(w.threads[t].answer.figure[1] * 1000 + 0.5), 1250);
    }
}

TEST_WITH(eshmp_gives_the_fast_cpus_to_those_that_stall_least, set_up, tear_down)
{
    begin("eshmp", two_types, 4, 4);
    stall_less(4);
    run_ticks(7);
    assert_true(!is_fast(0) && !is_fast(1) && is_fast(2) && is_fast(3));
    /* Later periods find the same order, and move no thread. */
    for (int i = 0; i < 60; i++) {
        run(TICK);
        assert_int_equal(w.moved, 0);
    }
}

TEST_WITH(eshmp_monitors_for_five_ticks_and_executes_for_ten, set_up, tear_down)
{
    begin("eshmp", two_types, 4, 2);
    programs[0] = programs[1] = (struct program){.ips = {1e9, 1e9}, .ipc = 1};
    unsigned samples = 0;
    for (int i = 0; i < 150; i++) {
        run(TICK);
        samples += monitored();
        for (unsigned t = 0; t < 2; t++)
            assert_int_equal(w.threads[t].answer.counted, is_why(w.threads[t].answer.reason, "measured for"));
    }
    assert_int_equal(samples, 2 * 150 * 5 / 15);
}

/* The source's Algorithm 1: with monitor_on = ordered the i-th thread is monitored on the i-th CPU, whatever it stalls. */
TEST_WITH(eshmp_monitors_in_the_order_of_the_cpus_if_asked, set_up, tear_down)
{
    unsigned samples = 0;
    set("policy.eshmp.monitor_on=ordered");
    begin("eshmp", two_types, 4, 4);
    stall_less(4);
    for (int i = 0; i < 60; i++) {
        run(TICK);
        const bool monitors = monitored() == 4;
        samples += monitors;
        for (unsigned t = 0; t < 4; t++)
            assert_int_equal(is_fast(t), monitors ? t < 2 : t >= 2);
    }
    assert_int_equal(samples, 60 * 5 / 15);
}

TEST_WITH(eshmp_starves_no_thread, set_up, tear_down)
{
    unsigned chosen[7] = {0};
    begin("eshmp", three_types, 3, 7);
    for (unsigned t = 0; t < 7; t++) {
        programs[t] = (struct program){.ips = {1e9, 1e9, 1e9}, .ipc = 1};
        w.threads[t].nice = (int)t;
    }
    for (int i = 0; i < 7 * 15; i++) {
        run(TICK);
        for (unsigned t = 0; t < 7; t++)
            chosen[t] += !is_why(w.threads[t].answer.reason, "until its turn");
    }
    for (unsigned t = 0; t < 7; t++)
        assert_in_range(chosen[t], 2 * 15, 4 * 15);
}

/* If samples are further apart than a turn or a period, both last until the next sample, and both take place. */
TEST_WITH(long_intervals_round_turns_and_periods_up, set_up, tear_down)
{
    static const asym_usec intervals[] = {100 * ASYM_MSEC, 250 * ASYM_MSEC, 2 * ASYM_SEC};
    static const double speeds[] = {1, 2, 2, 2, 2};
    for (size_t k = 0; k < ASYM_LENGTH(intervals); k++) {
        unsigned executing = 0;
        begin("eshmp", speeds, 5, 5);
        stall_less(5);
        for (int i = 0; i < 20; i++) {
            run(intervals[k]);
            executing += is_why(w.threads[0].answer.reason, "stalls");
        }
        assert_true(executing >= 5);
        assert_true(!is_fast(0) && is_fast(4));

        begin("ipc-driven", speeds, 5, 8);
        for (unsigned t = 0; t < 8; t++)
            programs[t] = (struct program){.ips = {1e9 + 1e8 * t, 1e9}, .ipc = 1};
        for (int i = 0; i < 60; i++)
            run(intervals[k]);
        assert_int_equal(monitored(), 0);
        for (unsigned t = 0; t < 8; t++)
            assert_int_equal((int)(w.threads[t].answer.figure[0] * 100 + 0.5), 100 + 10 * (int)t);
    }
}

/* When the core types get other numbers, earlier measurements on them are void. */
TEST_WITH(another_machine_is_measured_anew, set_up, tear_down)
{
    begin("ipc-driven", two_types, 4, 1);
    programs[0] = (struct program){.ips = {2e9, 1e9}, .ipc = 2};
    assert_int_equal(samples_in_turns(), 10);
    w.machine.generation++;
    assert_int_equal(samples_in_turns(), 10);
}

TEST_MAIN
