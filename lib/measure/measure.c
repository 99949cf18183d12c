/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "measure/measure.h"

#include <math.h>

#include "base/macro.h"

static double over(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

double asym_measure_throughput(double work, double seconds)
{
    return over(work, seconds);
}

double asym_measure_speedup(double together, double alone)
{
    return over(together, alone);
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
    return over(least, most);
}

double asym_measure_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return over(sum, (double)n);
}

double asym_measure_turnaround(const double *times, const double *ended, size_t n_kinds)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < n_kinds; i++) {
        sum += times[i];
        n += ended[i];
    }
    return over(sum, n);
}

double asym_measure_jitter(const double *t, size_t n)
{
    const double mean = asym_measure_mean(t, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = over(t[i], mean) - 1;
        sum += off * off;
    }
    return sqrt(over(sum, (double)n));
}

double asym_measure_weighted_speedup(const double *ipc, const double *alone, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += over(ipc[i], alone[i]);
    return n > 0 ? sum : (double)NAN;
}

struct asym_response asym_measure_response(const struct asym_instance *instances, size_t n)
{
    double first = INFINITY, last = -INFINITY, ran = 0;
    for (size_t i = 0; i < n; i++) {
        first = ASYM_MIN(first, instances[i].start);
        last = ASYM_MAX(last, instances[i].end);
        ran += instances[i].ran;
    }
    return (struct asym_response){.total = n > 0 ? last - first : (double)NAN, .avg = over(ran, (double)n)};
}

double asym_measure_gain(double avg, double baseline)
{
    return 1 - over(avg, baseline);
}

double asym_measure_geometric_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] > 0 ? log(x[i]) : (double)NAN;
    return exp(over(sum, (double)n));
}

double asym_measure_over_default(const double *policy, size_t n_policy, const double *other, size_t n_other)
{
    return over(asym_measure_geometric_mean(other, n_other), asym_measure_geometric_mean(policy, n_policy)) - 1;
}

/* Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond, that of the next lower row is on the safe side. */
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

struct asym_label asym_measure_label(double parallel, double serial, unsigned n_cpus)
{
    const double per_cpu = over(parallel, n_cpus);
    if (!(per_cpu >= 0) || !(serial >= 0) || !(per_cpu + serial > 0))
        return (struct asym_label){(double)NAN, (double)NAN};
    const double least = ASYM_MIN(per_cpu, serial);
    if (!(least > 0))
        return serial > 0 ? (struct asym_label){1, (double)INFINITY} : (struct asym_label){(double)INFINITY, 1};
    return (struct asym_label){per_cpu / least, serial / least};
}
