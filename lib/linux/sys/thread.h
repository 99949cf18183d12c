/* SPDX-License-Identifier: GPL-2.0-or-later */
/** System calls and files that read or change one thread of the live machine. Functions that return int return 0 or -errno. */
#ifndef ASYM_LINUX_SYS_THREAD_H
#define ASYM_LINUX_SYS_THREAD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/sys/proc-parse.h"

/** Nice and the attributes that affect it. */
struct asym_thread_sched {
    uint32_t policy; /**< SCHED_* */
    int8_t nice;     /**< for a real-time thread: the value that applies when it leaves its real-time policy */
    bool reset_on_fork;
};

/**
 * Get the online CPUs of its affinity; sched_getaffinity hides offline ones. 0.5 us. Offline CPUs are only in the file status,
 * which the observer alone reads: for a process with tens of thousands of groups that takes milliseconds.
 */
int asym_thread_get_mask(int32_t tid, struct asym_mask *ret);

struct asym_cgroup_mounts;

/** Get the cpuset of the thread's cgroup, by where control groups are mounted; every CPU where there are no cpusets. */
int asym_thread_get_cpuset(const struct asym_cgroup_mounts *mounts, int32_t tgid, int32_t tid, struct asym_mask *ret);

/**
 * Set its affinity. full_cpuset: ignore mask and set every possible CPU; the kernel cuts that to the cpuset, also after the cpuset
 * grows.
 */
int asym_thread_set_mask(int32_t tid, const struct asym_mask *mask, bool full_cpuset);

int asym_thread_get_sched(int32_t tid, struct asym_thread_sched *ret);

/** Returns whether a change of nice changes nothing else: the policy is SCHED_OTHER or SCHED_BATCH. */
bool asym_thread_is_fair(const struct asym_thread_sched *sched);

/** Returns whether the policy is SCHED_FIFO, SCHED_RR or SCHED_DEADLINE. */
bool asym_thread_is_realtime(const struct asym_thread_sched *sched);

/** Change nice and reset-on-fork; -EINVAL for a real-time thread. */
int asym_thread_set_nice(int32_t tid, int8_t nice, bool reset_on_fork);

/**
 * Change nice alone, under any policy. For a real-time thread, the kernel keeps the value until the thread leaves that
 * policy.
 */
int asym_thread_renice(int32_t tid, int8_t nice);

/**
 * Check whether this process may lower nice values and clear reset-on-fork. It tries both on a temporary thread. For the
 * first the kernel requires RLIMIT_NICE, for the second CAP_SYS_NICE in the initial user namespace. 0; -EPERM; -errno when no
 * thread can be started.
 */
int asym_thread_may_boost(void);

/** Read /proc/TGID/task/TID/stat. -ESRCH when the thread does not exist. 10 us. */
int asym_thread_get_stat(int32_t tgid, int32_t tid, struct asym_stat *ret);

/** The same of this thread: -ESRCH also where its number is another thread's by now. */
static inline int asym_thread_get_stat_of(const struct asym_taskid *id, struct asym_stat *ret)
{
    struct asym_stat stat;
    const int r = asym_thread_get_stat(id->tgid, id->tid, &stat);
    if (r < 0 || stat.start != id->start)
        return r < 0 ? r : -ESRCH;
    *ret = stat;
    return 0;
}

/** Check that process tgid has thread tid. 0; -ESRCH. 0.2 us. */
int asym_thread_is_of(int32_t tgid, int32_t tid);

/** Returns the present time in the unit of start times: clock ticks since boot, suspended time included. */
uint64_t asym_thread_ticks(void);

#endif
