/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of serial-first (Morad 2008, 6), by hand: which threads get a CPU to themselves or a boost, and for how long. */
#include <asym/policy.h>

#include "base/mask.h"
#include "support/policy-fixture.h"
#include "support/generate.h"
#include "support/reason-text.h"
#include "support/test.h"

static struct policy_fixture w;

/* Its options: the defaults, or those of a test. timeout: in seconds. */
static struct gen_params_room params;
static double timeout;

static const double one_large[] = {2, 1, 1, 1,
                                   1, 1, 1, 1}; /* the source's machine: seven CPUs, and one twice as fast */
static const double alike[] = {1, 1, 1, 1};

static void begin(const double *speeds, size_t n)
{
    policy_fixture_begin(&w, "serial-first", speeds, n);
    gen_params(w.policy, &params);
    w.params = &params;
    timeout = 1;
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

/* Table 3, (S,P): the serial application has the large CPU, the parallel one all the others. */
TEST(a_serial_thread_has_the_fastest_cpu_to_itself)
{
    begin(one_large, 8);
    const unsigned p = policy_fixture_enter(&w, 8);
    policy_fixture_plan(&w);
    for (int c = 0; c < 8; c++)
        assert_int_equal(w.count[c], 1);
    const unsigned s = policy_fixture_enter(&w, 1);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, s), 0);
    assert_int_equal(w.count[0], 1);
    assert_int_equal(w.moved, 1);
    assert_true(answer(s)->exclusive);
    assert_int_equal(answer(s)->nice_delta, -10);
    assert_why(answer(s)->reason, "serial: a CPU to itself");
    for (unsigned t = p; t < p + 8; t++) {
        assert_false(answer(t)->exclusive);
        assert_int_equal(answer(t)->nice_delta, 0);
    }
    for (int c = 1; c < 8; c++)
        assert_in_range(w.count[c], 1, 2);
}

/* Figure 7: the policy needs no asymmetry. */
TEST(it_has_one_where_all_are_alike_too)
{
    begin(alike, 4);
    policy_fixture_enter(&w, 8);
    const unsigned s = policy_fixture_enter(&w, 1);
    policy_fixture_plan(&w);
    assert_true(answer(s)->exclusive);
    assert_int_equal(w.count[policy_fixture_cpu(&w, s)], 1);
    policy_fixture_plan_moves(&w, 0);
}

/* A Ryzen has one core type, and an order of favoured cores. */
TEST(it_has_the_favoured_core_first)
{
    begin(alike, 4);
    w.machine.cpus[2].favour = 9;
    w.machine.cpus[1].favour = 5;
    assert_int_equal(asym_machine_finish(&w.machine), 0);
    policy_fixture_enter(&w, 8);
    const unsigned s = policy_fixture_enter(&w, 1);
    w.threads[s].preferred_cpu = 0;
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, s), 2);
    const unsigned second = policy_fixture_enter(&w, 1);
    w.threads[second].preferred_cpu = 0;
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, s), 2);
    assert_int_equal(policy_fixture_cpu(&w, second), 1);
    policy_fixture_plan_moves(&w, 0);
}

TEST(boost_and_exclusive_cpu_end_with_the_phase)
{
    begin(one_large, 8);
    const unsigned first = policy_fixture_enter(&w, 4);
    policy_fixture_enter(&w, 8);
    policy_fixture_plan(&w);
    /* One of the four threads continues alone. */
    policy_fixture_phase(&w, 0, ASYM_PHASE_SERIAL, 1);
    for (unsigned t = first + 1; t < first + 4; t++)
        w.threads[t].here = false;
    policy_fixture_plan(&w);
    assert_true(answer(first)->exclusive);
    assert_int_equal(policy_fixture_cpu(&w, first), 0);
    policy_fixture_phase(&w, 0, ASYM_PHASE_PARALLEL, 4);
    for (unsigned t = first + 1; t < first + 4; t++)
        w.threads[t].here = true;
    policy_fixture_plan(&w);
    for (unsigned t = 0; t < w.n_threads; t++) {
        assert_false(answer(t)->exclusive);
        assert_int_equal(answer(t)->nice_delta, 0);
    }
    assert_in_range(w.count[0], 2, 3);
}

/* Section 6: the newly serial thread is rescheduled at once. Its last interval does not count, and its mates wait for it. */
TEST(a_thread_that_has_begun_to_run_alone_has_the_idlest_fast_cpu_at_once)
{
    begin(one_large, 8);
    const unsigned first = policy_fixture_enter(&w, 8);
    policy_fixture_enter(&w, 8);
    policy_fixture_plan(&w);
    unsigned t = first;
    while (policy_fixture_cpu(&w, t) == 0)
        t++;
    for (int master = 0; master < 2; master++) {
        w.threads[t].alone = !master;
        w.threads[t].master = w.threads[t].in_phase = master;
        w.threads[t].runnable = 0.1;
        policy_fixture_phase(&w, 0, master ? ASYM_PHASE_PARALLEL : ASYM_PHASE_SERIAL, 1);
        policy_fixture_plan_refreshed(&w, ASYM_MSEC);
        assert_int_equal(policy_fixture_cpu(&w, t), 0);
        assert_int_equal(w.count[0], 1);
        for (unsigned u = first; u < first + 8; u++) {
            assert_int_equal(answer(u)->exclusive, u == t);
            assert_int_equal(answer(u)->nice_delta, u == t ? -10 : 0);
        }
        w.threads[t].alone = w.threads[t].master = w.threads[t].in_phase = false;
        policy_fixture_phase(&w, 0, ASYM_PHASE_PARALLEL, 8);
        policy_fixture_plan_refreshed(&w, ASYM_MSEC);
        assert_false(answer(t)->exclusive);
        assert_int_equal(answer(t)->nice_delta, 0);
    }
    assert_true(w.policy->reacts && w.policy->serves_alone);
}

/* A pipe: a program with a master, and one that compresses. The one that is alone is so in the whole job. */
TEST(a_master_lowers_no_thread_of_another_process)
{
    for (int master = 0; master < 2; master++) {
        begin(one_large, 8);
        const unsigned first = policy_fixture_enter(&w, 2);
        w.threads[first + 1].proc = 1;
        policy_fixture_plan(&w);
        w.threads[first].alone = !master;
        w.threads[first].master = w.threads[first].in_phase = master;
        policy_fixture_plan_refreshed(&w, ASYM_MSEC);
        assert_int_equal(answer(first)->nice_delta, -10);
        assert_int_equal(answer(first + 1)->nice_delta, master ? -10 : 0);
    }
}

/* asym_rtx_master() without phases, or ASYM_RTX_MASTER=active: the master works beside its team, and no thread waits for it. */
TEST(a_master_without_phases_is_a_thread_of_a_parallel_program)
{
    begin(one_large, 8);
    const unsigned first = policy_fixture_enter(&w, 8);
    policy_fixture_plan(&w);
    w.threads[first].master = true;
    policy_fixture_plan_refreshed(&w, ASYM_MSEC);
    for (unsigned t = first; t < first + 8; t++) {
        assert_false(answer(t)->exclusive);
        assert_int_equal(answer(t)->nice_delta, 0);
    }
}

TEST(a_later_report_of_a_serial_phase_takes_no_cpu_of_an_earlier_phase)
{
    begin(one_large, 8);
    const unsigned reports = policy_fixture_enter(&w, 4);
    const unsigned s = policy_fixture_enter(&w, 1);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, s), 0);
    w.threads[reports].master = w.threads[reports].in_phase = true;
    policy_fixture_plan_refreshed(&w, ASYM_MSEC);
    assert_int_equal(policy_fixture_cpu(&w, s), 0);
    assert_true(answer(reports)->exclusive);
}

TEST(the_nice_value_becomes_that_of_the_option)
{
    static const int rows[][2] = {{0, -10}, {5, -15}, {-4, -6}, {-10, 0}, {-15, 0}, {19, -29}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        begin(alike, 4);
        const unsigned s = policy_fixture_enter(&w, 1);
        w.threads[s].nice = rows[i][0];
        policy_fixture_plan(&w);
        assert_int_equal(answer(s)->nice_delta, rows[i][1]);
    }
}

TEST(the_first_serial_thread_keeps_the_fastest_cpu)
{
    static const double speeds[] = {1, 2, 3};
    begin(speeds, 3);
    const unsigned a = policy_fixture_enter(&w, 1);
    policy_fixture_plan(&w);
    const unsigned b = policy_fixture_enter(&w, 1);
    policy_fixture_plan_moves(&w, 0);
    assert_int_equal(policy_fixture_cpu(&w, a), 2);
    assert_int_equal(policy_fixture_cpu(&w, b), 1);
    assert_true(answer(a)->exclusive && answer(b)->exclusive);
    policy_fixture_leave(&w, 0);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, b), 2);
    /* The first returns in a new phase, so it now comes second. */
    w.threads[a].here = true;
    policy_fixture_phase(&w, 0, ASYM_PHASE_SERIAL, 1);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, b), 2);
    assert_int_equal(policy_fixture_cpu(&w, a), 1);
}

TEST(the_others_are_in_proportion_to_speed)
{
    static const double speeds[] = {4, 2, 1, 1};
    begin(speeds, 4);
    const unsigned s = policy_fixture_enter(&w, 1);
    policy_fixture_enter(&w, 8);
    policy_fixture_plan(&w);
    assert_int_equal(policy_fixture_cpu(&w, s), 0);
    assert_int_equal(w.count[0], 1);
    assert_int_equal(w.count[1], 4);
    assert_int_equal(w.count[2], 2);
    assert_int_equal(w.count[3], 2);
}

TEST(where_serial_threads_leave_no_cpu_all_share)
{
    for (unsigned n_serial = 1; n_serial <= 9; n_serial++) {
        for (unsigned n_parallel = 0; n_parallel <= 5; n_parallel += 5) {
            begin(alike, 4);
            for (unsigned k = 0; k < n_serial; k++)
                policy_fixture_enter(&w, 1);
            if (n_parallel > 0)
                policy_fixture_enter(&w, n_parallel);
            policy_fixture_plan(&w);
            const bool room = n_parallel > 0 ? n_serial < 4 : n_serial <= 4;
            unsigned serial[4] = {0};
            for (unsigned t = 0; t < n_serial; t++) {
                assert_int_equal(answer(t)->exclusive, room);
                assert_int_equal(answer(t)->nice_delta, -10);
                assert_why(answer(t)->reason,
                           room ? "serial: a CPU to itself"
                                : "serial: shares a CPU (%.0f threads want a CPU each, %.0f can have one)");
                assert_true(room || answer(t)->figure[0] == n_serial);
                assert_true(room || answer(t)->figure[1] == 4);
                serial[policy_fixture_cpu(&w, t)]++;
            }
            for (int c = 0; c < 4; c++) {
                assert_in_range(serial[c], n_serial / 4, (n_serial + 3) / 4);
                assert_true(!room || serial[c] == 0 || w.count[c] == 1);
                if (!room)
                    assert_in_range(w.count[c], (n_serial + n_parallel) / 4, (n_serial + n_parallel + 3) / 4);
            }
            policy_fixture_plan_moves(&w, 0);
        }
    }
}

TEST(helper_threads_of_a_serial_application_share)
{
    begin(one_large, 8);
    const unsigned s = policy_fixture_enter(&w, 5);
    policy_fixture_enter(&w, 8);
    policy_fixture_phase(&w, 0, ASYM_PHASE_SERIAL, 1.2);
    for (unsigned t = s + 1; t < s + 5; t++)
        w.threads[t].runnable = 0.05;
    policy_fixture_plan(&w);
    assert_true(answer(s)->exclusive);
    for (unsigned t = s + 1; t < s + 5; t++) {
        assert_false(answer(t)->exclusive);
        assert_int_equal(answer(t)->nice_delta, -10);
        assert_why(answer(t)->reason, "serial, but sleeps");
        assert_true(answer(t)->figure[0] == 100 * (1 - w.threads[t].runnable));
    }
    /* A share that varies around the limit does not change the holder of the CPU. */
    w.threads[s + 1].runnable = 0.27;
    policy_fixture_plan(&w);
    assert_true(answer(s + 1)->exclusive);
    for (unsigned k = 0; k < 10; k++) {
        w.threads[s + 1].runnable = k % 2 ? 0.27 : 0.2;
        policy_fixture_plan(&w);
        assert_true(answer(s + 1)->exclusive);
        assert_int_equal(w.moved, 0);
    }
    w.threads[s + 1].runnable = 0.1;
    policy_fixture_plan(&w);
    assert_false(answer(s + 1)->exclusive);
}

TEST(the_only_cpu_of_another_thread_becomes_exclusive_last)
{
    static struct asym_mask last;
    begin(alike, 4);
    last = only(0);
    const unsigned p = policy_fixture_enter(&w, 3);
    w.threads[p].allowed = &last;
    for (unsigned k = 0; k < 3; k++)
        policy_fixture_enter(&w, 1);
    w.threads[p + 1].here = w.threads[p + 2].here = false;
    policy_fixture_plan(&w);
    for (unsigned t = p + 3; t < p + 6; t++) {
        assert_true(answer(t)->exclusive);
        assert_int_not_equal(policy_fixture_cpu(&w, t), 0);
    }
}

TEST(the_only_cpu_of_another_thread_can_become_exclusive)
{
    static struct asym_mask each[4];
    begin(alike, 4);
    const unsigned p = policy_fixture_enter(&w, 4);
    for (unsigned c = 0; c < 4; c++) {
        each[c] = only(c);
        w.threads[p + c].allowed = &each[c];
    }
    const unsigned s = policy_fixture_enter(&w, 1);
    policy_fixture_plan(&w);
    assert_true(answer(s)->exclusive);
    assert_int_equal(w.count[policy_fixture_cpu(&w, s)], 2);
}

/* --- seniority --- */

static void expect_boosted(unsigned app, int boosted)
{
    for (unsigned t = w.apps[app].first; t < w.apps[app].first + w.apps[app].n; t++) {
        if (!w.threads[t].here)
            continue;
        assert_int_equal(answer(t)->nice_delta, boosted ? -10 : 0);
        assert_int_equal(is_why(answer(t)->reason, "parallel the longest"), boosted);
        assert_false(answer(t)->exclusive);
        if (!boosted)
            continue;
        assert_true(answer(t)->figure[0] >= 0 && answer(t)->figure[0] <= timeout);
        assert_true(answer(t)->figure[1] == timeout);
    }
}

static void two_parallel(unsigned n_first, unsigned n_second)
{
    begin(alike, 4);
    policy_fixture_enter(&w, n_first);
    policy_fixture_plan(&w);
    policy_fixture_enter(&w, n_second);
    policy_fixture_plan(&w);
}

TEST(the_first_to_become_parallel_is_boosted)
{
    two_parallel(4, 6);
    expect_boosted(0, true);
    expect_boosted(1, false);
    assert_float_equal((float)answer(0)->figure[0], 1, 1e-6F);
    /* not the first in the list */
    begin(alike, 4);
    policy_fixture_enter(&w, 5);
    policy_fixture_enter(&w, 5);
    policy_fixture_phase(&w, 1, ASYM_PHASE_PARALLEL, 5);
    w.now += ASYM_SEC;
    policy_fixture_phase(&w, 0, ASYM_PHASE_PARALLEL, 5);
    policy_fixture_plan(&w);
    expect_boosted(0, false);
    expect_boosted(1, true);
}

TEST(no_application_is_senior_if_there_are_enough_cpus)
{
    two_parallel(4, 3);
    expect_boosted(0, false);
    expect_boosted(1, false);
    two_parallel(8, 1);
    expect_boosted(0, false);
}

TEST(a_program_in_the_background_is_never_senior)
{
    two_parallel(4, 4);
    w.apps[0].class_by = ASYM_CLASS_BY_NICE;
    policy_fixture_plan(&w);
    expect_boosted(0, false);
    expect_boosted(1, false);
    policy_fixture_enter(&w, 4);
    policy_fixture_plan(&w);
    expect_boosted(0, false);
    expect_boosted(1, true);
}

TEST(the_boost_passes_on_after_the_timeout)
{
    two_parallel(4, 4);
    policy_fixture_enter(&w, 4);
    /* There were two plans so far, the second with the boost. */
    for (unsigned k = 1; k < 100; k++) {
        policy_fixture_plan(&w);
        for (unsigned a = 0; a < 3; a++)
            expect_boosted(a, a == k / 10 % 3);
        assert_int_equal(k > 1 ? w.moved : 0, 0); /* only the nice values change */
        policy_fixture_plan_again(&w);
        expect_boosted(k / 10 % 3, true);
    }
}

TEST(the_boost_ends_with_the_phase)
{
    two_parallel(4, 4);
    expect_boosted(0, true);
    /* The other application becomes serial, so there is no senior. */
    policy_fixture_phase(&w, 1, ASYM_PHASE_SERIAL, 1);
    for (unsigned t = 5; t < 8; t++)
        w.threads[t].here = false;
    policy_fixture_plan(&w);
    expect_boosted(0, false);
    assert_true(answer(4)->exclusive);
    /* The other application is parallel again, and the senior leaves. */
    policy_fixture_phase(&w, 1, ASYM_PHASE_PARALLEL, 4);
    for (unsigned t = 5; t < 8; t++)
        w.threads[t].here = true;
    policy_fixture_plan(&w);
    expect_boosted(0, true);
    policy_fixture_enter(&w, 4);
    policy_fixture_leave(&w, 0);
    policy_fixture_plan(&w);
    expect_boosted(1, true);
    expect_boosted(2, false);
}

TEST(a_count_that_wavers_does_not_end_it)
{
    two_parallel(4, 4);
    for (unsigned k = 0; k < 8; k++) {
        w.apps[0].runnable = k % 2 ? 4 : 3.4;
        w.apps[1].runnable = k % 2 ? 3.4 : 4;
        policy_fixture_plan(&w);
        expect_boosted(0, true);
    }
}

TEST(a_timeout_of_zero_is_none)
{
    two_parallel(4, 4);
    params = gen_params_with(w.policy, "seniority_timeout", "0ms");
    timeout = 0;
    for (unsigned k = 0; k < 50; k++) {
        policy_fixture_plan(&w);
        expect_boosted(0, true);
    }
}

/* --- invariants --- */

static void change_something(struct gen *g)
{
    const unsigned a = gen_below(g, w.n_apps), how = gen_below(g, 4);
    const struct policy_fixture_app *app = &w.apps[a];
    const bool serial = how == 0 || app->n <= 2;
    if (how == 1)
        policy_fixture_leave(&w, a);
    for (unsigned t = app->first; how != 1 && t < app->first + app->n; t++)
        w.threads[t].here = !serial || t == app->first;
    if (how != 1)
        policy_fixture_phase(&w, a, serial ? ASYM_PHASE_SERIAL : ASYM_PHASE_PARALLEL, serial ? 1 : app->n);
}

TEST(no_thread_shares_with_a_serial_thread_while_there_is_room)
{
    for (unsigned seed = 0; seed < 100; seed++) {
        struct gen g = {.state = seed};
        double speeds[8];
        const unsigned n = 2 + gen_below(&g, 7);
        for (size_t c = 0; c < n; c++)
            speeds[c] = 1 + gen_below(&g, 4);
        begin(speeds, n);
        for (unsigned k = 0; k < 12; k++)
            policy_fixture_enter(&w, 1 + gen_below(&g, 10));
        for (unsigned k = 0; k < 60; k++) {
            change_something(&g);
            policy_fixture_plan(&w);
            unsigned n_serial = 0, n_here = 0;
            for (unsigned t = 0; t < w.n_threads; t++) {
                n_here += w.threads[t].here;
                n_serial += w.threads[t].here && w.apps[w.threads[t].app].phase == ASYM_PHASE_SERIAL;
            }
            for (unsigned t = 0; t < w.n_threads; t++) {
                if (!w.threads[t].here || w.apps[w.threads[t].app].phase != ASYM_PHASE_SERIAL)
                    continue;
                assert_int_equal(answer(t)->exclusive, n_serial < n || (n_serial == n && n_here == n));
                assert_true(!answer(t)->exclusive || w.count[policy_fixture_cpu(&w, t)] == 1);
            }
            policy_fixture_plan_again(&w);
            assert_int_equal(w.moved, 0);
        }
    }
}

TEST_MAIN
