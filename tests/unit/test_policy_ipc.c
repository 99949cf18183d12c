/* SPDX-License-Identifier: GPL-2.0-or-later */
/* static-ipc, hass, ipc-driven and eshmp: programs that do so much on each core type, and who is put where for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <asym/settings.h>

#include "base/macro.h"
#include "base/mask.h"
#include "support/asked.h"

#define GHZ  1e9
#define TICK (10 * ASYM_MSEC)

/* What a thread does on each core type. */
struct program {
    double ips[4], ipc;
};

static struct asked w;
static struct asym_settings *settings;
static struct program programs[ASKED_MOST];

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

/* Speeds rise with the number of the CPU. */
static void begin(const char *policy, const double *speeds, size_t n)
{
    asked_begin(&w, policy, speeds, n);
    w.params = asym_settings_params(settings, w.policy);
}

static const double two_types[] = {1, 1, 2, 2}, three_types[] = {1, 2, 4};

/* Who was asked for is counted, on the type it was put on. */
static void run(asym_usec time)
{
    for (unsigned t = 0; t < w.n_threads; t++) {
        struct asked_thread *thread = &w.threads[t];
        const struct program *p = &programs[t];
        thread->sample = (struct asym_sample){.instructions = 0};
        if (!thread->here || !thread->answer.monitor || !(p->ipc > 0))
            continue;
        const double seconds = (double)time / (double)ASYM_SEC;
        const double instructions = p->ips[w.machine.cpus[thread->home].type] * seconds;
        thread->sample = (struct asym_sample){
            .seconds = seconds, .instructions = instructions, .cycles = instructions / p->ipc, .llc_misses = -1};
    }
    asked_plan_after(&w, time);
}

static bool is_fast(unsigned thread)
{
    return asym_mask_has(&w.machine.fast, asked_cpu(&w, thread));
}

static unsigned monitored(void)
{
    unsigned n = 0;
    for (unsigned t = 0; t < w.n_threads; t++)
        n += w.threads[t].here && w.threads[t].answer.reason == ASYM_WHY_MONITORED;
    return n;
}

/* --- by profiles --- */

static const struct asym_profile gains_little = {.ips = {1.2e9, 1e9}, .mpki = {20, 20}},
                                 gains_some = {.ips = {1.5e9, 1e9}, .mpki = {5, 5}},
                                 gains_much = {.ips = {2e9, 1e9}, .mpki = {0, 0}},
                                 half_known = {.ips = {2e9, 0}, .mpki = {-1, -1}};

static void static_ipc_holds_the_fast_cpus_for_those_that_gain_most(void **state)
{
    (void)state;
    static const struct asym_profile *const of[] = {&gains_little, NULL, &gains_much, &half_known, &gains_some};
    begin("static-ipc", two_types, 4);
    asked_enter(&w, 5);
    for (size_t i = 0; i < ASYM_LENGTH(of); i++)
        w.threads[i].profile = of[i];
    asked_plan(&w);
    for (unsigned t = 0; t < 5; t++)
        assert_int_equal(is_fast(t), t == 2 || t == 4);
    assert_int_equal(w.threads[2].answer.reason, ASYM_WHY_GAINS);
    assert_int_equal((int)(w.threads[2].answer.figure[0] * 100 + 0.5), 200);
    assert_int_equal(w.threads[0].answer.reason, ASYM_WHY_GAINS_LESS);
    assert_int_equal(w.threads[1].answer.reason, ASYM_WHY_NO_PROFILE);
    assert_int_equal(w.threads[3].answer.reason, ASYM_WHY_NO_PROFILE);
    /* When the best leaves the next one moves up, and when it is back it goes first again. */
    w.threads[2].here = false;
    asked_plan(&w);
    assert_true(is_fast(0) && is_fast(4));
    w.threads[2].here = true;
    asked_plan(&w);
    assert_true(!is_fast(0) && is_fast(2) && is_fast(4));
}

static void static_ipc_moves_nobody_for_what_is_no_difference(void **state)
{
    (void)state;
    static const struct asym_profile a = {.ips = {1.500e9, 1e9}}, b = {.ips = {1.502e9, 1e9}};
    begin("static-ipc", two_types, 4);
    asked_enter(&w, 2);
    w.threads[0].profile = w.threads[1].profile = &a;
    asked_plan(&w);
    assert_true(is_fast(0) && is_fast(1));
    unsigned late = asked_enter(&w, 1);
    w.threads[late].profile = &b;
    asked_plan(&w);
    assert_true(is_fast(0) && is_fast(1) && !is_fast(late));
    assert_int_equal(w.moved, 0);
}

static void hass_assigns_once(void **state)
{
    (void)state;
    begin("hass", two_types, 4);
    asked_enter(&w, 4);
    for (unsigned t = 0; t < 4; t++)
        w.threads[t].profile = t % 2 ? &gains_much : &gains_little;
    asked_plan(&w);
    /* Of those that come together the ones that gain most are first. */
    assert_true(is_fast(1) && is_fast(3) && !is_fast(0) && !is_fast(2));
    assert_int_equal(w.threads[1].answer.reason, ASYM_WHY_ESTIMATED);
    /* Fast CPUs that are free again are for who comes next. */
    w.threads[1].here = w.threads[3].here = false;
    asked_plan(&w);
    assert_true(!is_fast(0) && !is_fast(2));
    unsigned late = asked_enter(&w, 1);
    w.threads[late].profile = &gains_little;
    asked_plan(&w);
    assert_true(is_fast(late) && !is_fast(0) && !is_fast(2));
}

/* Rule 3 is stronger than "once". */
static void hass_leaves_no_fast_cpu_idle_beside_a_crowded_slow_one(void **state)
{
    (void)state;
    begin("hass", two_types, 4);
    asked_enter(&w, 6);
    for (unsigned t = 0; t < 6; t++)
        w.threads[t].profile = t < 2 ? &gains_much : &gains_little;
    asked_plan(&w);
    for (unsigned t = 0; t < 6; t++)
        if (is_fast(t))
            w.threads[t].here = false;
    asked_plan(&w);
    for (int c = 0; c < 2; c++)
        assert_true(w.count[c] < 2);
}

/* What stalls gains nothing from speed: 25 ns of 50 ns are stall here, so that double the speed is 1.33 times as fast. */
static void hass_counts_stall_time_apart(void **state)
{
    (void)state;
    static const struct asym_profile stalls = {.ips = {0, 20e6}, .mpki = {-1, 312.5}};
    begin("hass", two_types, 4);
    asked_enter(&w, 1);
    w.threads[0].profile = &stalls;
    asked_plan(&w);
    assert_int_equal((int)(w.threads[0].answer.figure[0] * 1000 + 0.5), 1333);
}

/* --- ipc-driven --- */

static void ipc_driven_measures_on_each_type_and_then_decides(void **state)
{
    (void)state;
    begin("ipc-driven", two_types, 4);
    asked_enter(&w, 3);
    programs[0] = (struct program){.ips = {1.1e9, 1e9}, .ipc = 1};
    programs[1] = (struct program){.ips = {2e9, 1e9}, .ipc = 1};
    programs[2] = (struct program){.ips = {1.9e9, 1e9}, .ipc = 1};
    for (int i = 0; i < 60; i++)
        run(TICK);
    assert_true(!is_fast(0) && is_fast(1) && is_fast(2));
    assert_int_equal(monitored(), 0);
    assert_int_equal((int)(w.threads[1].answer.figure[0] * 10 + 0.5), 20);
    for (int i = 0; i < 100; i++) {
        run(TICK);
        assert_int_equal(w.moved, 0);
    }
}

static unsigned looks_in_turns(void)
{
    unsigned n = 0;
    for (int i = 0; i < 100; i++) {
        run(TICK);
        n += monitored();
    }
    return n;
}

/* The cost that it is compared for: a turn of five ticks on each type. */
static void ipc_driven_costs_a_turn_for_each_core_type(void **state)
{
    (void)state;
    unsigned looks[2];
    for (int i = 0; i < 2; i++) {
        begin("ipc-driven", i ? three_types : two_types, i ? 3 : 4);
        asked_enter(&w, 1);
        programs[0] = (struct program){.ips = {4e9, 2e9, 1e9}, .ipc = 1};
        looks[i] = looks_in_turns();
    }
    assert_int_equal(looks[0], 2 * 5);
    assert_int_equal(looks[1], 3 * 5);
}

static void ipc_driven_measures_again_when_a_phase_changes(void **state)
{
    (void)state;
    begin("ipc-driven", two_types, 4);
    asked_enter(&w, 1);
    programs[0] = (struct program){.ips = {2e9, 1e9}, .ipc = 2};
    assert_int_equal(looks_in_turns(), 10);
    programs[0].ipc = 2.15; /* below phase_change */
    assert_int_equal(looks_in_turns(), 0);
    programs[0].ipc = 1.5;
    assert_int_equal(looks_in_turns(), 10);
    assert_int_equal(looks_in_turns(), 0);
}

static void ipc_driven_takes_no_turns_of_who_cannot_be_counted(void **state)
{
    (void)state;
    begin("ipc-driven", two_types, 4);
    asked_enter(&w, 6);
    assert_int_equal(looks_in_turns(), 0);
    assert_int_equal(w.threads[0].answer.reason, ASYM_WHY_NOT_MEASURED);
}

/* More new threads than CPUs of a type: as many turns at a time as there is room for, and all get theirs. */
static void ipc_driven_has_as_many_in_turns_as_there_is_room_for(void **state)
{
    (void)state;
    begin("ipc-driven", two_types, 4);
    asked_enter(&w, 20);
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

/* --- eshmp --- */

/* max IPC 4 at 2 GHz: MIPS 8e9; 2e9 instructions a second leave (8e9 - 2e9) / (2e9 * 8e9) s = 0.375 ns. */
static void eshmp_measures_the_stall_time_per_instruction(void **state)
{
    (void)state;
    begin("eshmp", two_types, 4);
    asked_enter(&w, 2);
    programs[0] = (struct program){.ips = {2e9, 2e9}, .ipc = 1};
    programs[1] = (struct program){.ips = {9e9, 9e9}, .ipc = 4.5}; /* more than MIPS: 0, not less */
    for (int i = 0; i < 7; i++)
        run(TICK);
    assert_int_equal(w.threads[0].answer.reason, ASYM_WHY_STALLS);
    assert_int_equal((int)(w.threads[0].answer.figure[0] * 1000 + 0.5), 375);
    assert_int_equal((int)(w.threads[1].answer.figure[0] * 1000 + 0.5), 0);
}

static void eshmp_gives_the_fast_cpus_to_those_that_stall_least(void **state)
{
    (void)state;
    begin("eshmp", two_types, 4);
    asked_enter(&w, 4);
    for (unsigned t = 0; t < 4; t++)
        programs[t] = (struct program){.ips = {1e9 * (t + 1), 1e9 * (t + 1)}, .ipc = 0.5 * (t + 1)};
    for (int i = 0; i < 7; i++)
        run(TICK);
    assert_true(!is_fast(0) && !is_fast(1) && is_fast(2) && is_fast(3));
    /* Later periods find the same, and move nobody. */
    for (int i = 0; i < 60; i++) {
        run(TICK);
        assert_int_equal(w.moved, 0);
    }
}

static void eshmp_monitors_for_five_ticks_and_executes_for_ten(void **state)
{
    (void)state;
    begin("eshmp", two_types, 4);
    asked_enter(&w, 2);
    programs[0] = programs[1] = (struct program){.ips = {1e9, 1e9}, .ipc = 1};
    unsigned looks = 0;
    for (int i = 0; i < 150; i++) {
        run(TICK);
        looks += monitored();
        for (unsigned t = 0; t < 2; t++)
            assert_int_equal(w.threads[t].answer.monitor, w.threads[t].answer.reason == ASYM_WHY_MONITORED);
    }
    assert_int_equal(looks, 2 * 150 * 5 / 15);
}

static void eshmp_starves_nobody(void **state)
{
    (void)state;
    unsigned chosen[7] = {0};
    begin("eshmp", three_types, 3);
    asked_enter(&w, 7);
    for (unsigned t = 0; t < 7; t++) {
        programs[t] = (struct program){.ips = {1e9, 1e9, 1e9}, .ipc = 1};
        w.threads[t].nice = (int)t;
    }
    for (int i = 0; i < 7 * 15; i++) {
        run(TICK);
        for (unsigned t = 0; t < 7; t++)
            chosen[t] += w.threads[t].answer.reason != ASYM_WHY_WAITS_TURN;
    }
    for (unsigned t = 0; t < 7; t++)
        assert_in_range(chosen[t], 2 * 15, 4 * 15);
}

/* Looks that are further apart than a turn or a period: both last until the next look, and both take place. */
static void long_intervals_round_turns_and_periods_up(void **state)
{
    (void)state;
    static const asym_usec intervals[] = {100 * ASYM_MSEC, 250 * ASYM_MSEC, 2 * ASYM_SEC};
    static const double speeds[] = {1, 2, 2, 2, 2};
    for (size_t k = 0; k < ASYM_LENGTH(intervals); k++) {
        unsigned executing = 0;
        begin("eshmp", speeds, 5);
        asked_enter(&w, 5);
        for (unsigned t = 0; t < 5; t++)
            programs[t] = (struct program){.ips = {1e9 * (t + 1), 1e9 * (t + 1)}, .ipc = 0.5 * (t + 1)};
        for (int i = 0; i < 20; i++) {
            run(intervals[k]);
            executing += w.threads[0].answer.reason == ASYM_WHY_STALLS;
        }
        assert_true(executing >= 5);
        assert_true(!is_fast(0) && is_fast(4));

        begin("ipc-driven", speeds, 5);
        asked_enter(&w, 8);
        for (unsigned t = 0; t < 8; t++)
            programs[t] = (struct program){.ips = {1e9 + 1e8 * t, 1e9}, .ipc = 1};
        for (int i = 0; i < 60; i++)
            run(intervals[k]);
        assert_int_equal(monitored(), 0);
        for (unsigned t = 0; t < 8; t++)
            assert_int_equal((int)(w.threads[t].answer.figure[0] * 100 + 0.5), 100 + 10 * (int)t);
    }
}

/* Core types by other numbers: what was measured on them says nothing any more. */
static void another_machine_is_measured_anew(void **state)
{
    (void)state;
    begin("ipc-driven", two_types, 4);
    asked_enter(&w, 1);
    programs[0] = (struct program){.ips = {2e9, 1e9}, .ipc = 2};
    assert_int_equal(looks_in_turns(), 10);
    w.machine.generation++;
    assert_int_equal(looks_in_turns(), 10);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(static_ipc_holds_the_fast_cpus_for_those_that_gain_most),
        T(static_ipc_moves_nobody_for_what_is_no_difference),
        T(hass_assigns_once),
        T(hass_leaves_no_fast_cpu_idle_beside_a_crowded_slow_one),
        T(hass_counts_stall_time_apart),
        T(ipc_driven_measures_on_each_type_and_then_decides),
        T(ipc_driven_costs_a_turn_for_each_core_type),
        T(ipc_driven_measures_again_when_a_phase_changes),
        T(ipc_driven_takes_no_turns_of_who_cannot_be_counted),
        T(ipc_driven_has_as_many_in_turns_as_there_is_room_for),
        T(eshmp_measures_the_stall_time_per_instruction),
        T(eshmp_gives_the_fast_cpus_to_those_that_stall_least),
        T(eshmp_monitors_for_five_ticks_and_executes_for_ten),
        T(eshmp_starves_nobody),
        T(long_intervals_round_turns_and_periods_up),
        T(another_machine_is_measured_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
