/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the arithmetic of shares on a core against the worked examples and the equations of Snavely 2002. */
#include <math.h>

#include "policy/smt/smt.h"
#include "support/generate.h"
#include "support/test.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

TEST(weights_are_the_kernels_or_the_sources)
{
    NEAR(asym_smt_weight(ASYM_SMT_NICE, 0), 1024);
    NEAR(asym_smt_weight(ASYM_SMT_NICE, -20), 88761);
    NEAR(asym_smt_weight(ASYM_SMT_NICE, 19), 15);
    NEAR(asym_smt_weight(ASYM_SMT_NICE, 100), 15);
    NEAR(asym_smt_weight(ASYM_SMT_NICE, -100), 88761);
    NEAR(asym_smt_weight(ASYM_SMT_SOURCE, 0), 19);
    NEAR(asym_smt_weight(ASYM_SMT_SOURCE, -20), 19);
    NEAR(asym_smt_weight(ASYM_SMT_SOURCE, 18), 1);
    NEAR(asym_smt_weight(ASYM_SMT_SOURCE, 19), 0);
    /* a step of nice is about a quarter */
    for (int n = -20; n < 19; n++)
        assert_in_range((int)(asym_smt_weight(ASYM_SMT_NICE, n) / asym_smt_weight(ASYM_SMT_NICE, n + 1) * 100), 115,
                        135);
}

TEST(shares_add_up_to_one)
{
    NEAR(asym_smt_frac(12, 16, 2), 0.75);
    NEAR(asym_smt_frac(4, 16, 2), 0.25);
    NEAR(asym_smt_frac(0, 0, 4), 0.25); /* all have p = 19 */
    NEAR(asym_smt_frac(0, 19, 2), 0);
    NEAR(asym_smt_frac(0, 0, 0), 1);
}

/* Snavely 2002, 3: a thread that is entitled to 75 % may run beside another for half of the time. */
TEST(the_example_of_the_source)
{
    NEAR(asym_smt_cofrac(0.75, 1 / 2.0), 0.5);
    NEAR(asym_smt_cofrac(0.25, 1 / 2.0), 1);
    const double cs = 1 - (1 - asym_smt_cofrac(0.75, 0.5)) - (1 - asym_smt_cofrac(0.25, 0.5));
    NEAR(cs, 0.5);
    /* 100 % of the system half of the time and 50 % of it for the other half */
    NEAR((1 - cs) * 1 + cs * 0.5, 0.75);
}

TEST(the_rest_of_equation_1)
{
    NEAR(asym_smt_cofrac(1, 0.5), 0);
    NEAR(asym_smt_cofrac(0.5, 0.5), 1);
    NEAR(asym_smt_cofrac(0.4, 0.25), 0.8);
    NEAR(asym_smt_cofrac(1, 1), 1); /* the thread is alone on the core and needs no window */
    NEAR(asym_smt_cofrac(0.3, 1.2), 1);
    /* symb: a thread that gets more than 1/P beside others may run beside them for longer than under naive. */
    NEAR(asym_smt_cofrac(0.75, 0.6), 0.625);
    assert_true(asym_smt_cofrac(0.75, 0.6) > asym_smt_cofrac(0.75, 0.5));
    NEAR(asym_smt_cofrac(0.75, 0.75), 1);
    /* If the threads hinder each other, the time is shorter. */
    NEAR(asym_smt_cofrac(0.75, 0), 0.25);
}

/*
 * A schedule is viable if each thread gets at least its FRAC of its speed alone (Snavely 2002, 3). This holds for two threads
 * on a core, as long as they do more work together than in turns. With more threads, the window of one takes time from the
 * others, which their COFRAC does not consider.
 */
TEST(every_schedule_of_two_is_viable)
{
    struct gen g = {.state = 1};
    for (unsigned round = 0; round < 10000; round++) {
        double weight[2], x[2] = {0.5, 0.5}, solo[2];
        for (unsigned i = 0; i < 2; i++)
            weight[i] = asym_smt_weight(ASYM_SMT_NICE, (int)gen_below(&g, 40) - 20);
        if (round % 2) {
            x[0] = gen_below(&g, 100) / 100.0;
            x[1] = 1 - x[0] + gen_below(&g, 20) / 100.0;
        }
        for (unsigned i = 0; i < 2; i++)
            solo[i] = 1 - asym_smt_cofrac(asym_smt_frac(weight[i], weight[0] + weight[1], 2), x[i]);
        const double cs = 1 - solo[0] - solo[1];
        for (unsigned i = 0; i < 2; i++)
            assert_true(solo[i] + cs * x[i] >= weight[i] / (weight[0] + weight[1]) - 1e-9);
    }
}

TEST(the_windows_of_a_core_fit_into_the_time)
{
    struct gen g = {.state = 3};
    for (unsigned round = 0; round < 10000; round++) {
        const unsigned p = 2 + gen_below(&g, 7);
        double weight[8], sum = 0, solo = 0;
        for (unsigned i = 0; i < p; i++)
            sum += weight[i] = asym_smt_weight(ASYM_SMT_NICE, (int)gen_below(&g, 40) - 20);
        for (unsigned i = 0; i < p; i++)
            solo += 1 - asym_smt_cofrac(weight[i] / sum, round % 2 ? gen_below(&g, 120) / 100.0 : 1.0 / p);
        assert_true(solo <= 1 + 1e-9);
    }
}

TEST(windows_lie_end_to_end_and_never_too_many_are_open)
{
    struct gen g = {.state = 2};
    for (unsigned round = 0; round < 2000; round++) {
        const unsigned n = 1 + gen_below(&g, 40), limit = n / 2;
        double length[40], begin[40], wanted[40], total = 0;
        for (unsigned i = 0; i < n; i++)
            total += length[i] = wanted[i] = gen_below(&g, 3) == 0 ? 0 : gen_below(&g, 101) / 100.0;
        const double factor = asym_smt_lay(length, n, limit, gen_below(&g, 1000) / 1000.0, begin);
        NEAR(factor, total > limit ? limit / total : 1);
        for (unsigned i = 0; i < n; i++) {
            NEAR(length[i], wanted[i] * factor);
            assert_true(begin[i] >= 0 && begin[i] < 1);
        }
        for (unsigned k = 0; k < 100; k++) {
            unsigned open = 0;
            for (unsigned i = 0; i < n; i++)
                open += asym_smt_left(begin[i], length[i], (k + 0.5) / 100 + 1e-7) > 0;
            assert_true(open <= limit);
        }
    }
}

TEST(a_window_may_go_round_the_end)
{
    NEAR(asym_smt_left(0.2, 0.3, 0.1), 0);
    NEAR(asym_smt_left(0.2, 0.3, 0.2), 0.3);
    NEAR(asym_smt_left(0.2, 0.3, 0.4), 0.1);
    NEAR(asym_smt_left(0.2, 0.3, 0.5), 0);
    /* A new period lays its windows again, so the end of the period ends the old window. */
    NEAR(asym_smt_left(0.9, 0.3, 0.95), 0.05);
    NEAR(asym_smt_left(0.9, 0.3, 0.1), 0.1);
    NEAR(asym_smt_left(0.9, 0.3, 0.3), 0);
    NEAR(asym_smt_left(0.5, 0, 0.5), 0);
    NEAR(asym_smt_left(0.5, 1, 0.25), 0.25);
}

/* A window of 0.23 of a rotation of ten samples is no whole number of samples; the mean of its hits must be right. */
TEST(samples_in_step_hit_a_window_as_often_as_its_length_says)
{
    const struct asym_smt_times times = {.rotation = ASYM_SEC};
    unsigned hits = 0;
    for (asym_usec now = 1000 * ASYM_SEC; now < 2000 * ASYM_SEC; now += 100 * ASYM_MSEC) {
        const struct asym_smt_stage stage = asym_smt_stage_at(&times, 0, now);
        double length = 0.23, begin;
        asym_smt_lay(&length, 1, 1, asym_smt_shift(&stage), &begin);
        hits += asym_smt_left(begin, length, asym_smt_at(&stage, now)) > 0;
    }
    assert_in_range(hits, 2280, 2320);
}

TEST(time_is_rotations_where_nothing_is_sampled)
{
    const struct asym_smt_times times = {.rotation = ASYM_SEC};
    const struct asym_smt_stage s = asym_smt_stage_at(&times, 0, 7 * ASYM_SEC + 250 * ASYM_MSEC);
    assert_int_equal(s.kind, ASYM_SMT_RUN);
    assert_int_equal(s.from, 7 * ASYM_SEC);
    assert_int_equal(s.until, 8 * ASYM_SEC);
    assert_int_equal(s.cycle, 0);
    NEAR(asym_smt_at(&s, 7 * ASYM_SEC + 250 * ASYM_MSEC), 0.25);
    const struct asym_smt_stage none = asym_smt_stage_at(&(struct asym_smt_times){0}, 0, ASYM_SEC);
    assert_int_equal(none.from, none.until);
    NEAR(asym_smt_at(&none, ASYM_SEC), 0);
}

TEST(a_sample_phase_is_alone_then_together_then_symbios_follows)
{
    const struct asym_smt_times times = {
        .rotation = ASYM_SEC, .sample = 4 * ASYM_SEC, .symbios = 10500 * ASYM_MSEC, .pairings = 4};
    static const struct {
        unsigned at, from, until; /* ms */
        enum asym_smt_kind kind;
        unsigned pairing;
    } rows[] = {
        {0, 0, 2000, ASYM_SMT_ALONE, 0},          {1999, 0, 2000, ASYM_SMT_ALONE, 0},
        {2000, 2000, 2500, ASYM_SMT_TOGETHER, 0}, {2500, 2500, 3000, ASYM_SMT_TOGETHER, 1},
        {3999, 3500, 4000, ASYM_SMT_TOGETHER, 3}, {4000, 4000, 5000, ASYM_SMT_RUN, 0},
        {13999, 13000, 14000, ASYM_SMT_RUN, 0},   {14000, 14000, 14500, ASYM_SMT_RUN, 0},
        {14500, 14500, 16500, ASYM_SMT_ALONE, 0},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const asym_usec began = 77 * ASYM_SEC;
        const struct asym_smt_stage s = asym_smt_stage_at(&times, began, began + rows[i].at * ASYM_MSEC);
        assert_int_equal(s.kind, rows[i].kind);
        assert_int_equal(s.pairing, rows[i].pairing);
        assert_int_equal(s.from, began + rows[i].from * ASYM_MSEC);
        assert_int_equal(s.until, began + rows[i].until * ASYM_MSEC);
        assert_int_equal(s.cycle, rows[i].at < 14500 ? 1 : 2);
    }
}

TEST_MAIN
