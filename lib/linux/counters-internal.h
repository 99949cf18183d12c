/* SPDX-License-Identifier: GPL-2.0-or-later */
/** For counters*.c and their tests alone. */
#ifndef ASYM_LINUX_COUNTERS_INTERNAL_H
#define ASYM_LINUX_COUNTERS_INTERNAL_H

#include <sys/types.h>

#include "linux/counters.h"

/** Kinds of cores that have a PMU each, and events in the group of one. */
enum { ASYM_COUNTERS_PMUS = 8, ASYM_COUNTERS_GROUP = 4 };

struct perf_event_attr;

/** The system calls, so that a test can refuse them. Each as in the manual, but returns -errno. */
struct asym_counters_calls {
    void *ctx;
    int (*open)(void *ctx, struct perf_event_attr *attr, pid_t tid, int group_fd);
    int (*enable)(void *ctx, int leader_fd);
    ssize_t (*read)(void *ctx, int fd, void *buf, size_t size);
    void (*close)(void *ctx, int fd);
    int (*alive)(void *ctx, const struct asym_taskid *id); /**< 0; -ESRCH */
};

extern const struct asym_counters_calls asym_counters_kernel;

/** As asym_counters_new; calls are copied, their ctx is borrowed. */
int asym_counters_new_with(const struct asym_counters_config *config, const struct asym_counters_calls *calls,
                           struct asym_counters **ret, struct asym_error *err);

void asym_counters_probe_with(const struct asym_root *root, const struct asym_counters_calls *calls,
                              struct asym_counters_sight *ret);

/** Descriptors open now, of the live ones; did it have to leave out the kernel? */
unsigned asym_counters_n_fds(const struct asym_counters *c);
bool asym_counters_is_user_only(const struct asym_counters *c);

struct asym_pmu {
    char name[32];
    uint32_t type; /**< for the high half of config; 0: the only one, which needs none */
};

/** PMUs of cores. Returns how many, at most ASYM_COUNTERS_PMUS; -ENODEV when there is none; -errno. */
int asym_counters_pmus(const struct asym_root *root, struct asym_pmu ret[ASYM_COUNTERS_PMUS]);

/** Type and config of that counter on that PMU, into an attr that is zeroed. 0; -ENOENT: unknown here; -errno. */
int asym_counters_encode(enum asym_counter counter, const struct asym_pmu *pmu, struct perf_event_attr *ret);

/** What read(2) of a group gives. */
struct asym_group_read {
    unsigned n;
    uint64_t enabled, running; /**< ns */
    uint64_t value[ASYM_COUNTERS_GROUP];
};

/** n: how many events are in it. 0; -EIO: these are not the bytes of such a group. */
int asym_group_parse(const void *bytes, size_t len, unsigned n, struct asym_group_read *ret);

/** value * enabled / running, at most UINT64_MAX; value itself where running >= enabled. running > 0. */
uint64_t asym_group_scale(uint64_t value, uint64_t enabled, uint64_t running);

/**
 * The sum over the groups of a thread (one for each kind of core), step by step. While it is on one kind of core the groups
 * of the others are enabled but do not run: so the times they ran add up, the times they were enabled do not.
 */
struct asym_group_sum {
    uint64_t enabled, running;           /**< up to where value goes */
    uint64_t raw[ASYM_COUNTERS_GROUP];   /**< likewise */
    uint64_t value[ASYM_COUNTERS_GROUP]; /**< scaled */
    uint64_t on_cpu;                     /**< ns */
    double share;                        /**< of the last step */
};

/** Zeroed at first. reads[i].value are of the counters in the same order in each. */
void asym_group_advance(struct asym_group_sum *s, const struct asym_group_read *reads, unsigned n_reads, unsigned n);

#endif
