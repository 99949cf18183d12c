/* SPDX-License-Identifier: GPL-2.0-or-later */
/* serial-first (Morad 2008, 6), worked by hand: who has a CPU to itself, who is boosted, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <asym/policy.h>

#include "base/macro.h"
#include "base/mask.h"
#include "support/asked.h"
#include "support/generate.h"

static struct asked w;

/* Its options, in their order. */
struct params {
    int serial_boost;
    asym_usec seniority_timeout;
};

static const struct params defaults = {.serial_boost = -10, .seniority_timeout = ASYM_SEC};

static const double one_large[] = {2, 1, 1, 1,
                                   1, 1, 1, 1}; /* the source's machine: seven CPUs, and one twice as fast */
static const double alike[] = {1, 1, 1, 1};

static void begin(const double *speeds, size_t n)
{
    asked_begin(&w, "serial-first", speeds, n);
    assert_int_equal(w.policy->params_size, sizeof defaults);
    w.params = &defaults;
}

static const struct asym_assignment *answer(unsigned t)
{
    return &w.threads[t].answer;
}

static struct asym_mask only(unsigned cpu)
{
    struct asym_mask m = {0};
    asym_mask_set(&m, cpu);
    return m;
}

static void the_options_are_those_of_the_source(void **state)
{
    (void)state;
    const struct asym_option *o = asym_policy_find("serial-first")->options;
    assert_string_equal(o[0].key, "serial_boost");
    assert_string_equal(o[0].def, "-10");
    assert_int_equal(o[0].offset, offsetof(struct params, serial_boost));
    assert_string_equal(o[1].key, "seniority_timeout");
    assert_string_equal(o[1].def, "1s");
    assert_int_equal(o[1].offset, offsetof(struct params, seniority_timeout));
    assert_null(o[2].key);
}

/* Table 3, (S,P): the serial application has the large CPU, the parallel one all the others. */
static void a_serial_thread_has_the_fastest_cpu_to_itself(void **state)
{
    (void)state;
    begin(one_large, 8);
    const unsigned p = asked_enter(&w, 8);
    asked_plan(&w);
    for (int c = 0; c < 8; c++)
        assert_int_equal(w.count[c], 1);
    const unsigned s = asked_enter(&w, 1);
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, s), 0);
    assert_int_equal(w.count[0], 1);
    assert_int_equal(w.moved, 1);
    assert_true(answer(s)->claim);
    assert_int_equal(answer(s)->nice_delta, -10);
    assert_int_equal(answer(s)->reason, ASYM_WHY_SERIAL);
    for (unsigned t = p; t < p + 8; t++) {
        assert_false(answer(t)->claim);
        assert_int_equal(answer(t)->nice_delta, 0);
    }
    for (int c = 1; c < 8; c++)
        assert_in_range(w.count[c], 1, 2);
}

/* Figure 7: it needs no asymmetry. */
static void it_has_one_where_all_are_alike_too(void **state)
{
    (void)state;
    begin(alike, 4);
    asked_enter(&w, 8);
    const unsigned s = asked_enter(&w, 1);
    asked_plan(&w);
    assert_true(answer(s)->claim);
    assert_int_equal(w.count[asked_cpu(&w, s)], 1);
    asked_plan(&w);
    assert_int_equal(w.moved, 0);
}

/* A Ryzen: one core type, and an order of its cores. */
static void it_has_the_favoured_core_first(void **state)
{
    (void)state;
    begin(alike, 4);
    w.machine.cpus[2].favour = 9;
    w.machine.cpus[1].favour = 5;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    asked_enter(&w, 8);
    const unsigned s = asked_enter(&w, 1);
    w.threads[s].home = 0;
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, s), 2);
    const unsigned second = asked_enter(&w, 1);
    w.threads[second].home = 0;
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, s), 2);
    assert_int_equal(asked_cpu(&w, second), 1);
    asked_plan(&w);
    assert_int_equal(w.moved, 0);
}

static void boost_and_claim_end_with_the_phase(void **state)
{
    (void)state;
    begin(one_large, 8);
    const unsigned first = asked_enter(&w, 4);
    asked_enter(&w, 8);
    asked_plan(&w);
    /* one of its four goes on alone */
    asked_phase(&w, 0, ASYM_PHASE_SERIAL, 1);
    for (unsigned t = first + 1; t < first + 4; t++)
        w.threads[t].here = false;
    asked_plan(&w);
    assert_true(answer(first)->claim);
    assert_int_equal(asked_cpu(&w, first), 0);
    asked_phase(&w, 0, ASYM_PHASE_PARALLEL, 4);
    for (unsigned t = first + 1; t < first + 4; t++)
        w.threads[t].here = true;
    asked_plan(&w);
    for (unsigned t = 0; t < w.n_threads; t++) {
        assert_false(answer(t)->claim);
        assert_int_equal(answer(t)->nice_delta, 0);
    }
    assert_in_range(w.count[0], 2, 3);
}

static void the_nice_value_becomes_that_of_the_option(void **state)
{
    (void)state;
    static const int rows[][2] = {{0, -10}, {5, -15}, {-4, -6}, {-10, 0}, {-15, 0}, {19, -29}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(alike, 4);
        const unsigned s = asked_enter(&w, 1);
        w.threads[s].nice = rows[i][0];
        asked_plan(&w);
        assert_int_equal(answer(s)->nice_delta, rows[i][1]);
    }
}

static void who_was_serial_first_keeps_the_fastest(void **state)
{
    (void)state;
    static const double speeds[] = {1, 2, 3};
    begin(speeds, 3);
    const unsigned a = asked_enter(&w, 1);
    asked_plan(&w);
    const unsigned b = asked_enter(&w, 1);
    asked_plan(&w);
    assert_int_equal(w.moved, 0);
    assert_int_equal(asked_cpu(&w, a), 2);
    assert_int_equal(asked_cpu(&w, b), 1);
    assert_true(answer(a)->claim && answer(b)->claim);
    asked_leave(&w, 0);
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, b), 2);
    /* the first comes back, into a new phase: it is the second now */
    w.threads[a].here = true;
    asked_phase(&w, 0, ASYM_PHASE_SERIAL, 1);
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, b), 2);
    assert_int_equal(asked_cpu(&w, a), 1);
}

static void the_others_are_in_proportion_to_speed(void **state)
{
    (void)state;
    static const double speeds[] = {4, 2, 1, 1};
    begin(speeds, 4);
    const unsigned s = asked_enter(&w, 1);
    asked_enter(&w, 8);
    asked_plan(&w);
    assert_int_equal(asked_cpu(&w, s), 0);
    assert_int_equal(w.count[0], 1);
    assert_int_equal(w.count[1], 4);
    assert_int_equal(w.count[2], 2);
    assert_int_equal(w.count[3], 2);
}

static void where_serial_threads_leave_no_cpu_all_share(void **state)
{
    (void)state;
    for (unsigned n_serial = 1; n_serial <= 9; n_serial++) {
        for (unsigned n_parallel = 0; n_parallel <= 5; n_parallel += 5) {
            begin(alike, 4);
            for (unsigned k = 0; k < n_serial; k++)
                asked_enter(&w, 1);
            if (n_parallel > 0)
                asked_enter(&w, n_parallel);
            asked_plan(&w);
            const bool room = n_parallel > 0 ? n_serial < 4 : n_serial <= 4;
            unsigned serial[4] = {0};
            for (unsigned t = 0; t < n_serial; t++) {
                assert_int_equal(answer(t)->claim, room);
                assert_int_equal(answer(t)->nice_delta, -10);
                assert_int_equal(answer(t)->reason, room ? ASYM_WHY_SERIAL : ASYM_WHY_SERIAL_SHARES);
                serial[asked_cpu(&w, t)]++;
            }
            for (int c = 0; c < 4; c++) {
                assert_in_range(serial[c], n_serial / 4, (n_serial + 3) / 4);
                assert_true(!room || serial[c] == 0 || w.count[c] == 1);
                if (!room)
                    assert_in_range(w.count[c], (n_serial + n_parallel) / 4, (n_serial + n_parallel + 3) / 4);
            }
            asked_plan(&w);
            assert_int_equal(w.moved, 0);
        }
    }
}

static void helper_threads_of_a_serial_application_share(void **state)
{
    (void)state;
    begin(one_large, 8);
    const unsigned s = asked_enter(&w, 5);
    asked_enter(&w, 8);
    asked_phase(&w, 0, ASYM_PHASE_SERIAL, 1.2);
    for (unsigned t = s + 1; t < s + 5; t++)
        w.threads[t].runnable = 0.05;
    asked_plan(&w);
    assert_true(answer(s)->claim);
    for (unsigned t = s + 1; t < s + 5; t++) {
        assert_false(answer(t)->claim);
        assert_int_equal(answer(t)->nice_delta, -10);
        assert_int_equal(answer(t)->reason, ASYM_WHY_SERIAL_LITTLE);
    }
    /* a share that comes and goes about the limit does not make it change hands */
    w.threads[s + 1].runnable = 0.27;
    asked_plan(&w);
    assert_true(answer(s + 1)->claim);
    for (unsigned k = 0; k < 10; k++) {
        w.threads[s + 1].runnable = k % 2 ? 0.27 : 0.2;
        asked_plan(&w);
        assert_true(answer(s + 1)->claim);
        assert_int_equal(w.moved, 0);
    }
    w.threads[s + 1].runnable = 0.1;
    asked_plan(&w);
    assert_false(answer(s + 1)->claim);
}

static void the_only_cpu_of_another_thread_is_claimed_last(void **state)
{
    (void)state;
    static struct asym_mask last;
    begin(alike, 4);
    last = only(0);
    const unsigned p = asked_enter(&w, 3);
    w.threads[p].may = &last;
    for (unsigned k = 0; k < 3; k++)
        asked_enter(&w, 1);
    w.threads[p + 1].here = w.threads[p + 2].here = false;
    asked_plan(&w);
    for (unsigned t = p + 3; t < p + 6; t++) {
        assert_true(answer(t)->claim);
        assert_int_not_equal(asked_cpu(&w, t), 0);
    }
}

static void but_claimed_it_is(void **state)
{
    (void)state;
    static struct asym_mask each[4];
    begin(alike, 4);
    const unsigned p = asked_enter(&w, 4);
    for (unsigned c = 0; c < 4; c++) {
        each[c] = only(c);
        w.threads[p + c].may = &each[c];
    }
    const unsigned s = asked_enter(&w, 1);
    asked_plan(&w);
    assert_true(answer(s)->claim);
    assert_int_equal(w.count[asked_cpu(&w, s)], 2);
}

static void serial_threads_keep_to_their_cpus(void **state)
{
    (void)state;
    static struct asym_mask slow;
    begin(one_large, 8);
    slow = only(5);
    const unsigned a = asked_enter(&w, 1), b = asked_enter(&w, 1);
    w.threads[a].may = w.threads[b].may = &slow;
    asked_enter(&w, 8);
    asked_plan(&w);
    /* both have but this one: the first holds it, the second shares it, and the parallel ones keep away */
    assert_int_equal(answer(a)->claim + answer(b)->claim, 1);
    assert_int_equal(w.count[5], 2);
    assert_int_equal(w.count[0], 2);
}

/* --- seniority --- */

static void expect_boosted(unsigned app, int boosted)
{
    for (unsigned t = w.apps[app].first; t < w.apps[app].first + w.apps[app].n; t++) {
        if (!w.threads[t].here)
            continue;
        assert_int_equal(answer(t)->nice_delta, boosted ? -10 : 0);
        assert_int_equal(answer(t)->reason == ASYM_WHY_SENIOR, boosted);
        assert_false(answer(t)->claim);
    }
}

static void two_parallel(unsigned n_first, unsigned n_second)
{
    begin(alike, 4);
    asked_enter(&w, n_first);
    asked_plan(&w);
    asked_enter(&w, n_second);
    asked_plan(&w);
}

static void the_first_to_become_parallel_is_boosted(void **state)
{
    (void)state;
    two_parallel(4, 6);
    expect_boosted(0, true);
    expect_boosted(1, false);
    assert_float_equal((float)answer(0)->figure[0], 1, 1e-6F);
    /* not the first in the list */
    begin(alike, 4);
    asked_enter(&w, 5);
    asked_enter(&w, 5);
    asked_phase(&w, 1, ASYM_PHASE_PARALLEL, 5);
    w.now += ASYM_SEC;
    asked_phase(&w, 0, ASYM_PHASE_PARALLEL, 5);
    asked_plan(&w);
    expect_boosted(0, false);
    expect_boosted(1, true);
}

static void nobody_is_where_there_are_cpus_enough(void **state)
{
    (void)state;
    two_parallel(4, 3);
    expect_boosted(0, false);
    expect_boosted(1, false);
    two_parallel(8, 1);
    expect_boosted(0, false);
}

static void the_boost_passes_on_after_the_timeout(void **state)
{
    (void)state;
    two_parallel(4, 4);
    asked_enter(&w, 4);
    /* planned twice so far, the second time with the boost */
    for (unsigned k = 1; k < 100; k++) {
        asked_plan(&w);
        for (unsigned a = 0; a < 3; a++)
            expect_boosted(a, a == k / 10 % 3);
        assert_int_equal(k > 1 ? w.moved : 0, 0); /* it is the nice values that change */
        asked_plan_again(&w);
        expect_boosted(k / 10 % 3, true);
    }
}

static void the_boost_ends_with_the_phase(void **state)
{
    (void)state;
    two_parallel(4, 4);
    expect_boosted(0, true);
    /* the other becomes serial: no contest */
    asked_phase(&w, 1, ASYM_PHASE_SERIAL, 1);
    for (unsigned t = 5; t < 8; t++)
        w.threads[t].here = false;
    asked_plan(&w);
    expect_boosted(0, false);
    assert_true(answer(4)->claim);
    /* it is back, and the senior leaves */
    asked_phase(&w, 1, ASYM_PHASE_PARALLEL, 4);
    for (unsigned t = 5; t < 8; t++)
        w.threads[t].here = true;
    asked_plan(&w);
    expect_boosted(0, true);
    asked_enter(&w, 4);
    asked_leave(&w, 0);
    asked_plan(&w);
    expect_boosted(1, true);
    expect_boosted(2, false);
}

static void a_count_that_wavers_does_not_end_it(void **state)
{
    (void)state;
    two_parallel(4, 4);
    for (unsigned k = 0; k < 8; k++) {
        w.apps[0].runnable = k % 2 ? 4 : 3.4;
        w.apps[1].runnable = k % 2 ? 3.4 : 4;
        asked_plan(&w);
        expect_boosted(0, true);
    }
}

static void a_timeout_of_zero_is_none(void **state)
{
    (void)state;
    static const struct params forever = {.serial_boost = -10};
    two_parallel(4, 4);
    w.params = &forever;
    for (unsigned k = 0; k < 50; k++) {
        asked_plan(&w);
        expect_boosted(0, true);
    }
}

/* --- what holds always --- */

static void change_something(struct gen *g)
{
    const unsigned a = gen_below(g, w.n_apps), how = gen_below(g, 4);
    const struct asked_app *app = &w.apps[a];
    const bool serial = how == 0 || app->n <= 2;
    if (how == 1)
        asked_leave(&w, a);
    for (unsigned t = app->first; how != 1 && t < app->first + app->n; t++)
        w.threads[t].here = !serial || t == app->first;
    if (how != 1)
        asked_phase(&w, a, serial ? ASYM_PHASE_SERIAL : ASYM_PHASE_PARALLEL, serial ? 1 : app->n);
}

static void nobody_shares_with_a_serial_thread_while_there_is_room(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        struct gen g = {.state = seed};
        double speeds[8];
        const unsigned n = 2 + gen_below(&g, 7);
        for (size_t c = 0; c < n; c++)
            speeds[c] = 1 + gen_below(&g, 4);
        begin(speeds, n);
        for (unsigned k = 0; k < 12; k++)
            asked_enter(&w, 1 + gen_below(&g, 10));
        for (unsigned k = 0; k < 60; k++) {
            change_something(&g);
            asked_plan(&w);
            unsigned n_serial = 0, n_here = 0;
            for (unsigned t = 0; t < w.n_threads; t++) {
                n_here += w.threads[t].here;
                n_serial += w.threads[t].here && w.apps[w.threads[t].app].phase == ASYM_PHASE_SERIAL;
            }
            for (unsigned t = 0; t < w.n_threads; t++) {
                if (!w.threads[t].here || w.apps[w.threads[t].app].phase != ASYM_PHASE_SERIAL)
                    continue;
                assert_int_equal(answer(t)->claim, n_serial < n || (n_serial == n && n_here == n));
                assert_true(!answer(t)->claim || w.count[asked_cpu(&w, t)] == 1);
            }
            asked_plan_again(&w);
            assert_int_equal(w.moved, 0);
        }
    }
}

static void noise_moves_nobody(void **state)
{
    (void)state;
    struct gen g = {.state = 11};
    begin(one_large, 8);
    asked_enter(&w, 1);
    asked_enter(&w, 12);
    asked_enter(&w, 2);
    asked_enter(&w, 9);
    asked_plan(&w);
    for (unsigned k = 0; k < 50; k++) {
        for (unsigned t = 0; t < w.n_threads; t++)
            w.threads[t].runnable = 0.8 + gen_below(&g, 21) / 100.0;
        for (unsigned a = 0; a < w.n_apps; a++)
            w.apps[a].runnable = w.apps[a].n * (0.8 + gen_below(&g, 21) / 100.0);
        asked_plan(&w);
        assert_int_equal(w.moved, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_options_are_those_of_the_source),
        cmocka_unit_test(a_serial_thread_has_the_fastest_cpu_to_itself),
        cmocka_unit_test(it_has_one_where_all_are_alike_too),
        cmocka_unit_test(it_has_the_favoured_core_first),
        cmocka_unit_test(boost_and_claim_end_with_the_phase),
        cmocka_unit_test(the_nice_value_becomes_that_of_the_option),
        cmocka_unit_test(who_was_serial_first_keeps_the_fastest),
        cmocka_unit_test(the_others_are_in_proportion_to_speed),
        cmocka_unit_test(where_serial_threads_leave_no_cpu_all_share),
        cmocka_unit_test(helper_threads_of_a_serial_application_share),
        cmocka_unit_test(the_only_cpu_of_another_thread_is_claimed_last),
        cmocka_unit_test(but_claimed_it_is),
        cmocka_unit_test(serial_threads_keep_to_their_cpus),
        cmocka_unit_test(the_first_to_become_parallel_is_boosted),
        cmocka_unit_test(nobody_is_where_there_are_cpus_enough),
        cmocka_unit_test(the_boost_passes_on_after_the_timeout),
        cmocka_unit_test(the_boost_ends_with_the_phase),
        cmocka_unit_test(a_count_that_wavers_does_not_end_it),
        cmocka_unit_test(a_timeout_of_zero_is_none),
        cmocka_unit_test(nobody_shares_with_a_serial_thread_while_there_is_room),
        cmocka_unit_test(noise_moves_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
