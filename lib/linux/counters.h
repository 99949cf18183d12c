/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Hardware counters of single threads: one port, behind which are perf events of the live machine or a recording.
 * Who is watched, and what the figures mean, is decided elsewhere.
 */
#ifndef ASYM_LINUX_COUNTERS_H
#define ASYM_LINUX_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/error.h>
#include <asym/types.h>

#include "linux/root.h"

enum asym_counter {
    ASYM_COUNTER_INSTRUCTIONS, /**< retired */
    ASYM_COUNTER_CYCLES,       /**< of the core, at whatever frequency it ran */
    ASYM_COUNTER_LLC_MISSES,   /**< the nearest thing to misses of the last-level cache that its PMU knows */
    ASYM_COUNTER_REF_CYCLES,   /**< at a constant frequency */
    ASYM_COUNTER_TASK_CLOCK,   /**< ns on a CPU. This and those below: software events */
    ASYM_COUNTER_SWITCHES,     /**< context switches; 0 for who may not count in the kernel */
    ASYM_COUNTER_FAULTS,       /**< page faults */
    ASYM_N_COUNTERS
};

/** "instructions", "llc_misses" ... A static string. */
const char *asym_counter_name(enum asym_counter counter);

/** What was counted since the thread is watched. No figure ever goes down. */
struct asym_counts {
    uint64_t value[ASYM_N_COUNTERS]; /**< an estimate where running_share < 1: scaled by it, interval by interval */
    unsigned valid;                  /**< bits 1 << enum asym_counter; the value of others is 0 */
    double running_share; /**< share of the time on a CPU since the read before in which it was counted: 0..1;
                                          1 when it was not on a CPU */
    uint64_t on_cpu_ns;   /**< time on a CPU, in ns */
};

/** Not safe for use by two threads at once. */
struct asym_counters {
    /**
     * Count this thread from now on; of one that is watched already, nothing changes.
     * Returns 0; -EDQUOT: the budget of descriptors is spent, unwatch another first; -EMFILE, -ENFILE: the process or
     * the system has no more of them; -ESRCH: no such thread; -EACCES, -EPERM: not permitted; -ENOENT, -ENODEV,
     * -EOPNOTSUPP: no such counters here; -errno.
     */
    int (*watch)(struct asym_counters *c, const struct asym_taskid *id);
    /** Returns 0; -ENOENT: it was not watched. */
    int (*unwatch)(struct asym_counters *c, const struct asym_taskid *id);
    /**
     * Returns 0; -ENOENT: not watched; -ESRCH: the thread has died, and is not watched any longer; -ECHILD: of a tree, a child
     * is just about to end, and can be counted in a moment (Linux 6.6 and newer); -errno.
     */
    int (*read)(struct asym_counters *c, const struct asym_taskid *id, struct asym_counts *ret);
    /** Free it. */
    void (*close)(struct asym_counters *c);
};

enum asym_counters_set {
    ASYM_COUNTERS_HARDWARE, /**< INSTRUCTIONS .. REF_CYCLES */
    ASYM_COUNTERS_SOFTWARE, /**< TASK_CLOCK .. FAULTS: what every kernel with perf events has */
};

struct asym_counters_config {
    const struct asym_root *root; /**< the live machine; read at once and not kept */
    enum asym_counters_set set;
    unsigned max_fds; /**< budget. A thread takes up to one for each counter and kind of core */
    bool tree; /**< count the children that a thread creates from now on too, begin when it executes a program, and
                           let what was counted be read when it is dead */
};

/**
 * Counters of the live machine, by perf_event_open(2). Nothing is opened yet.
 * Returns 0; -ENODEV (no PMU: err says so), -errno with err.
 */
int asym_counters_new(const struct asym_counters_config *config, struct asym_counters **ret, struct asym_error *err);

/** What of ASYM_COUNTERS_HARDWARE can be had. */
struct asym_counters_sight {
    int error;          /**< 0; else why none: as watch() of our own thread returns it. -ENODEV: no PMU */
    unsigned counters;  /**< bits of those that count; of a captured machine 0: only its PMUs are known */
    bool user_only;     /**< only what runs in user space may be counted */
    char pmus[80];      /**< "cpu_core, cpu_atom"; "" for none */
    char text[200];     /**< all that in words, one line */
    const char *remedy; /**< static; "" where none is needed */
};

/** Open each counter on our own thread and close it again; of a captured machine only list PMUs. */
void asym_counters_probe(const struct asym_root *root, struct asym_counters_sight *ret);

/** Why there are none, for a person: text and remedy are static. error: as from watch(), or any other -errno. */
void asym_counters_why(int error, const char **ret_text, const char **ret_remedy);

/**
 * A recording, in lines "TIME TID INSTRUCTIONS CYCLES LLC_MISSES REF_CYCLES ON_CPU_NS": TIME in us since the recording began,
 * ascending; figures cumulative; "-" for one that was not had. "TIME TID gone": the thread has died. '#' begins a comment.
 * A thread is known by its tid alone; what is counted counts from watch() on, as with the live ones. max_fds: one for each
 * figure. Returns 0; -EINVAL with err "NAME:LINE: what is wrong"; -ENOMEM.
 */
int asym_counters_replay_new(const char *name, const char *text, size_t len, unsigned max_fds,
                             struct asym_counters **ret, struct asym_error *err);

/** The same from a file of at most 16 MiB. */
int asym_counters_replay_open(const char *path, unsigned max_fds, struct asym_counters **ret, struct asym_error *err);

/** The time is now, in us since the recording began; 0 until this is called. It may not go back. */
void asym_counters_replay_at(struct asym_counters *c, asym_usec now);

#endif
