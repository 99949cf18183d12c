/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The plan of the core: the phase and class of each application, the CPU of each thread with the reason, and the actions that
 * carry the plan out.
 */
#ifndef ASYM_PLAN_H
#define ASYM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/*
 * A reason says why a thread has its CPU, or why asymd does not steer it. A policy defines its reasons as static const objects
 * in its own file. The core defines the reasons for which it excludes threads. Two reasons are the same if their addresses are
 * equal.
 */

enum asym_reason_kind {
    ASYM_REASON_PLACED,    /**< the policy has given the thread a CPU */
    ASYM_REASON_UNSTEERED, /**< the policy leaves the thread where it is, and reports show it there */
    ASYM_REASON_IDLE,      /**< the thread did not need a CPU: reports only count it */
    ASYM_REASON_EXCLUDED,  /**< asymd must not steer the thread: reports say why */
};

struct asym_reason {
    /** For users: a printf format for the two figures of the decision, in order, as %.Nf or %g; %% is a percent sign.
     * It may leave out the second, or both. */
    const char *text;
    /**
     * For users who ask why: what stands after the name of the thread in a whole sentence, without the full stop. It begins
     * with a verb, and takes the figures as text does. NULL: the text stands in its place, after a colon.
     */
    const char *sentence;
    const char *several; /**< the text for several threads, without figures; NULL: text is used */
    enum asym_reason_kind kind;
    bool rotates;    /**< the policy moves the thread as time passes, even if nothing else changes */
    bool holds_core; /**< the policy keeps all other threads off the thread's core (an exception to rule 3) */
};

/** The core's reasons not to steer a thread, in the order of the reports. */
enum asym_exclusion {
    ASYM_WHY_NONE, /**< asymd may steer it */
    ASYM_WHY_KERNEL,
    ASYM_WHY_SELF,
    ASYM_WHY_FOREIGN_NS,
    ASYM_WHY_OUTSIDE,
    ASYM_WHY_RULE_IGNORE,
    ASYM_WHY_UNLISTED, /**< no rule names its program, and asymd.default is ignore */
    ASYM_WHY_REALTIME,
    ASYM_WHY_NO_SETAFFINITY,
    ASYM_WHY_OWN_MASK,     /**< its affinity mask leaves out CPUs, and asymd did not set that mask */
    ASYM_WHY_FOREIGN,      /**< another program, or the thread itself, changed the mask that asymd had set */
    ASYM_WHY_FOREIGN_NICE, /**< the same with the nice value */
    ASYM_WHY_DENIED,       /**< the kernel refused; figure 0: errno */
    ASYM_WHY_PAUSED,       /**< the user has told asymd to steer nothing for now */
    ASYM_WHY_SETTLING,     /**< figure 0: enforce.settle, seconds */
    ASYM_WHY_FORKED,       /**< fork hold-off; figure 0: seconds left */
    ASYM_WHY_UNKNOWN,      /**< asymd does not know yet which files its process has mapped, or its command line */
    ASYM_WHY_COUNTS_LATE,  /**< its program will size its thread pool by the mask of this thread */
    ASYM_WHY_HARDLY_RAN,   /**< the thread is so new that it may still set its own mask first */
    ASYM_WHY_IDLE,         /**< neither it nor its application needed a CPU */
    ASYM_WHY_NEXT_SWAP,    /**< appeared after the last mapping: waits for the next swap period */
    ASYM_WHY_NOTHING_FREE, /**< its cpuset has no usable CPU */
    ASYM_N_EXCLUSIONS
};

/** The policy leaves the thread alone, and a rule gives it CPUs or a nice value. */
extern const struct asym_reason asym_reason_rule;

/** Returns the reason for an exclusion, or NULL for ASYM_WHY_NONE. */
const struct asym_reason *asym_why(enum asym_exclusion exclusion);

/** Returns the exclusion that follows from an action whose outcome is HANDS_OFF with this -errno (asym_outcome.error). */
enum asym_exclusion asym_why_hands_off(int error);

/** Write the text of the reason, at most size bytes with the NUL; an empty text for NULL. Returns buf. */
const char *asym_reason_text(const struct asym_reason *reason, const double figure[2], char *buf, size_t size);

/** Returns the text for several threads that share the reason but not the figures. A static string. */
const char *asym_reason_several(const struct asym_reason *reason);

/** Returns a duration as a figure: seconds, rounded to the hundredth, so that %g prints few digits. */
static inline double asym_reason_seconds(asym_usec time)
{
    const asym_usec hundredth = ASYM_SEC / 100;
    const asym_usec hundredths = (time + hundredth / 2) / hundredth;
    return (double)hundredths / 100;
}

/** Serial and parallel are the phases of Morad 2008, 6. Idle means a runnable count below 0.5 over the interval. */
enum asym_phase { ASYM_PHASE_IDLE, ASYM_PHASE_SERIAL, ASYM_PHASE_PARALLEL };

/**
 * The classes of Saez 2010, 2.1: mildly parallel (MP), highly parallel (HP), serial phase (SP). SP is the class of a thread. MP
 * and HP are classes of an application, and so of its other threads.
 */
enum asym_class { ASYM_CLASS_NONE, ASYM_CLASS_MP, ASYM_CLASS_HP, ASYM_CLASS_SP };

/** The fact that gave an application its class. */
enum asym_class_source {
    ASYM_CLASS_BY_COUNT, /**< the number of its runnable threads */
    ASYM_CLASS_BY_NICE,  /**< [classify] background_nice: it counts as highly parallel */
    ASYM_CLASS_BY_RULE,  /**< policy_class of a rule */
};

/** The width of the enforced mask (docs/policies.md, rule 2). */
enum asym_pin {
    ASYM_PIN_CPU,  /**< the target alone */
    ASYM_PIN_LLC,  /**< CPUs of the target's core type under its LLC */
    ASYM_PIN_TYPE, /**< all CPUs of the target's core type */
    ASYM_PIN_ALL,  /**< all CPUs. Only a policy can answer so: it is no value of [enforce] pin */
    ASYM_PIN_EACH, /**< of a policy: its answer gives the width for each thread */
};

/** The plan for an application of the snapshot, in the order of asym_snapshot.apps. */
struct asym_plan_app {
    enum asym_phase phase;
    enum asym_class class;              /**< MP, HP, or NONE while idle */
    enum asym_class_source class_by;    /**< the fact that gave it the class */
    double runnable;                    /**< runnable count by the estimator in force */
    const struct asym_reason *excluded; /**< set if no thread of it may be steered; else NULL */
    double figure[2];                   /**< figures of excluded */
};

/** The plan for a thread of the snapshot, in the order of asym_snapshot.tasks. */
struct asym_plan_task {
    int32_t target; /**< CPU; -1: the thread is not steered, and reason says why */
    bool counted;   /**< the next snapshot must have a sample of its counters */
    bool exclusive; /**< holds its target by class: the masks of threads that hold no CPU leave it out */
    bool light;     /**< of a thread with a target: it sleeps too much to hold a CPU ([enforce] exclusive_from) */
    bool moves;     /**< the planned mask leaves out the CPU on which it runs now, so the kernel moves it */
    int8_t nice;    /**< planned nice value; its own if it is not boosted */
    enum asym_class class;
    const struct asym_reason *reason; /**< never NULL */
    double figure[2];
    const struct asym_mask *mask; /**< planned mask; its original mask if it is not steered. Borrowed */
};

struct asym_plan {
    const struct asym_plan_app *apps;
    const struct asym_plan_task *tasks;
    size_t n_apps, n_tasks;
    size_t n_moves; /**< tasks with moves set */
};

enum asym_action_kind {
    ASYM_ACTION_STEER,   /**< set this mask and nice value */
    ASYM_ACTION_RELEASE, /**< restore the original mask and nice value, and drop the thread's record */
    ASYM_ACTION_REPAIR, /**< the thread inherited a mask or nice value that asymd set, or had it before it called exec and
                           became the leader: set its creator's original, and drop the record of the former leader */
    ASYM_ACTION_FORGET, /**< the mask was changed by another program: keep it, restore the nice value, and drop the
                           thread's record */
};

/** One change. The core takes expect and expect_nice to be in force. The actuator compares them before it writes. */
struct asym_action {
    enum asym_action_kind kind;
    struct asym_taskid id;
    struct asym_mask expect, mask;
    int8_t expect_nice, nice;
    /**
     * A CPU + 1; 0: none. If mask leaves out the CPU on which the thread runs, this is a CPU of mask that was idle at
     * the snapshot. The actuator makes it the thread's only CPU for a moment, and sets mask then. Otherwise the kernel would
     * choose any CPU of mask, busy or not, and all threads at a barrier would wait for the two that share a CPU. An actuator
     * may ignore this field.
     */
    uint32_t transit_cpu;
    bool full_cpuset;                 /**< mask is the thread's whole cpuset: write all ones, so that the thread can use
                                           CPUs that the cpuset gains later (kernel >= 6.2 keeps the request) */
    const struct asym_reason *reason; /**< NULL for a repair of a thread that the plan steers, and for a FORGET
                                           of a thread that has called exec */
    double figure[2];
};

/** The kind of result of an action (lib/base/error.c has the errno table). */
enum asym_outcome_kind {
    ASYM_OUTCOME_DONE,
    ASYM_OUTCOME_GONE,      /**< the thread has ended (-ESRCH, -ENOENT); this is not an error */
    ASYM_OUTCOME_RETRY,     /**< the action failed now; the engine may plan it again */
    ASYM_OUTCOME_HANDS_OFF, /**< asymd must not steer this thread again */
};

struct asym_outcome {
    enum asym_outcome_kind kind;
    int error; /**< 0 or -errno; -EBUSY: another program had changed the mask; -ESTALE: the nice value */
};

/** Returns the kind of outcome for 0 or -errno: 0 is DONE, an unknown error is HANDS_OFF. */
enum asym_outcome_kind asym_outcome_of(int error);

/** Return the name of a value, such as "serial", "HP" or "cpu". Static strings. */
const char *asym_phase_name(enum asym_phase phase);
const char *asym_class_name(enum asym_class class);
const char *asym_action_name(enum asym_action_kind kind);
const char *asym_pin_name(enum asym_pin pin);

#endif
