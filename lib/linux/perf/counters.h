/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Hardware counters of single threads. They are those of perf events; tests have another implementation. The caller
 * decides which threads are counted and what the figures mean.
 */
#ifndef ASYM_LINUX_PERF_COUNTERS_H
#define ASYM_LINUX_PERF_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/sys/root.h"

enum asym_counter {
    ASYM_COUNTER_INSTRUCTIONS, /**< retired */
    ASYM_COUNTER_CYCLES,       /**< of the core, at its actual frequency */
    ASYM_COUNTER_LLC_MISSES,   /**< misses of the last-level cache, or the nearest event that the PMU has */
    ASYM_COUNTER_TASK_CLOCK,   /**< ns on a CPU. This and the events below are software events */
    ASYM_COUNTER_SWITCHES,     /**< context switches; 0 if the caller may not count in the kernel */
    ASYM_COUNTER_FAULTS,       /**< page faults */
    ASYM_N_COUNTERS
};

/** Returns the name: "instructions", "llc_misses" and so on. The string is static. */
const char *asym_counter_name(enum asym_counter counter);

/** The counts since watch(). No value decreases from one read to the next. */
struct asym_counts {
    uint64_t value[ASYM_N_COUNTERS]; /**< an estimate if running_share < 1: each interval is scaled by its share */
    unsigned valid;                  /**< bits 1 << enum asym_counter; the other values are 0 */
    /** Counted share of the time on a CPU since the previous read: 0..1; 1 if the thread was not on a CPU. */
    double running_share;
    uint64_t on_cpu_ns; /**< time on a CPU, in ns */
};

/** Two threads must not use it at once. */
struct asym_counters {
    /**
     * Counts this thread from now on. Does nothing if the thread is watched already.
     * Returns 0; -EDQUOT: the budget of descriptors is spent, so unwatch another thread first; -EMFILE, -ENFILE: the
     * process or the system has no descriptors left; -ESRCH: no such thread; -EACCES, -EPERM: not permitted; -EINTR: the
     * kernel waited too long for the thread's process, which may be in exec; -ENOENT, -ENODEV, -EOPNOTSUPP: this machine
     * has no such counters; -errno.
     */
    int (*watch)(struct asym_counters *c, const struct asym_taskid *id);
    /** Stops counting this thread. Returns 0; -ENOENT: the thread was not watched. */
    int (*unwatch)(struct asym_counters *c, const struct asym_taskid *id);
    /**
     * Returns 0; -ENOENT: the thread is not watched; -ESRCH: the thread has exited, and is not watched any more; -ECHILD
     * (trees only): a child is just exiting, so read again in a moment (Linux 6.6 and newer); -errno.
     */
    int (*read)(struct asym_counters *c, const struct asym_taskid *id, struct asym_counts *ret);
    /** Stops counting and frees the counters. */
    void (*close)(struct asym_counters *c);
};

struct asym_counters_calls;

enum asym_counters_set {
    ASYM_COUNTERS_HARDWARE, /**< INSTRUCTIONS .. LLC_MISSES */
    ASYM_COUNTERS_SOFTWARE, /**< TASK_CLOCK .. FAULTS: every kernel with perf events has them */
};

struct asym_counters_config {
    const struct asym_root *root; /**< the live machine; used by asym_counters_new only */
    enum asym_counters_set set;
    unsigned max_fds; /**< budget of descriptors. A thread takes up to one for each counter and kind of core */
    /** Also count children that the thread creates; start when it calls exec; allow reads after it has exited. */
    bool tree;
    const struct asym_counters_calls *calls; /**< copied, for tests (counters-internal.h); NULL: those of the kernel */
};

/** Says in words why there are no counters. error: from watch(), or any -errno. Both strings are static. */
void asym_counters_why(int error, const char **ret_text, const char **ret_remedy);

/**
 * Creates counters of the live machine, which use perf_event_open(2). Opens no event yet.
 * Returns 0; -ENODEV (no PMU) or -errno, both with err.
 */
int asym_counters_new(const struct asym_counters_config *config, struct asym_counters **ret, struct asym_error *err);

/** The counters of ASYM_COUNTERS_HARDWARE that this machine has. */
struct asym_counters_coverage {
    int error; /**< 0; or why there are none: the error of watch() for asymd's own thread. -ENODEV: no PMU */
    /** Bits of the counters that work; 0 for a captured machine, of which only the PMUs are known. */
    unsigned counters;
    bool user_only;     /**< the kernel permits to count user space only */
    char pmus[80];      /**< such as "cpu_core, cpu_atom"; "": none */
    char text[200];     /**< all of this in words, one line */
    const char *remedy; /**< what the user can do; static; "": nothing to do */
};

/** Opens each counter on the calling thread and closes it again. For a captured machine, only lists the PMUs. calls: as above. */
void asym_counters_probe(const struct asym_root *root, const struct asym_counters_calls *calls,
                         struct asym_counters_coverage *ret);

#endif
