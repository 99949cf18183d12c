/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The measures of the papers that the simulator reports. No I/O, no state.
 * Arguments out of their domain (no runs, a divisor of 0) give NAN, which means no result.
 */
#ifndef ASYM_EXPERIMENT_MEASURE_H
#define ASYM_EXPERIMENT_MEASURE_H

#include <stddef.h>

/** Work done / time in seconds, never IPC (Morad 2008, 4). */
double asym_measure_throughput(double work, double seconds);

/** Performance with others / performance alone (Morad 2008, eq. 3). For run times: alone / with others (eq. 5). */
double asym_measure_speedup(double together, double alone);

/** Minimum over all pairs of speedup_A / speedup_B and its inverse, 0..1 (Morad 2008, eq. 4). One program has 1. */
double asym_measure_fairness(const double *speedup, size_t n);

/** sqrt(mean((t / t_avg - 1)^2)) over the runs of one workload (Morad 2008, eq. 6). */
double asym_measure_jitter(const double *t, size_t n);

/** Mean time from arrival to end of a job (Snavely 2002, 6). By kind of job: times sums these times, ended counts the jobs. */
double asym_measure_turnaround(const double *times, const double *ended, size_t n_kinds);

double asym_measure_mean(const double *x, size_t n);

/** Half the width of the 95 % confidence interval of the mean (Student's t). NAN below two values. */
double asym_measure_confidence(const double *x, size_t n);

#endif
