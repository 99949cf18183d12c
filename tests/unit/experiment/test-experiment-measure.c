/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares measures with figures computed by hand. */
#include <math.h>

#include "experiment/experiment.h"
#include "support/test.h"

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("%.12g, not %.12g", got, want);
}

TEST(speedup_fairness_and_jitter)
{
    near(asym_measure_over(600, 60), 10);
    near(asym_measure_over(3, 4), 0.75);
    const double three[] = {0.9, 0.45, 0.6};
    near(asym_measure_fairness(three, 3), 0.5);
    near(asym_measure_fairness(three, 1), 1);
    const double t[] = {9, 10, 11};
    near(asym_measure_jitter(t, 3), sqrt(0.02 / 3));
    near(asym_measure_jitter(t, 1), 0);
    assert_true(isnan(asym_measure_over(1, 0)) && isnan(asym_measure_fairness(t, 0)));
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
    near(asym_measure_mean((const double[]){2, 8}, 2), 5);
    /* Standard deviation of 1..5 is sqrt(2.5), t for four degrees of freedom 2.776. */
    const double five[] = {1, 2, 3, 4, 5};
    near(asym_measure_confidence(five, 5), 2.776 * sqrt(2.5 / 5));
    assert_true(isnan(asym_measure_confidence(five, 1)));
    double many[200];
    for (size_t i = 0; i < 200; i++)
        many[i] = (double)(i % 2);
    near(asym_measure_confidence(many, 200), 1.980 * sqrt(0.25 * 200 / 199 / 200));
}

TEST_MAIN
