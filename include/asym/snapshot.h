/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The facts that a source observed at one moment. A snapshot holds no decisions: the core decides whether a thread may be
 * steered, its class and its CPU.
 */
#ifndef ASYM_SNAPSHOT_H
#define ASYM_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>
#include <asym/signal.h>
#include <asym/types.h>

/** The action of a configuration rule for a process. */
enum asym_rule_action {
    ASYM_RULE_STEER, /**< the default */
    ASYM_RULE_IGNORE,
    ASYM_RULE_FAST,     /**< its threads stay on fast CPUs */
    ASYM_RULE_SLOW,     /**< its threads stay on slow CPUs */
    ASYM_RULE_UNLISTED, /**< no rule names it, and the configuration steers only programs that a rule names */
};

/** The class that a rule gives a program, whatever its runnable count is. */
enum asym_rule_class {
    ASYM_RULE_CLASS_AUTO, /**< asymd counts its threads */
    ASYM_RULE_CLASS_SERIAL,
    ASYM_RULE_CLASS_PARALLEL,
};

/** The other facts of a rule. All zero: the rule has only an action. */
struct asym_rule_facts {
    struct asym_mask cpus; /**< its threads stay on these CPUs; empty: the rule names none */
    int8_t nice;           /**< the nice value that asymd lends its threads; valid with has_nice */
    bool has_nice;
    bool library; /**< a rule of the installed library: the user has not named the program */
    enum asym_rule_class policy_class;
};

/** Facts about a process, as bits of asym_proc.flags. */
enum {
    ASYM_PROC_KERNEL = 1 << 0,     /**< a kernel thread */
    ASYM_PROC_SELF = 1 << 1,       /**< asymd itself, or a process that helps it */
    ASYM_PROC_FOREIGN_NS = 1 << 2, /**< in another PID namespace whose pids cannot be mapped */
    ASYM_PROC_OUTSIDE = 1 << 3,    /**< --pid is in force, and names neither the process nor an ancestor of it */
    /** Its only thread has not started the others yet, and a runtime in it (LLVM's OpenMP, oneTBB) will size its thread pool by
     * the mask that this thread has then. */
    ASYM_PROC_COUNTS_LATE = 1 << 4,
    ASYM_PROC_UNKNOWN = 1 << 5, /**< the source does not know its mapped files or its command line, or not yet */
};

/** Facts about a thread, as bits of asym_task.flags. */
enum {
    ASYM_TASK_NO_SETAFFINITY = 1 << 0, /**< PF_NO_SETAFFINITY */
    ASYM_TASK_NEWBORN = 1 << 1,        /**< created since the last snapshot; listed even if idle, because it may have
                                          inherited a mask that asymd narrowed */
    ASYM_TASK_MASTER = 1 << 2,         /**< RTX: a master that works: in a serial phase, or in a program that reports no
                                    phases; at most one thread of an application */
    ASYM_TASK_SPINNING = 1 << 3,       /**< RTX: waits by spinning; not counted as runnable */
    ASYM_TASK_ENDED =
        1 << 4, /**< ended after it was measured, or its process calls exec: mask is the one from that time */
    ASYM_TASK_HARDLY_RAN = 1 << 5, /**< has used less than ASYM_HARDLY_RAN of CPU time since its creation; not set if
                                          that is unknown */
    /** A leader, listed even if idle. Since the last snapshot another thread of the process has called exec, and has this number
     * and its own mask and nice value; or the leader has called exec, and has changed one of them. Not set where a process event
     * has told of the exec. */
    ASYM_TASK_EXECUTED = 1 << 6,
    ASYM_TASK_ALONE = 1 << 7, /**< BPF: the only runnable thread of its application, since the kernel told of it */
    ASYM_TASK_PHASE = 1 << 8, /**< RTX: this master is in a serial phase that its program reports: the others wait */
};

/**
 * Microseconds of CPU time. A thread that sets its own mask mostly does so first. On a busy machine this can happen long after
 * its creation in wall-clock time. A thread of LLVM's OpenMP 14 has used 13 to 60 us of CPU time by then.
 */
#define ASYM_HARDLY_RAN ASYM_MSEC

/** A process (thread group). */
struct asym_proc {
    struct asym_taskid id; /**< identity of its leader: tid == tgid */
    int32_t ppid;
    uint32_t app;        /**< index into asym_snapshot.apps */
    uint32_t flags;      /**< ASYM_PROC_* */
    asym_usec born;      /**< start of the process (CLOCK_MONOTONIC) */
    asym_usec last_fork; /**< when it last created a process; 0: not since asymd started */
    asym_usec last_exec; /**< when it last executed a program; 0: not since asymd started */
    asym_usec adopted;   /**< when the user last told asymd to steer it whatever masks it has; 0: never */
    /**
     * Nice values count within it only: a number above all sessions for its cgroup with the controller cpu (version 2); if it is in
     * none, its session where the kernel's autogroups are on; 0: neither.
     */
    int32_t nice_group;
    enum asym_rule_action rule;
    const char *rule_name; /**< name of the rule that matched; NULL: none. Borrowed from the settings */
    const struct asym_rule_facts *rule_facts; /**< further facts of that rule; NULL: none. Borrowed from the settings */
    const struct asym_profile *profile;       /**< profile of its executable; NULL: none. Borrowed */
};

/** A thread that used or waited for a CPU since the last snapshot, or is new. */
struct asym_task {
    struct asym_taskid id;
    uint32_t proc;                  /**< index into asym_snapshot.procs */
    uint32_t flags;                 /**< ASYM_TASK_* */
    char comm[ASYM_COMM_LEN];       /**< raw bytes, NUL-terminated; any byte but NUL can occur */
    int32_t cpu;                    /**< the CPU on which it last ran */
    int8_t nice;                    /**< -20..19 */
    uint8_t sched;                  /**< scheduling policy: SCHED_OTHER ... of sched.h */
    char state;                     /**< R, S, D ... of /proc/PID/stat */
    double runnable;                /**< share of the interval that it ran or waited for a CPU: 0..1 */
    double running;                 /**< share of the interval that it ran on a CPU: 0..1 */
    double critical;                /**< mean over the interval of 1 / runnable threads of its application, while it was
                                         runnable: 0..1; 0: not known */
    const struct asym_mask *mask;   /**< its affinity now, offline CPUs included. Borrowed. Equal masks of one snapshot
                                         have equal addresses */
    const struct asym_mask *cpuset; /**< the CPUs that its cgroup allows. Borrowed. Equal masks have equal addresses */
};

/** An application: a job, a process or a cgroup, as configured (the process set of Saez 2010, 2.1). */
struct asym_app {
    /**
     * Identity of the process. A process group has tid = tgid = its number, and the start of its leader, 0 if asymd has not seen
     * that. A cgroup has tid = tgid = 0, and start is a hash of its path.
     */
    struct asym_taskid id;
    const char *cgroup; /**< path if it is a cgroup, else NULL. Borrowed */
    char comm
        [ASYM_COMM_LEN]; /**< name of the process; of a job of several, of its leader or oldest one; else of the busiest */
    uint32_t first_task, n_tasks; /**< its threads are contiguous in asym_snapshot.tasks */
    uint32_t n_procs, n_threads;  /**< number of all its processes and threads, listed or not */
    uint32_t runnable_instant;    /**< threads in state R now, without those that spin */
    double runnable_mean;         /**< average count over the interval (schedstat), without threads that spin */
    bool uses_rtx;                /**< RTX: a program of it reports the states of its threads */
};

/** The observers, in the order of their rows. */
enum asym_observer_row {
#define ASYM_OBSERVER(NAME, name) ASYM_OBSERVER_##NAME,
#include <asym/observers.def>
#undef ASYM_OBSERVER
    ASYM_N_OBSERVERS
};

/** Coverage: how much of the system the source could read. Texts are static. */
struct asym_coverage {
    uint32_t n_procs, n_threads; /**< processes and threads that the source knows */
    uint32_t n_denied;           /**< processes that asymd is not permitted to read */
    uint32_t n_foreign;          /**< processes in PID namespaces that asymd cannot map */
    uint32_t n_unkept;           /**< threads whose files are opened anew each time, for lack of descriptors */
    uint32_t n_reporting;        /**< programs that report the states of their threads (RTX) */
    uint64_t n_lost_events;      /**< number of overflows of process events; after each the source scans all of /proc */
    uint32_t n_unread;    /**< processes whose maps or command line asymd does not read, because the read would block */
    uint32_t n_failed;    /**< threads and processes that this sample leaves out: a read or an allocation failed */
    int failure;          /**< the -errno of the last of them */
    uint32_t n_uncounted; /**< threads whose counters a policy needs and asymd cannot read */
    const char *uncounted_why;      /**< why the last of them has no counters */
    bool sampled;                   /**< no schedstat: runnable counts are instantaneous, whatever the estimator */
    bool hidepid;                   /**< /proc is mounted with hidepid, which hides the processes of other users */
    bool process_events;            /**< the kernel sends an event when a process or thread starts or ends */
    const char *process_events_why; /**< why the kernel sends no events, or NULL; valid as long as the source */
    /**
     * The facts that an observer could not see: a sentence that is valid as the snapshot is; NULL: nothing. Records leave it out.
     */
    const char *remarks[ASYM_N_OBSERVERS];
};

/** An event since the last snapshot that cannot wait for the next sample. Records have these numbers. */
enum asym_urgency {
    ASYM_URGENT_NOT = 0,
    ASYM_URGENT_REPORT, /**< RTX: a program has reported the begin or the end of a serial phase */
    ASYM_URGENT_PHASE,  /**< BPF: a thread has come to be alone (ASYM_TASK_ALONE), or is so no more; and nothing else */
};

struct asym_snapshot {
    asym_usec now;
    asym_usec interval; /**< time since the last snapshot; 0 in the first snapshot, whose shares are 0 */
    enum asym_urgency urgent;
    bool refreshed; /**< returned again after asym_source.refresh: measured values are those of the last snapshot */
    bool paused;    /**< the user has told asymd to steer nothing for now */
    /** The processes that the user has told asymd to ignore, listed in procs or not, sorted by tgid. NULL if there are none. */
    const struct asym_taskid *ignored;
    size_t n_ignored;
    const struct asym_machine *machine;
    const struct asym_app *apps;
    const struct asym_proc *procs;
    const struct asym_task *tasks; /**< grouped by application, then by process */
    size_t n_apps, n_procs, n_tasks;
    const struct asym_sample *samples; /**< in the order of tasks */
    size_t n_samples;
    const char *missing[ASYM_N_SIGNALS]; /**< why the signal is not available; NULL: it is. Static */
    struct asym_coverage coverage;
};

#endif
