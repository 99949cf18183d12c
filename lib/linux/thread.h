/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The system calls and files that read and change one thread of the live machine. All return 0 or -errno. */
#ifndef ASYM_LINUX_THREAD_H
#define ASYM_LINUX_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/procparse.h"

/** Nice and what goes with it. */
struct asym_thread_sched {
    uint32_t policy; /**< SCHED_* */
    int8_t nice;     /**< of a real-time thread: the value that it has again when it is none any more */
    bool reset_on_fork;
};

/** Online CPUs of its affinity (offline ones are hidden by the call). 0.5 us. */
int asym_thread_get_mask(int32_t tid, struct asym_mask *ret);

/**
 * Its affinity with offline CPUs. Where all CPUs are online it is the one above, else the one of the file, which takes 20 us, and
 * milliseconds for a thread with ten thousands of groups. -ESRCH when there is none.
 */
int asym_thread_get_allowed(int32_t tgid, int32_t tid, struct asym_mask *ret);

/** As above, always from Cpus_allowed of /proc/TGID/task/TID/status. */
int asym_thread_read_allowed(int32_t tgid, int32_t tid, struct asym_mask *ret);

/** What the cgroup of the thread lets it have; every CPU where there are no cpusets. */
int asym_thread_get_cpuset(int32_t tgid, int32_t tid, struct asym_mask *ret);

/** whole: ask for every CPU there may ever be, which the kernel cuts to the cpuset, now and when that grows. */
int asym_thread_set_mask(int32_t tid, const struct asym_mask *mask, bool whole);

int asym_thread_get_sched(int32_t tid, struct asym_thread_sched *ret);

/** Can nice be changed without changing anything else? */
bool asym_thread_is_fair(const struct asym_thread_sched *sched);

/** Is its policy SCHED_FIFO, SCHED_RR or SCHED_DEADLINE? */
bool asym_thread_is_realtime(const struct asym_thread_sched *sched);

/** Change nice and reset-on-fork; -EINVAL for a real-time thread. */
int asym_thread_set_nice(int32_t tid, int8_t nice, bool reset_on_fork);

/** Change nice alone, under any policy: the kernel keeps the value of a real-time thread for the time after that. */
int asym_thread_renice(int32_t tid, int8_t nice);

/**
 * May this process lower nice values and clear reset-on-fork? It tries both on a thread that it starts for that and that
 * ends with it: the kernel asks for RLIMIT_NICE for the one, for CAP_SYS_NICE in the first user namespace for the other.
 * 0; -EPERM; -errno when no thread can be started.
 */
int asym_thread_may_boost(void);

/** Microseconds of CLOCK_MONOTONIC. */
asym_usec asym_thread_now(void);

/** /proc/TGID/task/TID/stat. -ESRCH when there is no such thread. 10 us. */
int asym_thread_get_stat(int32_t tgid, int32_t tid, struct asym_stat *ret);

/** 0; -ESRCH when there is no thread tid in process tgid. 0.2 us. */
int asym_thread_is_of(int32_t tgid, int32_t tid);

/** Now, in the unit of start times: clock ticks since boot, suspended time included. */
uint64_t asym_thread_ticks(void);

#endif
