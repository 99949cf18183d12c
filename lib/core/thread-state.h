/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The engine's state of a thread: what asymd has set on it, what it had before, and what samples found since. */
#ifndef ASYM_CORE_THREAD_STATE_H
#define ASYM_CORE_THREAD_STATE_H

#include <asym/engine.h>
#include <asym/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/mask-table.h"

/** A thread that holds its CPU becomes light below this share of the limit. */
#define ASYM_DUTY_STAYS 0.8

/** All zero: nothing is known of the thread. */
struct asym_duty {
    asym_usec at;     /**< the end of the last interval */
    float ran, ready; /**< means: shares of the time in which it ran, and in which it did not wait */
    bool light;       /**< its duty is below the limit, with hysteresis */
};

/** Returns the share of the means that is left after an interval. A step computes it once for all threads. */
double asym_duty_decay(asym_usec time);

/**
 * Add the interval that ends now; decay is asym_duty_decay(interval). In a gap since the last interval the thread slept. A thread
 * becomes light when its duty falls below four fifths of from, and is light no more when its duty reaches from; a new one is light
 * below from. An interval that it has already does not count again.
 */
void asym_duty_add(struct asym_duty *d, asym_usec now, asym_usec interval, double decay, double running,
                   double runnable, double from);

/** Returns what is left of the duty of a thread that has slept since its last interval. It fades over about 0.3 s. */
double asym_duty_asleep(const struct asym_duty *d, asym_usec now);

/** Returns the duty, 0..1; 1 as long as the thread has only waited, or nothing is known of it. */
double asym_duty_share(const struct asym_duty *d);

/** The hysteresis: returns whether a duty is below from, or, unless it was light, below ASYM_DUTY_STAYS times from. */
bool asym_duty_is_light(double duty, bool was, double from);

/**
 * The engine's knowledge of a thread's affinity. Each state excludes the others:
 * only a thread that nothing was set on can inherit, only a steered one can be lost,
 * and a repair or a FORGET comes before any steering.
 */
enum asym_affinity_state {
    ASYM_AFFINITY_NEW = 0,   /**< no snapshot has listed it before, or it has its number since it called exec */
    ASYM_AFFINITY_OWN,       /**< asymd has set nothing that is still in force */
    ASYM_AFFINITY_FITS,      /**< OWN, and its own mask is what its last assignment gives it */
    ASYM_AFFINITY_STEERED,   /**< set is in force, as far as asymd knows */
    ASYM_AFFINITY_INHERITED, /**< it inherited what asymd set for its creator; original is what a repair gives it */
    ASYM_AFFINITY_LOST,      /**< asymd has not set its mask, and the actuator does not know yet */
};

/** The part of its cpuset that a thread's original mask allows. */
enum asym_original_extent {
    ASYM_ORIGINAL_ONLINE = 0, /**< all online CPUs, but not all of the cpuset */
    ASYM_ORIGINAL_CPUSET,     /**< all of it */
    ASYM_ORIGINAL_NARROW,     /**< it leaves out online CPUs */
};

/**
 * All zero: a new thread. In the table the policy's per-thread state follows it.
 * The mask table numbers the masks.
 */
struct asym_thread_state {
    _Alignas(16) struct asym_taskid id;
    uint64_t seen;     /**< the last step whose snapshot listed it */
    uint64_t assigned; /**< the plan that assignment belongs to */
    asym_usec class_since, last_active;
    asym_usec steered_since; /**< when asymd first set something on it; 0: never */
    asym_usec set_at;        /**< when set was last known to be in force */
    asym_usec hands_off_at;  /**< when hands_off was set; valid while it is */
    asym_usec suspected_at;  /**< when a sample first found the suspected change */
    struct asym_duty duty;
    struct asym_assignment assignment;
    uint32_t original;         /**< its own mask; each sample updates it while the thread is not steered */
    uint32_t asked;            /**< what asymd last passed to the kernel, which keeps it (6.2 and later) */
    uint32_t set;              /**< what the kernel made of asked: in force, as far as asymd knows */
    uint32_t before;           /**< what was in force before set, or last of all; a new thread may have inherited it */
    uint32_t suspected;        /**< found in place of set: a suspected external change; 0: none */
    uint32_t suspected_cpuset; /**< the cpuset of its cgroup in that sample */
    uint32_t cpuset;           /**< the cpuset of its cgroup when set was last in force */
    enum asym_affinity_state state;
    enum asym_original_extent extent; /**< of original */
    enum asym_class class;
    enum asym_exclusion
        hands_off;       /**< FOREIGN, FOREIGN_NICE or DENIED: asymd steers it again only if the user adopts it */
    int hands_off_error; /**< errno of DENIED, positive */
    int32_t given;       /**< the target in force; valid in STEERED and FITS */
    int8_t original_nice, set_nice, nice_before;
    uint8_t n_suspected; /**< samples in a row that found suspected */
    bool boosted;        /**< asymd lent it set_nice; the thread has that value, or one that it raised it to */
    bool ended;          /**< it has ended while before and nice_before were in force */
    bool nice_foreign;   /**< the lent nice value was changed: asymd takes back what is left and lends none again */
};

/** A thread as the snapshot shows it. */
struct asym_seen {
    const struct asym_task *task;
    const struct asym_proc *proc;
    uint32_t mask, cpuset; /**< numbers in the mask table */
};

struct asym_circumstances {
    asym_usec now;
    const struct asym_machine *machine;
    const struct asym_mask_table *masks;
    const struct asym_enforce_settings *settings;
};

/**
 * Compare the snapshot's view of a thread with what asymd has set. The fork guard may have released the thread,
 * its cpuset may have reset or narrowed its mask, or another program may have changed it.
 * Afterwards the state says what is in force.
 */
void asym_thread_state_observe(struct asym_thread_state *m, const struct asym_seen *seen,
                               const struct asym_circumstances *c);

/** Record that asymd has set mask and nice. original_nice and original stay. */
void asym_thread_state_steered(struct asym_thread_state *m, uint32_t mask, int8_t nice, asym_usec now);

/**
 * Another thread has this number since it called exec. If its mask or nice value is not the one that the engine knows, it becomes
 * NEW; LOST, if the actuator has a record of the former leader.
 */
void asym_thread_state_executed(struct asym_thread_state *m, const struct asym_seen *seen,
                                const struct asym_circumstances *c);

/** Record that its own mask and nice value are in force again. */
void asym_thread_state_released(struct asym_thread_state *m);

/** Record that it has ended. Its number is gone: it may have called exec, and have the leader's number and its own mask. */
void asym_thread_state_ended(struct asym_thread_state *m);

/** True when it used a CPU or waited for one during the interval. */
bool asym_task_is_active(const struct asym_task *task);

/* Whether asymd may steer a thread, and to which CPUs. */

/** Returns the CPUs that the rule of the process names; NULL: none. */
const struct asym_mask *asym_rule_cpus(const struct asym_proc *proc);

/**
 * Returns why asymd steers no thread of the process for as long as flags and rule of proc stay; ASYM_WHY_NONE: they do not forbid
 * it. Time plays no part.
 */
enum asym_exclusion asym_lasting_exclusion(const struct asym_proc *proc);

/** Returns whether that is one of the reasons that asym_lasting_exclusion() returns. */
bool asym_is_lasting_exclusion(const struct asym_reason *reason);

/** Returns why asymd may steer no thread of the process; ASYM_WHY_NONE: the process does not forbid it. */
enum asym_exclusion asym_eligible_proc(const struct asym_proc *proc, asym_usec now,
                                       const struct asym_enforce_settings *settings, double ret_figure[2]);

/** Returns why asymd may not steer the thread; ASYM_WHY_NONE: it may. Does not check idleness. Always writes ret_figure. */
enum asym_exclusion asym_eligible(const struct asym_thread_state *m, const struct asym_task *task,
                                  const struct asym_proc *proc, asym_usec now,
                                  const struct asym_enforce_settings *settings, double ret_figure[2]);

/**
 * Returns the CPUs that asymd may give a thread: the usable CPUs of its cpuset that its original mask allows. original NULL:
 * the thread had its whole cpuset, so any CPU of today's cpuset is allowed. The rule of proc narrows the result, by its CPUs
 * first and then to the fast or slow ones, each unless that leaves no CPU. The result may be empty.
 */
struct asym_mask asym_allowed_cpus(const struct asym_mask *original, const struct asym_mask *cpuset,
                                   const struct asym_proc *proc, const struct asym_machine *machine);

#endif
