/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Measures of the papers that no program of asymd computes. NAN means no result, as in experiment/experiment.h. */
#ifndef ASYM_TESTS_SUPPORT_PAPER_MEASURES_H
#define ASYM_TESTS_SUPPORT_PAPER_MEASURES_H

#include <stddef.h>

/** Sum of IPC achieved / IPC alone (Snavely 2002, 4.1). */
double asym_paper_weighted_speedup(const double *ipc, const double *alone, size_t n);

/** One instance of a task, in seconds. */
struct asym_instance {
    double start, end;
    double ran; /**< its run time on CPUs */
};

/** Response times, in seconds (Roehrich 2007, Table 5.2). */
struct asym_response {
    double total; /**< first start to last end */
    double avg;   /**< accumulated run time / instances */
};

struct asym_response asym_paper_response(const struct asym_instance *instances, size_t n);

/** 1 - Avg / Avg of the baseline. */
double asym_paper_gain(double avg, double baseline);

/** NAN if a value is not above 0. */
double asym_paper_geometric_mean(const double *x, size_t n);

/**
 * Geometric mean of completion times under the default scheduler / that under the policy, minus 1 (Saez 2010, 3).
 * The two may differ in their number of runs.
 */
double asym_paper_over_default(const double *policy, size_t n_policy, const double *other, size_t n_other);

/** Ratio of the instructions per CPU in the parallel and the serial phases (Morad 2008, eq. 1); the smaller part is 1. */
struct asym_label {
    double parallel, serial; /**< INFINITY : 1 or 1 : INFINITY if the other part is 0 */
};

struct asym_label asym_paper_label(double parallel, double serial, unsigned n_cpus);

#endif
