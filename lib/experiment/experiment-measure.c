/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/experiment.h"

#include <math.h>

#include "base/macro.h"

double asym_measure_over(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

double asym_measure_fairness(const double *speedup, size_t n)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(speedup[i] >= 0))
            return (double)NAN;
        least = ASYM_MIN(least, speedup[i]);
        most = ASYM_MAX(most, speedup[i]);
    }
    return asym_measure_over(least, most);
}

double asym_measure_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return asym_measure_over(sum, (double)n);
}

double asym_measure_turnaround(const double *times, const double *ended, size_t n_kinds)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < n_kinds; i++) {
        sum += times[i];
        n += ended[i];
    }
    return asym_measure_over(sum, n);
}

double asym_measure_jitter(const double *t, size_t n)
{
    const double mean = asym_measure_mean(t, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = asym_measure_over(t[i], mean) - 1;
        sum += off * off;
    }
    return sqrt(asym_measure_over(sum, (double)n));
}

/* Two-sided 95 % quantiles of Student's t by degrees of freedom. Between rows, the next lower row gives a wider interval. */
static const struct {
    size_t freedom;
    double t;
} quantiles[] = {
    {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},   {5, 2.571},  {6, 2.447},  {7, 2.365},
    {8, 2.306},  {9, 2.262},  {10, 2.228}, {11, 2.201},  {12, 2.179}, {13, 2.160}, {14, 2.145},
    {15, 2.131}, {16, 2.120}, {17, 2.110}, {18, 2.101},  {19, 2.093}, {20, 2.086}, {25, 2.060},
    {30, 2.042}, {40, 2.021}, {60, 2.000}, {120, 1.980},
};

double asym_measure_confidence(const double *x, size_t n)
{
    if (n < 2)
        return (double)NAN;
    const double mean = asym_measure_mean(x, n);
    double sum = 0, t = quantiles[0].t;
    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    for (size_t i = 0; i < ASYM_LENGTH(quantiles) && quantiles[i].freedom <= n - 1; i++)
        t = quantiles[i].t;
    return t * sqrt(sum / (double)(n - 1) / (double)n);
}
