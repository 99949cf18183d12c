/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The contract of a policy (docs/policies.md, "What every policy obeys"). A policy is one const struct asym_policy, mostly at the
 * end of one file (asym has a folder, for its steps), and one row in lib/policy/policies.def. The build makes the manual, the
 * sample configuration, the list of policies and the tests of all policies from that struct.
 *
 * A policy is a pure function of (machine, threads, its own state, settings, time). It reads no clock, file,
 * or random source, and allocates nothing. The engine owns the state and the per-thread state, and zeroes both.
 * Working memory comes from the arena in its input.
 */
#ifndef ASYM_POLICY_H
#define ASYM_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>
#include <asym/option.h>
#include <asym/plan.h>
#include <asym/signal.h>
#include <asym/types.h>

struct asym_arena;

/** The least time between two plans for which a policy may ask. */
#define ASYM_AGAIN_LEAST (20 * ASYM_MSEC)

/** An active application as a policy sees it. */
struct asym_policy_app {
    /** That of asym_app (snapshot.h): start is a hash for a cgroup (tid 0), and 0 for a job whose leader asymd has not seen. */
    struct asym_taskid id;
    enum asym_phase phase;
    enum asym_class class;           /**< MP or HP */
    enum asym_class_source class_by; /**< the fact that gave it the class */
    double runnable;                 /**< runnable count by the estimator in force */
    asym_usec phase_since;           /**< when it entered its phase */
    double unsteered; /**< its threads that need a CPU and that asymd does not steer: their runnable shares, added up */
    uint32_t first_thread, n_threads; /**< its threads are contiguous in asym_policy_input.threads */
};

/** A thread of interest that asymd may steer, as a policy sees it. */
struct asym_policy_thread {
    struct asym_taskid id;
    uint32_t app;          /**< index into asym_policy_input.apps */
    uint32_t proc;         /**< of its process, whose threads are side by side: the same for these, and for no others */
    enum asym_class class; /**< SP, or the class of its application */
    asym_usec class_since; /**< when it entered that class */
    int32_t preferred_cpu; /**< the CPU to keep if all else is equal: the last target, else (and for SP threads and
                               masters) the CPU on which it last ran; -1 if that CPU is not in allowed */
    const struct asym_mask *allowed; /**< the policy may put it there; never empty. Equal sets: equal addresses */
    double runnable, running;        /**< share of the interval: 0..1 */
    double critical;       /**< mean of 1 / runnable threads of its application while it is runnable; 0: not known */
    double duty;           /**< share of about the last second for which it would run if it never waited: 0..1 */
    bool awake;            /**< it is on a CPU or waits for one at the end of the interval */
    bool light;            /**< its duty is below [enforce] exclusive_from: it gets no CPU to itself */
    int8_t nice;           /**< its own, without a boost */
    uint32_t nice_group;   /**< nice values count only among threads of one group: 1..n_nice_groups; 0: among all */
    bool master, spinning; /**< RTX */
    bool in_phase;         /**< RTX: a master whose program says that the others wait for it now */
    bool alone;            /**< BPF: the only runnable thread of its application at this moment */
    const struct asym_profile *profile; /**< profile of its executable; NULL: none */
    const struct asym_sample *sample;   /**< counts since the last snapshot; NULL: none, also of one that spins */
    int16_t sampled_on; /**< index into machine.types: the one core type that its mask allowed for the whole sample;
                               -1: its mask allowed several, or there is no sample */
    void *state;        /**< task_state_size bytes, zero when the thread is new to the policy; NULL if the size is 0 */
};

struct asym_policy_input {
    const struct asym_machine *machine;
    asym_usec now;
    /**
     * The time for which the measurements count, since the plan before, or since no thread could be planned; 0: this plan has
     * none, or it is the first. Those of threads stay then.
     */
    asym_usec interval;
    asym_usec swap_period; /**< the engine plans again after this time, at the next snapshot with new measurements */
    asym_usec since_swap; /**< time since the current swap period began; above 0 only in an early plan: reacts, again */
    const struct asym_policy_app *apps;
    const struct asym_policy_thread *threads; /**< grouped by application */
    size_t n_apps, n_threads;
    uint32_t n_nice_groups; /**< of these threads; the numbers are others in each plan */
    /** All threads that need a CPU and that asymd does not steer, but for its own and the kernel's: runnable shares, added up. */
    double unsteered;
    /** Mean of 1 / runnable count of their applications, by what each needs: 0..1; 0: there are none. */
    double unsteered_weight;
    /** Per CPU: the duties of steered threads that slept for the whole interval. It is their target: their masks hold it still. */
    const float *asleep;
    /** Set by the policy, empty at each call: CPUs to leave idle. A mask has one of them only if it has no other. */
    struct asym_mask *spare;
    /**
     * Set by the policy, 0 at each call: it wants to plan again after this time, before the swap period ends; 0: when that ends.
     * The engine calls it at the first snapshot with new measurements after that, and not within ASYM_AGAIN_LEAST. Such a plan does
     * not begin a new swap period.
     */
    asym_usec *again;
    asym_usec amp_boost;      /**< [classify]: the time for which a thread stays SP */
    unsigned hp_threshold;    /**< [classify]: an application with more runnable threads than this is HP */
    const void *params;       /**< params_size bytes, filled from options */
    void *state;              /**< state_size bytes */
    struct asym_arena *arena; /**< empty at each call. If it is too small, return -ENOBUFS before you change
                                   state: the engine enlarges it and calls plan again */
};

/** The decision of a policy on one thread. */
struct asym_assignment {
    int32_t cpu;                      /**< a CPU in allowed; -1: do not steer the thread */
    enum asym_pin width;              /**< of its mask: CPU to ALL; read only if the policy's pin is ASYM_PIN_EACH */
    int8_t nice_delta;                /**< added to its own nice value; the engine keeps the sum within -20..19 */
    bool exclusive;                   /**< the thread holds cpu by its class; a light one does not, unless its reason
                                           holds the core */
    bool counted;                     /**< count its instructions until the next snapshot */
    const struct asym_reason *reason; /**< a reason of the policy, or of a placement that it uses; never NULL */
    double figure[2];
};

struct asym_policy {
    const char *name;
    const char *summary; /**< one line */
    const char *source;  /**< paper and section */
    unsigned needs;      /**< bits 1 << enum asym_signal */
    enum asym_pin
        pin; /**< the default of [enforce] pin. EACH: the engine also lets no crowd onto the CPUs of light threads */
    const char *refuses; /**< why no live machine can run it, whatever its signals; NULL: a live machine can run it */
    /**
     * A thread gets a CPU of its own while it runs alone (asym_policy_thread.alone): asymd also plans when the kernel says that
     * it has begun, and has ended.
     */
    bool serves_alone;
    bool reacts; /**< the engine also calls plan as soon as a program reports the start or end of a serial phase;
                            such a plan does not begin a new swap period */
    /**
     * NULL; or in place of serves_alone: asymd calls it when the kernel says that a thread has begun to run alone. The last plan
     * goes on, and ret has its answers; reason NULL: the thread was not in it. Threads of it that sleep now are in in, too. The
     * function changes the answers of threads that exchange their CPUs, and gives each a reason. in has no new measurements:
     * interval is 0, spare and again stay as they are; arena is as large as for the last plan.
     */
    void (*exchange)(const struct asym_policy_input *in, struct asym_assignment *ret);
    bool every_snapshot; /**< the engine calls plan at every snapshot, not once per swap period; the policy keeps its
                              own periods in its state */
    bool apart; /**< it says which threads share a core, and measures that: the engine lets no crowd onto their CPUs */
    size_t params_size, state_size, task_state_size;
    const struct asym_option *options; /**< options of [policy.NAME], ended by a row whose key is NULL; NULL: none */
    /** Fill ret[0..n_threads), all of each: it has old answers. Returns 0, or -ENOBUFS (see arena). */
    int (*plan)(const struct asym_policy_input *in, struct asym_assignment *ret);
};

/** Returns the i-th policy of policies.def, or NULL after the last. */
const struct asym_policy *asym_policy_at(size_t i);

/** Returns the policy of that name, or NULL. */
const struct asym_policy *asym_policy_find(const char *name);

#endif
