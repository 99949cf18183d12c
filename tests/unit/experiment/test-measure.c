/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares measures with figures computed by hand, and the analytic model with the placements that it describes. */
#include <math.h>

#include "experiment/experiment.h"
#include "support/analytic-model.h"
#include "support/paper-measures.h"
#include "support/test.h"

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("%.12g, not %.12g", got, want);
}

TEST(speedup_fairness_and_jitter)
{
    near(asym_measure_throughput(600, 60), 10);
    near(asym_measure_speedup(3, 4), 0.75);
    const double three[] = {0.9, 0.45, 0.6};
    near(asym_measure_fairness(three, 3), 0.5);
    near(asym_measure_fairness(three, 1), 1);
    const double t[] = {9, 10, 11};
    near(asym_measure_jitter(t, 3), sqrt(0.02 / 3));
    near(asym_measure_jitter(t, 1), 0);
    assert_true(isnan(asym_measure_throughput(1, 0)) && isnan(asym_measure_fairness(t, 0)));
}

TEST(weighted_speedup_of_the_papers_own_exercise)
{
    /* Snavely 2002, 4.1: IPC 2 and 1 alone; together 1 M and 0.5 M, then 1.2 M and 0.6 M instructions in 1 M cycles. */
    const double alone[] = {2, 1}, fair[] = {1, 0.5}, better[] = {1.2, 0.6};
    near(asym_paper_weighted_speedup(fair, alone, 2), 1);
    near(asym_paper_weighted_speedup(better, alone, 2), 1.2);
    near(asym_paper_weighted_speedup(alone, alone, 1), 1);
}

TEST(response_times_and_gain_of_table_5_2)
{
    const struct asym_instance two[] = {{0, 7, 6}, {1, 9, 7}};
    const struct asym_response r = asym_paper_response(two, 2);
    near(r.total, 9);
    near(r.avg, 6.5);
    /* Avg of the unmodified scheduler, of a strategy, and the gain printed: rounded to a tenth of a per cent. */
    static const double rows[][3] = {{13.85, 6.59, 52.4}, {12.74, 6.15, 51.7}, {11.09, 6.14, 44.7},
                                     {12.18, 6.68, 45.1}, {10.95, 6.74, 38.4}, {10.31, 6.74, 34.6},
                                     {13.85, 7.21, 47.9}, {12.18, 8.87, 27.2}, {10.31, 8.70, 15.6}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        assert_true(fabs(100 * asym_paper_gain(rows[i][1], rows[i][0]) - rows[i][2]) < 0.1);
}

TEST(turnaround_is_of_all_jobs_whatever_their_kind)
{
    /* Jobs of 1, 2 and 3 s, one of 10 s, and a kind without an ended job. */
    const double times[] = {6, 10, 0}, ended[] = {3, 1, 0};
    near(asym_measure_turnaround(times, ended, 3), 4);
    near(asym_measure_turnaround(times, ended, 1), 2);
    assert_true(isnan(asym_measure_turnaround(times + 2, ended + 2, 1)));
}

TEST(means_and_confidence)
{
    const double x[] = {2, 8}, slow[] = {4, 4, 4};
    near(asym_measure_mean(x, 2), 5);
    near(asym_paper_geometric_mean(x, 2), 4);
    near(asym_paper_over_default(x, 2, slow, 3), 0);
    near(asym_paper_over_default(x, 1, slow, 3), 1);
    /* Standard deviation of 1..5 is sqrt(2.5), t for four degrees of freedom 2.776. */
    const double five[] = {1, 2, 3, 4, 5};
    near(asym_measure_confidence(five, 5), 2.776 * sqrt(2.5 / 5));
    assert_true(isnan(asym_measure_confidence(five, 1)));
    double many[200];
    for (size_t i = 0; i < 200; i++)
        many[i] = (double)(i % 2);
    near(asym_measure_confidence(many, 200), 1.980 * sqrt(0.25 * 200 / 199 / 200));
}

TEST(labels_of_equation_1)
{
    struct asym_label l = asym_paper_label(64, 1, 8);
    near(l.parallel, 8);
    near(l.serial, 1);
    l = asym_paper_label(8, 4, 8);
    near(l.parallel, 1);
    near(l.serial, 4);
    l = asym_paper_label(8, 0, 8);
    assert_true(isinf(l.parallel) && l.serial == 1);
    l = asym_paper_label(0, 8, 8);
    assert_true(isinf(l.serial) && l.parallel == 1);
    assert_true(isnan(asym_paper_label(0, 0, 8).serial));
}

/* n + 1 threads, one of them A's, go to n CPUs so that two share one: mean, least and most of A's performance. */
static void enumerate_sp(unsigned n, double a, double *ret_sum, double *ret_least, double *ret_most)
{
    double sum = 0, least = INFINITY, most = 0;
    /* The CPU that two share, and the seat of A's thread among the n + 1: all equally likely. */
    for (unsigned shared = 0; shared < n; shared++) {
        for (unsigned seat = 0; seat <= n; seat++) {
            const unsigned cpu = seat < n ? seat : shared;
            const double perf = (cpu == 0 ? a : 1) / (cpu == shared ? 2 : 1);
            sum += perf / (n * (n + 1.0));
            least = fmin(least, perf);
            most = fmax(most, perf);
        }
    }
    *ret_sum = sum;
    *ret_least = least;
    *ret_most = most;
}

TEST(table_1_is_the_mean_over_all_placements)
{
    for (unsigned n = 2; n <= 16; n++) {
        for (double a = 1; a < 2; a += 0.25) {
            const double alone = (n - 1 + a) / n;
            double mean, least, most;
            enumerate_sp(n, a, &mean, &least, &most);
            struct asym_model_speedup s = asym_model_speedup(ASYM_SCHEDULER_BASELINE, ASYM_JOINT_SP, n, a);
            near(s.avg, mean / alone);
            near(s.avg, n / (n + 1.0));
            near(s.min, least / alone);
            near(s.max, most / alone);
            near(s.spread, 2 * a);
            /* All CPUs are busy, so the other program gets the rest. */
            s = asym_model_speedup(ASYM_SCHEDULER_BASELINE, ASYM_JOINT_PS, n, a);
            near(s.avg * (n - 1 + a) + mean, n - 1 + a);
            near(s.min * (n - 1 + a) + a, n - 1 + a);
            near(s.max * (n - 1 + a) + 0.5, n - 1 + a);
        }
    }
}

TEST(the_tables_at_eight_cpus)
{
    /* n = 8, a = 2, worked by hand from the source's rows: min, avg, max. */
    static const double rows[ASYM_N_SCHEDULERS][ASYM_N_JOINTS][3] = {
        {{8 / 9.0, 1, 16 / 9.0}, {4 / 9.0, 8 / 9.0, 16 / 9.0}, {7 / 9.0, 8 / 9.0, 8.5 / 9}, {4 / 9.0, 0.5, 5 / 9.0}},
        {{8 / 9.0, 1, 16 / 9.0}, {16 / 9.0, 16 / 9.0, 16 / 9.0}, {7 / 9.0, 7 / 9.0, 7 / 9.0}, {4 / 9.0, 0.5, 5 / 9.0}},
    };
    for (int k = 0; k < ASYM_N_SCHEDULERS; k++) {
        for (int j = 0; j < ASYM_N_JOINTS; j++) {
            const struct asym_model_speedup s = asym_model_speedup((enum asym_scheduler)k, (enum asym_joint)j, 8, 2);
            near(s.min, rows[k][j][0]);
            near(s.avg, rows[k][j][1]);
            near(s.max, rows[k][j][2]);
        }
    }
    assert_true(isnan(asym_model_speedup(ASYM_SCHEDULER_BASELINE, ASYM_JOINT_SS, 1, 2).min));
}

TEST(worst_fairness_of_table_2)
{
    for (unsigned n = 2; n <= 16; n++) {
        for (double a = 1; a < 2; a += 0.25) {
            near(asym_model_fairness(ASYM_SCHEDULER_BASELINE, ASYM_JOINT_SS, n, a), 1 / a);
            near(asym_model_fairness(ASYM_SCHEDULER_BASELINE, ASYM_JOINT_SP, n, a), n / (2 * (n - 1.5 + a)));
            near(asym_model_fairness(ASYM_SCHEDULER_BASELINE, ASYM_JOINT_PS, n, a), (n - 1) / (a * n));
            near(asym_model_fairness(ASYM_SCHEDULER_BASELINE, ASYM_JOINT_PP, n, a), n / (n - 2 + 2 * a));
        }
    }
}

TEST_MAIN
