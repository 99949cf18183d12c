/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/paper-measures.h"

#include <math.h>

#include "base/macro.h"

static double over(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

double asym_paper_weighted_speedup(const double *ipc, const double *alone, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += over(ipc[i], alone[i]);
    return n > 0 ? sum : (double)NAN;
}

struct asym_response asym_paper_response(const struct asym_instance *instances, size_t n)
{
    double first = INFINITY, last = -INFINITY, ran = 0;
    for (size_t i = 0; i < n; i++) {
        first = ASYM_MIN(first, instances[i].start);
        last = ASYM_MAX(last, instances[i].end);
        ran += instances[i].ran;
    }
    return (struct asym_response){.total = n > 0 ? last - first : (double)NAN, .avg = over(ran, (double)n)};
}

double asym_paper_gain(double avg, double baseline)
{
    return 1 - over(avg, baseline);
}

double asym_paper_geometric_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] > 0 ? log(x[i]) : (double)NAN;
    return exp(over(sum, (double)n));
}

double asym_paper_over_default(const double *policy, size_t n_policy, const double *other, size_t n_other)
{
    return over(asym_paper_geometric_mean(other, n_other), asym_paper_geometric_mean(policy, n_policy)) - 1;
}

struct asym_label asym_paper_label(double parallel, double serial, unsigned n_cpus)
{
    const double per_cpu = over(parallel, n_cpus);
    if (!(per_cpu >= 0) || !(serial >= 0) || !(per_cpu + serial > 0))
        return (struct asym_label){(double)NAN, (double)NAN};
    const double least = ASYM_MIN(per_cpu, serial);
    if (!(least > 0))
        return serial > 0 ? (struct asym_label){1, (double)INFINITY} : (struct asym_label){(double)INFINITY, 1};
    return (struct asym_label){per_cpu / least, serial / least};
}
