/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Numbers from results: the measures of the papers, once for the benchmarks and the simulator. No I/O, no state.
 * Arguments out of their domain (no runs, a performance of 0 where one divides by it) give NAN, which is no result.
 */
#ifndef ASYM_MEASURE_H
#define ASYM_MEASURE_H

#include <stddef.h>

/** Work done / time, never IPC (Morad 2008, 4). */
double asym_measure_throughput(double work, double seconds);

/** Performance beside others / performance alone (Morad 2008, eq. 3; for run times eq. 5: alone / beside others). */
double asym_measure_speedup(double together, double alone);

/** Minimum over all pairs of speedup_A / speedup_B and its inverse, 0..1 (Morad 2008, eq. 4). 1 for a single one. */
double asym_measure_fairness(const double *speedup, size_t n);

/** sqrt(mean((t / t_avg - 1)^2)) over the runs of one workload (Morad 2008, eq. 6). */
double asym_measure_jitter(const double *t, size_t n);

/** Sum of IPC achieved / IPC alone (Snavely 2002, 4.1). */
double asym_measure_weighted_speedup(const double *ipc, const double *alone, size_t n);

/** One instance of a task, in seconds. */
struct asym_instance {
    double start, end; /**< of its life */
    double ran;        /**< how long it was executed */
};

/** Roehrich 2007, Table 5.2. */
struct asym_response {
    double total; /**< first start to last end */
    double avg;   /**< accumulated run time / instances */
};

struct asym_response asym_measure_response(const struct asym_instance *instances, size_t n);

/** 1 - Avg / Avg of the baseline. */
double asym_measure_gain(double avg, double baseline);

/** Mean time from a job's arrival to its end (Snavely 2002, 6), from the sum of those times and their number by kind of job. */
double asym_measure_turnaround(const double *times, const double *ended, size_t n_kinds);

double asym_measure_mean(const double *x, size_t n);

double asym_measure_geometric_mean(const double *x, size_t n);

/**
 * Geometric mean of completion times under the default scheduler over that under the policy, less 1 (Saez 2010, 3).
 * Each of the two has as many runs as it had.
 */
double asym_measure_over_default(const double *policy, size_t n_policy, const double *other, size_t n_other);

/** Half the width of the 95 % confidence interval of the mean (Student's t). NAN below two values. */
double asym_measure_confidence(const double *x, size_t n);

/** A program by the instructions of its parallel and serial phases on n CPUs (Morad 2008, eq. 1): one of both is 1. */
struct asym_label {
    double parallel, serial; /**< INFINITY : 1 and 1 : INFINITY where the other has none */
};

struct asym_label asym_measure_label(double parallel, double serial, unsigned n_cpus);

#endif
