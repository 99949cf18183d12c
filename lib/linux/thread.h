/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The system calls that read and change one thread. All take a tid and return 0 or -errno. */
#ifndef ASYM_LINUX_THREAD_H
#define ASYM_LINUX_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

/** Nice and what goes with it. */
struct asym_thread_sched {
    uint32_t policy; /**< SCHED_* */
    int8_t nice;
    bool reset_on_fork;
};

/** Online CPUs of its affinity (offline ones are hidden by the call). */
int asym_thread_get_mask(int32_t tid, struct asym_mask *ret);

/** whole: ask for every CPU there may ever be, which the kernel cuts to the cpuset, now and when that grows. */
int asym_thread_set_mask(int32_t tid, const struct asym_mask *mask, bool whole);

int asym_thread_get_sched(int32_t tid, struct asym_thread_sched *ret);

/**
 * Change nice and reset-on-fork of a SCHED_OTHER or SCHED_BATCH thread, and nothing else of it; -EINVAL for another
 * policy.
 */
int asym_thread_set_nice(int32_t tid, int8_t nice, bool reset_on_fork);

/** Start time of the thread, as in struct asym_taskid. -ESRCH when there is none. */
int asym_thread_start(int32_t tgid, int32_t tid, uint64_t *ret_start);

/** Now, in the unit of start times: clock ticks since boot, suspended time included. */
uint64_t asym_thread_ticks(void);

#endif
