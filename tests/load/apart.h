/* SPDX-License-Identifier: GPL-2.0-or-later */
/** For the talkers (load-talker, omp/talker): how soon asymd answers a serial phase, as the program itself measures it. */
#ifndef ASYM_TESTS_LOAD_APART_H
#define ASYM_TESTS_LOAD_APART_H

#include <sched.h>
#include <stdatomic.h>

#include "now.h"

/** Returns whether the calling thread shares no CPU with any of the n other threads. */
static inline int is_apart(const atomic_int *tids, int n)
{
    cpu_set_t mine, its, both;
    if (sched_getaffinity(0, sizeof mine, &mine) < 0)
        return 0;
    for (int i = 0; i < n; i++) {
        if (sched_getaffinity(atomic_load(&tids[i]), sizeof its, &its) < 0)
            return 0;
        CPU_AND(&both, &mine, &its);
        if (CPU_COUNT(&both) > 0)
            return 0;
    }
    return 1;
}

/**
 * Works until ms (milliseconds) after begun. Returns the microseconds from begun until the kernel has separated the masks; -1:
 * it never did.
 */
static inline double work_serially(double begun, double ms, const atomic_int *tids, int n)
{
    double took = -1;
    for (double now = begun; now < begun + ms * 1e3; now = now_us())
        if (took < 0 && is_apart(tids, n))
            took = now_us() - begun;
    return took;
}

#endif
