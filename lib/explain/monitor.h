/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The monitor remembers what asymd has done and found, for the questions that users ask of a running asymd: the last decisions
 * on each thread, since when a thread is in its class or left alone, moves and time on fast CPUs of each application, what
 * runs on each CPU, and counters. It is pure: the caller hands it the feedback of each cycle, and the time stands in that.
 *
 * Its memory is bounded (see the constants below): about 12 MiB at most, however many threads the machine has. A thread or an
 * application beyond a bound is not remembered, and asym_monitor_totals counts it. After the first cycles it allocates nothing
 * but the path of a cgroup that it has not seen.
 *
 * All points in time are on CLOCK_MONOTONIC, as in a snapshot. Pointers that a query returns are valid until the next
 * asym_monitor_record.
 */
#ifndef ASYM_EXPLAIN_MONITOR_H
#define ASYM_EXPLAIN_MONITOR_H

#include <asym/plan.h>
#include <asym/port.h>
#include <asym/snapshot.h>
#include <asym/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ASYM_MONITOR_THREADS = 32768, /**< the most threads that it remembers */
    ASYM_MONITOR_APPS = 8192,     /**< the most applications */
    ASYM_MONITOR_HISTORIES =
        4096, /**< the most threads with decisions; the one whose last decision is oldest goes first */
    ASYM_MONITOR_DECISIONS = 10, /**< the decisions of a thread */
};

/** The window of rates "of the last minute". */
#define ASYM_MONITOR_WINDOW (60 * ASYM_SEC)

/** The log has this many lines on the class of an application at once, and as many in a period; and so many on all together. */
#define ASYM_CLASS_LOG_LINES  3
#define ASYM_CLASS_LOG_ALL    60
#define ASYM_CLASS_LOG_PERIOD (60 * ASYM_SEC)

/** A thread or an application that no snapshot has listed for this long is forgotten. A thread that asymd leaves alone is kept
 * for as long as the table is not three quarters full. */
#define ASYM_MONITOR_KEEP (5 * 60 * ASYM_SEC)

enum asym_monitor_what {
    ASYM_MONITOR_STEER,       /**< asymd set a mask and a nice value */
    ASYM_MONITOR_RELEASE,     /**< asymd put the thread's own back */
    ASYM_MONITOR_REPAIR,      /**< asymd put back what the thread had inherited */
    ASYM_MONITOR_LEAVE_ALONE, /**< from now on asymd does not steer it: the kernel refused, or its mask was changed */
    ASYM_MONITOR_N_WHATS,
};

/** Returns "steer", "release", "repair" or "leave alone". A static string. */
const char *asym_monitor_what_name(enum asym_monitor_what what);

/** A change that was carried out, or the end of steering. */
struct asym_monitor_decision {
    uint64_t number; /**< of all decisions: 1, 2, ... */
    asym_usec time;  /**< the time of the snapshot */
    struct asym_taskid id;
    char comm[ASYM_COMM_LEN]; /**< raw bytes, NUL-terminated; "": not known */
    enum asym_monitor_what what;
    enum asym_class class;
    int32_t from, to;                 /**< the CPU where it ran last; its target, -1: none. from -1: not known */
    int8_t nice;                      /**< the nice value that it has now */
    const struct asym_reason *reason; /**< NULL: a repair of a thread that the plan steers */
    double figure[2];
};

/** The facts that the monitor remembers about a thread. */
struct asym_monitor_thread {
    struct asym_taskid id;
    char comm[ASYM_COMM_LEN]; /**< raw bytes, NUL-terminated */
    struct asym_taskid app;   /**< id of its application (asym_app.id) */
    asym_usec seen;           /**< the last snapshot that listed it */
    int32_t cpu;              /**< where it ran last */
    int32_t target;           /**< -1: not steered */
    enum asym_class class;
    asym_usec class_since;
    double runnable, running;         /**< shares of the last interval: 0..1 */
    const struct asym_reason *reason; /**< why it has its CPU, or why it is not steered; never NULL */
    double figure[2];
    asym_usec reason_since; /**< since when the reason is this one, whatever its figures */
    bool exclusive;         /**< holds its CPU by class */
    uint32_t history;       /**< for the monitor */
};

/** The facts that the monitor remembers about an application. */
struct asym_monitor_app {
    struct asym_taskid id; /**< of asym_app; tid 0: a cgroup */
    const char *cgroup;    /**< NULL: a job or a process */
    char comm[ASYM_COMM_LEN];
    asym_usec seen; /**< the last snapshot that listed it */
    enum asym_phase phase;
    enum asym_class class;
    enum asym_class_source class_by; /**< what gave it the class */
    asym_usec class_since;
    double runnable;             /**< runnable count by the estimator in force */
    uint32_t n_procs, n_threads; /**< all of its processes and threads */
    uint32_t n_steered;          /**< threads of interest with a target, in the last snapshot that listed it */
    uint32_t n_fast;             /**< of these, with a target that is a fast CPU */
    bool has_sp;                 /**< one of its threads is in a serial phase (SP) */
    bool uses_rtx;               /**< it reports the states of its threads */
    double fast_share; /**< share of its running time that it spent on fast CPUs, over the last minute; 0 if it did
                                   not run */
    /**
     * Share of its active time in which one thread was runnable, over the last minute: 0..1; 0 if it was not active. In each
     * interval that is the largest runnable share of a thread, less the second. Those that spin (RTX) do not count.
     */
    double sequential_share;
    double running;                   /**< CPUs that it used on average in the last interval */
    uint32_t moves;                   /**< changes of target in the last minute */
    const struct asym_reason *reason; /**< the reason of the thread that ran most; of an excluded one, its exclusion */
    double figure[2];
    struct asym_taskid busiest; /**< the process whose thread ran most */
};

struct asym_monitor_cpu {
    double busy;             /**< share of the last interval, by the threads that ran there last: 0..1 */
    uint32_t threads;        /**< threads with this target */
    struct asym_taskid last; /**< the thread of interest that ran most there; tid 0: none yet */
    char comm[ASYM_COMM_LEN];
};

struct asym_monitor_totals {
    uint64_t n_cycles; /**< snapshots that were enforced */
    uint64_t n_prompt; /**< refreshes among them: a program or the kernel reported a phase, or a user gave an order */
    uint64_t actions[4][4]; /**< [enum asym_action_kind][enum asym_outcome_kind] */
    uint64_t changes;       /**< actions whose outcome was DONE */
    uint64_t left_alone;    /**< decisions LEAVE_ALONE */
    uint64_t lost_events;   /**< overflows of process events */
    uint32_t changes_last_minute;
    uint32_t n_procs, n_threads; /**< that the source knows, as of the last snapshot */
    uint32_t n_apps, n_listed;   /**< applications and threads of interest of the last snapshot */
    uint32_t n_steered;          /**< of these, with a target */
    uint32_t n_class[4];         /**< of the listed threads: [enum asym_class] */
    uint64_t n_unremembered;     /**< threads and applications of all cycles beyond a bound */
    asym_usec now;               /**< time of the last snapshot; 0: none yet */
};

struct asym_monitor;

/** Returns 0; -ENOMEM. */
int asym_monitor_new(struct asym_monitor **ret_monitor);

/** NULL is accepted. */
void asym_monitor_free(struct asym_monitor *m);

/** Record a cycle, after it was enforced. Cannot fail: without memory it remembers less. */
void asym_monitor_record(struct asym_monitor *m, const struct asym_feedback *feedback);

/**
 * Returns the task that stands for application app of the snapshot, if its class has changed and the log has room for a line: the
 * thread in class SP, else the first that asymd steers. NULL: there is no line. The class of an application is SP if one of its
 * threads has it, else MP or HP; an idle application, and one of which asymd steers nothing, keeps the class that it had. Call it
 * after the cycle was recorded, once for each application. *ret_left_out: its changes that had no line since the last one. An
 * application that changes all the time does not use up the lines of the others.
 */
const struct asym_plan_task *asym_monitor_class_line(struct asym_monitor *m, const struct asym_snapshot *s,
                                                     const struct asym_plan *plan, size_t app, unsigned *ret_left_out);

/** Returns whether asymd leaves the thread alone from this action on. */
bool asym_monitor_leaves_alone(const struct asym_action *a, const struct asym_outcome *o);

/** Returns the number of the last decision; 0: none yet. */
uint64_t asym_monitor_last_decision(const struct asym_monitor *m);

/**
 * List the decisions with a higher number than since, the oldest first. The older ones of a thread with more than
 * ASYM_MONITOR_DECISIONS are lost, and so are those beyond ASYM_MONITOR_HISTORIES threads. Returns 0, with *ret to be freed, whose
 * items are valid until the next record; -ENOMEM.
 */
int asym_monitor_decisions_since(const struct asym_monitor *m, uint64_t since,
                                 const struct asym_monitor_decision ***ret, size_t *ret_n);

/**
 * Returns the next application, or NULL after the last. *at: 0 for the first; the call moves it on. All calls together look
 * once at each application that is remembered. In no order. Only those that the last snapshot listed.
 */
const struct asym_monitor_app *asym_monitor_app_next(const struct asym_monitor *m, size_t *at);

/** Returns the application of that process, also if it is idle now: its job or cgroup, where that is one. NULL: not known. */
const struct asym_monitor_app *asym_monitor_app_of(const struct asym_monitor *m, int32_t pid);

/** Returns the thread with that number, the youngest if the kernel has reused it; NULL: not known. */
const struct asym_monitor_thread *asym_monitor_thread_of(const struct asym_monitor *m, int32_t tid);

/** Returns thread i of all that are remembered, or NULL after the last. In no order. A thread that the last snapshot listed
 * has seen == asym_monitor_totals().now. */
const struct asym_monitor_thread *asym_monitor_thread_at(const struct asym_monitor *m, size_t i);

/** Write the last decisions on a thread, newest first. Returns their number: 0..ASYM_MONITOR_DECISIONS. */
size_t asym_monitor_decisions(const struct asym_monitor *m, const struct asym_monitor_thread *thread,
                              struct asym_monitor_decision ret[ASYM_MONITOR_DECISIONS]);

/** Returns the CPU, cpu < ASYM_MAX_CPUS; zero if nothing ran there. */
const struct asym_monitor_cpu *asym_monitor_cpu_of(const struct asym_monitor *m, unsigned cpu);

/** Write the totals. */
void asym_monitor_totals(const struct asym_monitor *m, struct asym_monitor_totals *ret);

/* The last decisions on each thread, in a fixed number of slots. If all are taken, the one that was used least recently goes. */

struct asym_history;

struct asym_histories {
    struct asym_history *slots;
    uint32_t n, n_used;
    uint32_t newest, oldest; /* of a list by last use; slot + 1, 0: none */
};

/** Returns 0; -ENOMEM. The memory of a slot becomes resident with its first use. */
int asym_histories_init(struct asym_histories *h, uint32_t n);
void asym_histories_done(struct asym_histories *h);

/** Add a decision to the history of its thread (decision->id). slot: what the last call for this thread returned; 0: none. */
uint32_t asym_histories_add(struct asym_histories *h, uint32_t slot, const struct asym_monitor_decision *decision);

/** Write the decisions of the thread, newest first. Returns their number; 0 if another thread has the slot now. */
size_t asym_histories_read(const struct asym_histories *h, uint32_t slot, const struct asym_taskid *id,
                           struct asym_monitor_decision ret[ASYM_MONITOR_DECISIONS]);

/** List the decisions of all threads with a higher number than since (asym_monitor_decisions_since). */
int asym_histories_since(const struct asym_histories *h, uint64_t since, const struct asym_monitor_decision ***ret,
                         size_t *ret_n);

#endif
