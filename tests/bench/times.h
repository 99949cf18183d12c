/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The times of a benchmark. */
#ifndef ASYM_TESTS_BENCH_TIMES_H
#define ASYM_TESTS_BENCH_TIMES_H

#include <time.h>

/** Returns what a clock has counted, in nanoseconds: CLOCK_THREAD_CPUTIME_ID for the CPU time of this thread. */
static inline double read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/** Compares two doubles, for qsort(3). */
static inline int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

#endif
