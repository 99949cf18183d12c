/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What the core decided: for each application its phase and class, for each thread where it goes and
 * why, and the actions that make it so.
 */
#ifndef ASYM_PLAN_H
#define ASYM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** Serial or parallel: Morad 2008, 6. Idle: runnable count below 0.5 over the interval. */
enum asym_phase { ASYM_PHASE_IDLE, ASYM_PHASE_SERIAL, ASYM_PHASE_PARALLEL };

/** Saez 2010, 2.1. SP is of a thread; MP and HP of an application and so of its other threads. */
enum asym_class { ASYM_CLASS_NONE, ASYM_CLASS_MP, ASYM_CLASS_HP, ASYM_CLASS_SP };

/** How wide the enforced mask is (policies.md, rule 2). */
enum asym_pin {
    ASYM_PIN_CPU,  /**< just the target */
    ASYM_PIN_LLC,  /**< CPUs of the target's core type under its LLC */
    ASYM_PIN_TYPE, /**< all CPUs of the target's core type */
};

/** Why. Rows with their texts: lib/core/reason.c. Exclusions come first, then the policies' reasons. */
enum asym_reason {
    ASYM_WHY_NONE,
    /* not steered, and why */
    ASYM_WHY_KERNEL,
    ASYM_WHY_SELF,
    ASYM_WHY_FOREIGN_NS,
    ASYM_WHY_OUTSIDE,
    ASYM_WHY_RULE_IGNORE,
    ASYM_WHY_REALTIME,
    ASYM_WHY_NO_SETAFFINITY,
    ASYM_WHY_OWN_MASK,     /**< carries a mask of its own choice */
    ASYM_WHY_FOREIGN,      /**< somebody else changed what asymd had set */
    ASYM_WHY_DENIED,       /**< the kernel refused; figure 0: errno */
    ASYM_WHY_SETTLING,     /**< figure 0: age, 1: settle, seconds */
    ASYM_WHY_FORKED,       /**< fork hold-off; figure 0: seconds left */
    ASYM_WHY_UNKNOWN,      /**< asymd does not know yet what it has mapped, or its command line */
    ASYM_WHY_COUNTS_LATE,  /**< has yet to count CPUs for its threads, by its mask */
    ASYM_WHY_HARDLY_RAN,   /**< may be about to set a mask of its own, as its first deed */
    ASYM_WHY_IDLE,         /**< its application is idle */
    ASYM_WHY_POLICY_NONE,  /**< the policy steers nothing */
    ASYM_WHY_NEXT_SWAP,    /**< seen since the last mapping: waits for the next swap period */
    ASYM_WHY_NOTHING_FREE, /**< its cpuset and the usable CPUs have none in common */
    ASYM_WHY_LAST_EXCLUSION = ASYM_WHY_NOTHING_FREE,
    /* steered, and why there */
    ASYM_WHY_SP,         /**< figure 0: seconds of boost left, 1: amp_boost */
    ASYM_WHY_MASTER,     /**< RTX: runs the serial phase of its program */
    ASYM_WHY_SP_NO_ROOM, /**< more SP threads than fast CPUs */
    ASYM_WHY_MP,         /**< an MP thread on a fast CPU */
    ASYM_WHY_MP_TURN,    /**< figure 0: MP threads, 1: fast CPUs they share */
    ASYM_WHY_MP_WAITS,   /**< likewise, not its turn */
    ASYM_WHY_HP,         /**< an HP thread on a slow CPU; figure 0: runnable count, 1: hp_threshold */
    ASYM_WHY_HP_SPARE,   /**< fast CPU that SP and MP leave free */
    ASYM_WHY_LOW_TLP,    /**< mintlp; figure 0: runnable count of its application */
    ASYM_WHY_HIGH_TLP,
    ASYM_WHY_LEAST_FAST_TIME, /**< rr; figure 0: seconds of fast time it had, 1: mean of all */
    ASYM_WHY_HAD_FAST_TIME,
    ASYM_WHY_FAST_BUSY_FIRST, /**< busyfcs */
    ASYM_WHY_FAST_ALL_BUSY,
    ASYM_WHY_ALIKE,         /**< all CPUs are alike: only spread */
    ASYM_WHY_SPINNING,      /**< RTX: waits by spinning, ranks last */
    ASYM_WHY_NO_FAST,       /**< may not run on fast CPUs */
    ASYM_WHY_ONLY_FAST,     /**< may run on fast CPUs only, whoever holds them */
    ASYM_WHY_BEST_RESPONSE, /**< response-time; figure 0: threads on its CPU, 1: speed of that */
    ASYM_WHY_PULLED,        /**< figure 0: load of the CPU it goes to, 1: of the one it leaves, with it */
    ASYM_WHY_OWN_CPU,       /**< throughput: no CPU is idle before one has two */
    ASYM_WHY_BY_SPEED,      /**< figure 0: threads on its CPU, 1: what that would have in proportion to its speed */
    ASYM_WHY_RANK,          /**< priority; figure 0: its rank, 1: of how many */
    ASYM_WHY_GAINS,         /**< static-ipc, ipc-driven; figure 0: times as fast on a fast CPU */
    ASYM_WHY_GAINS_LESS,    /**< likewise, but others gain more */
    ASYM_WHY_NO_PROFILE,    /**< static-ipc, hass */
    ASYM_WHY_NOT_MEASURED,  /**< ipc-driven, eshmp */
    ASYM_WHY_MONITORED,     /**< figure 0: ms of its turn so far, 1: ms that it takes */
    ASYM_WHY_ESTIMATED,     /**< hass; figure 0: times as fast on a fast CPU, 1: threads on its core type */
    ASYM_WHY_STALLS,        /**< eshmp; figure 0: stall time per instruction, ns (ASTPI) */
    ASYM_WHY_WAITS_TURN,    /**< figure 0: threads, 1: CPUs */
    ASYM_WHY_SERIAL,        /**< serial-first: a CPU to itself */
    ASYM_WHY_SERIAL_SHARES, /**< figure 0: serial threads, 1: CPUs */
    ASYM_WHY_SERIAL_LITTLE, /**< figure 0: share of the time that it is runnable */
    ASYM_WHY_SENIOR,        /**< figure 0: seconds of boost left, 1: seniority_timeout */
    /* smt-*: shares are of a core */
    ASYM_WHY_SMT_NO_SIBLING,
    ASYM_WHY_SMT_OWN_CORE,       /**< no other thread has its seat there */
    ASYM_WHY_SMT_SHARED,         /**< figure 0: its share of its core, 1: how much of the time it is alone, percent */
    ASYM_WHY_SMT_CROWDED,        /**< it is time for somebody to be alone; figure 0: its share, percent */
    ASYM_WHY_SMT_SOLO,           /**< figure 0: seconds left, 1: its share, percent */
    ASYM_WHY_SMT_GUEST,          /**< figure 0: seconds left */
    ASYM_WHY_SMT_SAMPLE,         /**< figure 0: seconds left */
    ASYM_WHY_SMT_MEASURED_ALONE, /**< figure 0: seconds left */
    ASYM_WHY_SMT_MEASURED,       /**< beside the others of its core; figure 0: seconds left */
    ASYM_WHY_SMT_PAIRING,        /**< figure 0: number of the pairing, 1: of how many */
    ASYM_WHY_SMT_FETCH,          /**< figure 0: its share, percent */
    ASYM_N_REASONS
};

/** What was decided about an application of the snapshot; same order as asym_snapshot.apps. */
struct asym_plan_app {
    enum asym_phase phase;
    enum asym_class class;     /**< MP, HP, or NONE while idle */
    double runnable;           /**< by the estimator in force */
    enum asym_reason excluded; /**< when no thread of it may be steered; else ASYM_WHY_NONE */
    double figure[2];          /**< of excluded */
};

/** What was decided about a thread of the snapshot; same order as asym_snapshot.tasks. */
struct asym_plan_task {
    int32_t target; /**< CPU; -1: not steered, and reason says why */
    bool monitor;   /**< its counters are wanted at the next look */
    bool claim;     /**< holds its target by class: threads without a claim are kept off that CPU */
    bool moves;     /**< the planned mask leaves out where it runs now: it has to go elsewhere */
    int8_t nice;    /**< the nice value planned; its own when not boosted */
    enum asym_class class;
    enum asym_reason reason;
    double figure[2];
    struct asym_mask mask; /**< planned; its original mask when not steered */
};

struct asym_plan {
    const struct asym_plan_app *apps;
    const struct asym_plan_task *tasks;
    size_t n_apps, n_tasks;
    size_t n_moves; /**< tasks with moves set */
};

enum asym_action_kind {
    ASYM_ACTION_STEER,   /**< give it this mask and nice */
    ASYM_ACTION_RELEASE, /**< give it back what it had, and forget it */
    ASYM_ACTION_REPAIR,  /**< it inherited what was never meant for it: give it its creator's original */
    ASYM_ACTION_FORGET,  /**< somebody else has taken its mask: leave that, give back the nice value, and forget it */
};

/** One change. expect_* is what the core believes is in force: the actuator compares before it writes. */
struct asym_action {
    enum asym_action_kind kind;
    struct asym_taskid id;
    struct asym_mask expect, mask;
    int8_t expect_nice, nice;
    /**
     * A CPU + 1; 0: none. Where mask takes a running thread from its CPU: one of mask's on which nothing runs, to be its
     * only one for a moment. The kernel by itself takes any of mask, busy or not, and a barrier waits for whoever shares a
     * CPU. An actuator may leave it out.
     */
    uint32_t via;
    bool whole; /**< mask is all that its cpuset allows: write all ones, so that a cpuset that
                     grows later is not masked by a list of CPUs (kernel >= 6.2 keeps the request) */
    enum asym_reason reason;
    double figure[2];
};

/** What became of an action (the errno table: lib/base/verdict.c). */
enum asym_verdict {
    ASYM_VERDICT_DONE,
    ASYM_VERDICT_GONE,      /**< the thread is no more: -ESRCH, -ENOENT: normal flow */
    ASYM_VERDICT_RETRY,     /**< not now: may be asked again */
    ASYM_VERDICT_HANDS_OFF, /**< never again for this thread */
};

struct asym_outcome {
    enum asym_verdict verdict;
    int error; /**< 0 or -errno; -EBUSY: somebody else had changed it */
};

/** Sort -errno into gone, retry, hands off; 0 is done. Unknown errors are hands off. */
enum asym_verdict asym_verdict_of(int error);

/** Write the reason in words, at most size bytes with the NUL. Returns buf. */
const char *asym_reason_text(enum asym_reason reason, const double figure[2], char *buf, size_t size);

/** "serial", "HP", "cpu" ... Static strings. */
const char *asym_phase_name(enum asym_phase phase);
const char *asym_class_name(enum asym_class class);
const char *asym_pin_name(enum asym_pin pin);

#endif
