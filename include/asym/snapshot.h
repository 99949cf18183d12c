/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What a source saw at one moment: facts, no decisions. Whether a thread may be steered, what class it
 * has and where it goes is the core's affair.
 */
#ifndef ASYM_SNAPSHOT_H
#define ASYM_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>
#include <asym/signal.h>
#include <asym/types.h>

/** What a rule of the configuration says about a process. */
enum asym_rule_action {
    ASYM_RULE_STEER, /**< the default */
    ASYM_RULE_IGNORE,
    ASYM_RULE_FAST, /**< its threads stay on fast CPUs */
    ASYM_RULE_SLOW, /**< its threads stay on slow CPUs */
};

/** Facts about a process, as bits of asym_proc.flags. */
enum {
    ASYM_PROC_KERNEL = 1 << 0,     /**< a kernel thread */
    ASYM_PROC_SELF = 1 << 1,       /**< asymd itself, or a helper of it */
    ASYM_PROC_FOREIGN_NS = 1 << 2, /**< in another PID namespace whose pids cannot be mapped */
    ASYM_PROC_OUTSIDE = 1 << 3,    /**< --pid was given and names neither it nor an ancestor */
    ASYM_PROC_COUNTS_LATE =
        1 << 4, /**< its only thread has yet to start the others, and a runtime in it will go by the mask
                                       which that thread has then (LLVM's OpenMP, oneTBB) */
    ASYM_PROC_UNKNOWN = 1 << 5, /**< what it has mapped, or its command line, is not known or not known yet */
};

/** Facts about a thread, as bits of asym_task.flags. */
enum {
    ASYM_TASK_NO_SETAFFINITY = 1 << 0, /**< PF_NO_SETAFFINITY */
    ASYM_TASK_NEWBORN = 1 << 1,        /**< born since the last snapshot; listed even when idle, as it may have
                                     inherited a narrowed mask */
    ASYM_TASK_MASTER = 1 << 2,         /**< RTX: runs a serial phase of its program; at most one of an application */
    ASYM_TASK_SPINNING = 1 << 3,       /**< RTX: waits by spinning: not counted as runnable */
    ASYM_TASK_ENDED = 1 << 4,          /**< has ended since it was measured: its mask is the one that it had then */
    ASYM_TASK_HARDLY_RAN = 1 << 5,     /**< has had less than ASYM_HARDLY_RAN of CPU time since its birth; not set where
                                          that is not known */
};

/**
 * Threads that set a mask of their own mostly do so first of all, but on a busy machine that may be long after their birth
 * on the clock. LLVM's OpenMP 14 has used 13 to 60 us of CPU time by then.
 */
#define ASYM_HARDLY_RAN ASYM_MSEC

/** A process (thread group). */
struct asym_proc {
    struct asym_taskid id; /**< of its leader: tid == tgid */
    int32_t ppid;
    uint32_t app;        /**< index into asym_snapshot.apps */
    uint32_t flags;      /**< ASYM_PROC_* */
    asym_usec born;      /**< start of the process, monotonic */
    asym_usec last_fork; /**< when it last created another process; 0: not since asymd looks */
    asym_usec last_exec; /**< when it last became another program; 0: not since asymd looks */
    enum asym_rule_action rule;
    const char *rule_name;              /**< of the rule that matched; NULL: none. Borrowed from the settings */
    const struct asym_profile *profile; /**< of its executable; NULL: none. Borrowed */
};

/** A thread that used or waited for a CPU since the last snapshot, or is new. */
struct asym_task {
    struct asym_taskid id;
    uint32_t proc;                  /**< index into asym_snapshot.procs */
    uint32_t flags;                 /**< ASYM_TASK_* */
    char comm[ASYM_COMM_LEN];       /**< raw bytes, NUL-terminated; may hold anything but NUL */
    int32_t cpu;                    /**< where it last ran */
    int8_t nice;                    /**< -20..19 */
    uint8_t sched;                  /**< SCHED_OTHER ... as in sched.h */
    char state;                     /**< R, S, D ... from stat */
    double runnable;                /**< share of the interval running or waiting for a CPU: 0..1 */
    double running;                 /**< share of the interval on a CPU: 0..1 */
    const struct asym_mask *mask;   /**< its affinity now, offline CPUs included. Borrowed, interned:
                                         equal masks of one snapshot have equal addresses */
    const struct asym_mask *cpuset; /**< what its cgroup lets it have. Borrowed, interned likewise */
};

/** An application: a process or, where configured, a cgroup (the process set of Saez 2010, 2.1). */
struct asym_app {
    struct asym_taskid id;        /**< of the process; for a cgroup tid = tgid = 0, start = a hash of its path */
    const char *cgroup;           /**< path when it is a cgroup, else NULL. Borrowed */
    char comm[ASYM_COMM_LEN];     /**< of the process, or of the cgroup's busiest */
    uint32_t first_task, n_tasks; /**< its threads stand together in asym_snapshot.tasks */
    uint32_t n_threads;           /**< all its threads, listed or not */
    uint32_t runnable_instant;    /**< threads in state R now; spinning ones not counted */
    double runnable_mean;         /**< time-averaged count over the interval (schedstat); spinning not counted */
    bool speaks;                  /**< RTX: a program of it says what its threads do */
};

/** What the source could and could not see. Texts are static. */
struct asym_sight {
    uint32_t n_procs, n_threads; /**< known to exist */
    uint32_t n_denied;           /**< processes it was not permitted to read */
    uint32_t n_foreign;          /**< processes in PID namespaces it cannot map */
    uint32_t n_unkept;           /**< threads read without a kept descriptor, for want of descriptors */
    uint32_t n_speaking;         /**< programs that say what their threads do (RTX) */
    uint64_t n_lost_events;      /**< times the birth events overflowed and everything was scanned anew */
    uint32_t n_unread;    /**< processes whose maps or command line cannot be read: they would hold the reader up */
    uint32_t n_uncounted; /**< threads that a policy wants counted and that cannot be */
    const char *uncounted_why; /**< of the last of them */
    bool sampled;              /**< no schedstat: runnable counts are those of the moment, whatever the estimator */
    bool hidepid;              /**< /proc is mounted with hidepid and hides others' processes */
    bool births;               /**< births and deaths come as events */
    const char *births_why;    /**< NULL or why they do not */
};

struct asym_snapshot {
    asym_usec now;
    asym_usec interval; /**< since the snapshot before; 0 in the first, whose shares are then 0 */
    bool urgent; /**< RTX: a serial phase has begun or ended since the snapshot before. It may have come between two
                             looks: then what was measured is that of the look before */
    const struct asym_machine *machine;
    const struct asym_app *apps;
    const struct asym_proc *procs;
    const struct asym_task *tasks; /**< grouped by application, within it by process */
    size_t n_apps, n_procs, n_tasks;
    const struct asym_sample *samples; /**< in the order of tasks */
    size_t n_samples;
    const char *missing[ASYM_N_SIGNALS]; /**< NULL: the signal is there; else why not. Static */
    struct asym_sight sight;
};

#endif
