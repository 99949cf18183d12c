/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Counters that a test has written down as rows. */
#ifndef ASYM_TESTS_SUPPORT_COUNTED_H
#define ASYM_TESTS_SUPPORT_COUNTED_H

#include "linux/perf/counters.h"

enum { COUNTED_FIGURES = 3, COUNTED_THREADS = 8 };

/** A figure that is missing, or the time on a CPU of a thread that has ended. */
#define COUNTED_NONE UINT64_MAX

/** The figures of a thread at a time, in us. They are cumulative, in the order of enum asym_counter. */
struct counted_row {
    asym_usec time;
    int32_t tid;
    uint64_t figure[COUNTED_FIGURES], on_cpu_ns;
};

/** Counts begin at watch(), as those of the live counters do. Each figure uses one of max_fds. At most COUNTED_THREADS at once. */
struct counted {
    struct asym_counters port;
    const struct counted_row *rows; /* the times of a thread ascend; borrowed */
    size_t n;
    unsigned max_fds;
    asym_usec now; /* the test sets it */
    struct {
        struct asym_taskid id;
        const struct counted_row *base;
    } watched[COUNTED_THREADS];
    unsigned n_watched;
};

struct counted counted_of(const struct counted_row *rows, size_t n, unsigned max_fds);

#endif
