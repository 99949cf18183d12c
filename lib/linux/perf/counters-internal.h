/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Only for counters*.c and their tests. */
#ifndef ASYM_LINUX_PERF_COUNTERS_INTERNAL_H
#define ASYM_LINUX_PERF_COUNTERS_INTERNAL_H

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include "linux/perf/counters.h"

/** At most so many PMUs (one for each kind of core), and events in the group of one PMU. */
enum { ASYM_COUNTERS_PMUS = 8, ASYM_COUNTERS_GROUP = 3 };

struct perf_event_attr;

/** The system calls, so that a test can make them fail. Each works as in its manual page, but returns -errno. */
struct asym_counters_calls {
    void *ctx;
    int (*open)(void *ctx, struct perf_event_attr *attr, pid_t tid, int group_fd);
    int (*enable)(void *ctx, int leader_fd);
    ssize_t (*read)(void *ctx, int fd, void *buf, size_t size);
    void (*close)(void *ctx, int fd);
    int (*alive)(void *ctx, const struct asym_taskid *id); /**< 0; -ESRCH */
};

struct asym_pmu {
    char name[32];
    uint32_t type; /**< for the high half of config; 0: the only PMU, which needs no type there */
};

/** Lists the PMUs of cores. Returns their number, at most ASYM_COUNTERS_PMUS; -ENODEV if there is none; -errno. */
int asym_counters_pmus(const struct asym_root *root, struct asym_pmu ret[ASYM_COUNTERS_PMUS]);

/**
 * Finds type and config of the counter on the PMU. All other fields of ret but size are 0. Returns 0; -ENOENT: this PMU
 * has no such event; -errno.
 */
int asym_counters_encode(enum asym_counter counter, const struct asym_pmu *pmu, struct perf_event_attr *ret);

/** The result of read(2) of a group. */
struct asym_group_read {
    unsigned n;
    uint64_t enabled, running; /**< ns */
    uint64_t value[ASYM_COUNTERS_GROUP];
};

/** Parses what read(2) returned for a group of n events. Returns 0; -EIO: the bytes are not of such a group. */
int asym_group_parse(const void *bytes, size_t len, unsigned n, struct asym_group_read *ret);

/** Returns value * enabled / running, at most UINT64_MAX; value itself if running >= enabled. running must be above 0. */
uint64_t asym_group_scale(uint64_t value, uint64_t enabled, uint64_t running);

/**
 * The running sum over the groups of a thread, one for each kind of core. While the thread is on one kind of core, the
 * groups of the other kinds are enabled but do not run. So the running times of the groups are added up, and the enabled
 * times are not.
 */
struct asym_group_sum {
    uint64_t enabled, running;           /**< ns, at the end of the last interval that value includes */
    uint64_t raw[ASYM_COUNTERS_GROUP];   /**< at the same time, not scaled */
    uint64_t value[ASYM_COUNTERS_GROUP]; /**< scaled */
    uint64_t on_cpu;                     /**< ns */
    double share;                        /**< counted share of the last interval, 0..1 */
};

/**
 * Adds one interval. s: all 0 before the first call. reads: one for each of n_reads groups; the n counters have the same
 * order in each.
 */
void asym_group_advance(struct asym_group_sum *s, const struct asym_group_read *reads, unsigned n_reads, unsigned n);

/** Limits the time of one interruptible system call that has no timeout of its own. */
struct asym_syscall_timeout {
    timer_t timer;
    struct sigaction action;
    sigset_t mask;
    bool armed;
};

/**
 * After this time, in us, and every 10 ms from then on, SIGALRM interrupts the system call of the calling thread, which then
 * fails with EINTR. asymd uses SIGALRM for nothing else. Returns 0; -errno: no timer is armed, and the caller may still call
 * asym_syscall_timeout_end.
 */
int asym_syscall_timeout_begin(struct asym_syscall_timeout *t, asym_usec time);

/** Stop the timer and restore handler and signal mask. Does not change errno. */
void asym_syscall_timeout_end(struct asym_syscall_timeout *t);

#endif
