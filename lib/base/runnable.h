/* SPDX-License-Identifier: GPL-2.0-or-later */
/** How long a thread was runnable, by what the kernel credits it. */
#ifndef ASYM_BASE_RUNNABLE_H
#define ASYM_BASE_RUNNABLE_H

#include <stdint.h>

#include "base/macro.h"

/** The fields of /proc/PID/task/TID/schedstat. */
struct asym_schedstat {
    uint64_t run_ns;  /**< time on a CPU */
    uint64_t wait_ns; /**< run delay: time in a run queue without a CPU */
    uint64_t slices;  /**< number of time slices */
};

/**
 * Returns the runnable time in an interval, from the thread's counters before and now and its states then and now. All times are
 * in ns. A newborn thread was in state R: it has waited since its birth.
 *
 * The kernel credits a wait when it ends. So the run and wait time of an interval are exact but for the waits that are under way at
 * its two ends. A thread in state R at both ends that got no CPU in between has run or waited all the time: it counts for the
 * interval. One in state R that got a CPU may wait again: what is missing in its interval counts, up to twice the mean of the waits
 * that ended. Any other thread counts for the credited time.
 *
 * balance: credited time less counted time, which the function updates. Time that was counted before its credit is not counted
 * again, and credit that exceeds the interval counts in the next one, at most one interval. So threads that run or wait all the
 * time read the interval, whatever their turns are, and the sum over intervals is the credited time. A thread that is not in state
 * R has no wait under way: the balance ends.
 *
 * The result is at least the time that the thread ran, and at most the interval.
 */
static inline uint64_t asym_runnable_credited(const struct asym_schedstat *before, const struct asym_schedstat *now,
                                              char was, char is, uint64_t interval, int64_t *balance)
{
    const uint64_t run = now->run_ns - before->run_ns, wait = now->wait_ns - before->wait_ns;
    const uint64_t turns = now->slices - before->slices;
    const int64_t span = (int64_t)interval, due = *balance + (int64_t)(run + wait);
    const int64_t under_way = is == 'R' && turns > 0 ? (int64_t)ASYM_MIN(2 * wait / turns, interval) : 0;
    int64_t count = ASYM_MIN(ASYM_MAX(due + under_way, (int64_t)run), span);
    if (was == 'R' && is == 'R' && turns == 0)
        count = span;
    int64_t left = due - count;
    if (turns > 0)
        left = ASYM_MAX(left, -under_way);
    *balance = is == 'R' ? ASYM_MIN(left, span) : 0;
    return (uint64_t)count;
}

#endif
