/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The contract of a policy (policies.md, "What every policy obeys"). A policy is one file that ends in
 * one const struct asym_policy, and one row in lib/policy/policies.def.
 *
 * It is a pure function of (machine, threads, its own state, settings, time). It reads no clock, file,
 * or random source, and allocates nothing: state and per-thread state are owned and zeroed by the
 * engine, working memory comes from the arena in its input.
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

/** An active application as a policy sees it. */
struct asym_policy_app {
    struct asym_taskid id;
    enum asym_phase phase;
    enum asym_class class;            /**< MP or HP */
    double runnable;                  /**< by the estimator in force */
    asym_usec phase_since;            /**< when it entered its phase */
    uint32_t first_thread, n_threads; /**< its threads stand together in asym_policy_input.threads */
};

/** A thread of interest that may be steered, as a policy sees it. */
struct asym_policy_thread {
    struct asym_taskid id;
    uint32_t app;          /**< index into asym_policy_input.apps */
    enum asym_class class; /**< SP, or its application's */
    asym_usec class_since; /**< when it got that class */
    int32_t home;          /**< where it stays if all else is equal: the target it was last given, else (and for SP
                       threads and masters) the CPU it last ran on; -1 when that CPU is not in may */
    const struct asym_mask *may;        /**< CPUs it may be given; never empty. Equal sets have equal addresses */
    double runnable, running;           /**< share of the interval: 0..1 */
    int8_t nice;                        /**< its own */
    bool master, spinning;              /**< RTX */
    const struct asym_profile *profile; /**< of its executable; NULL: none */
    const struct asym_sample *sample;   /**< what was counted since the last look; NULL: nothing */
    int16_t sampled_on; /**< core type whose CPUs it had to itself for all of the sample: an index into machine.types;
                            -1: several, or no sample */
    void *state;        /**< task_state_size bytes, zero when the thread is new to the policy; NULL if size 0 */
};

struct asym_policy_input {
    const struct asym_machine *machine;
    asym_usec now;
    asym_usec interval; /**< since the plan before; 0 in the first */
    asym_usec in_turn;  /**< since the swap period began that this plan is of: 0, unless it is an early one (reacts) */
    const struct asym_policy_app *apps;
    const struct asym_policy_thread *threads; /**< grouped by application */
    size_t n_apps, n_threads;
    const void *params;       /**< params_size bytes, filled from options */
    void *state;              /**< state_size bytes */
    struct asym_arena *arena; /**< empty at each call; when it is too small return -ENOBUFS
                                   before state is changed: the engine grows it and asks again */
};

/** The answer for one thread. */
struct asym_assignment {
    int32_t cpu;       /**< in may; -1: do not steer it */
    int8_t nice_delta; /**< added to its own nice; the engine keeps the sum within -20..19 */
    bool claim;        /**< it holds cpu by class: exclusive */
    bool monitor;      /**< count its instructions from now to the next look */
    enum asym_reason reason;
    double figure[2];
};

struct asym_policy {
    const char *name;
    const char *summary; /**< one line */
    const char *source;  /**< paper and section */
    unsigned needs;      /**< bits 1 << enum asym_signal */
    enum asym_pin pin;   /**< the default of [enforce] pin */
    const char *refuses; /**< why no live machine can run it, whatever its signals; NULL: it can be run */
    bool reacts;         /**< asked at once, too, when a program tells of a serial phase: turns stay as they are then */
    bool own_period; /**< asked at every look, not once per swap period: it keeps its periods itself, in its state */
    size_t params_size, state_size, task_state_size;
    const struct asym_option *options; /**< for [policy.NAME]; ends with key NULL; NULL: none */
    /** Fill ret[0..n_threads). Returns 0, or -ENOBUFS (see arena). */
    int (*plan)(const struct asym_policy_input *in, struct asym_assignment *ret);
};

/** All policies in the order of policies.def; NULL behind the last. */
const struct asym_policy *asym_policy_at(size_t i);

/** NULL when there is none of that name. */
const struct asym_policy *asym_policy_find(const char *name);

#endif
