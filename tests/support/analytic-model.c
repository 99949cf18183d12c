/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/analytic-model.h"

#include <math.h>
#include <stdbool.h>

/* The work of A on n CPUs per second, in units of a slow CPU (equations 7 to 20). */
struct performance {
    double min, avg, max;
};

static double alone(enum asym_joint joint, double n, double a)
{
    const bool parallel = joint == ASYM_JOINT_PS || joint == ASYM_JOINT_PP;
    return parallel ? n - 1 + a : (n - 1 + a) / n;
}

static struct performance baseline(enum asym_joint joint, double n, double a)
{
    const double serial = (n - 1 + a) / n, parallel = n - 1 + a;
    switch (joint) {
    case ASYM_JOINT_SS:
        return (struct performance){1, serial, a};
    case ASYM_JOINT_SP:
        return (struct performance){0.5, n / (n + 1) * serial, a};
    case ASYM_JOINT_PS:
        return (struct performance){n - 1, n / (n + 1) * parallel, n - 1.5 + a};
    case ASYM_JOINT_PP:
    case ASYM_N_JOINTS:
        break;
    }
    return (struct performance){n / 2, parallel / 2, (n - 2 + 2 * a) / 2};
}

/*
 * A serial thread has the large CPU to itself. If both applications are serial or both parallel, the result is the baseline's.
 */
static struct performance proposed(enum asym_joint joint, double n, double a)
{
    if (joint == ASYM_JOINT_SP)
        return (struct performance){a, a, a};
    if (joint == ASYM_JOINT_PS)
        return (struct performance){n - 1, n - 1, n - 1};
    return baseline(joint, n, a);
}

struct asym_model_speedup asym_model_speedup(enum asym_scheduler scheduler, enum asym_joint joint, unsigned n, double a)
{
    if (n < 2 || !(a >= 1))
        return (struct asym_model_speedup){(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    const struct performance p = scheduler == ASYM_SCHEDULER_PROPOSED ? proposed(joint, n, a) : baseline(joint, n, a);
    const double one = alone(joint, n, a);
    return (struct asym_model_speedup){p.min / one, p.avg / one, p.max / one, p.max / p.min};
}

double asym_model_fairness(enum asym_scheduler scheduler, enum asym_joint joint, unsigned n, double a)
{
    const struct asym_model_speedup serial = asym_model_speedup(scheduler, ASYM_JOINT_SP, n, a);
    const struct asym_model_speedup parallel = asym_model_speedup(scheduler, ASYM_JOINT_PS, n, a);
    if (joint == ASYM_JOINT_SP)
        return fmin(serial.min / parallel.max, parallel.max / serial.min);
    if (joint == ASYM_JOINT_PS)
        return fmin(parallel.min / serial.max, serial.max / parallel.min);
    const struct asym_model_speedup same = asym_model_speedup(scheduler, joint, n, a);
    return same.min / same.max;
}
