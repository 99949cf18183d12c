/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The engine: classify, plan, diff. Pure: a snapshot in, a plan and actions out; outcomes come back.
 * It remembers per application and per thread what it needs (class, since when, what it set and what
 * was there before), and forgets what has gone.
 */
#ifndef ASYM_ENGINE_H
#define ASYM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/plan.h>
#include <asym/policy.h>
#include <asym/snapshot.h>

enum asym_estimator { ASYM_ESTIMATOR_MEAN, ASYM_ESTIMATOR_INSTANT };

/** [classify] */
struct asym_classify_settings {
    int estimator;               /**< enum asym_estimator */
    unsigned serial_max_threads; /**< 2 (Morad 2008, 6) */
    unsigned hp_threshold;       /**< UINT_MAX: number of fast CPUs + 1 (Saez 2010, 2.1) */
    asym_usec amp_boost;         /**< 1 s (Saez 2010, 2.1) */
    unsigned hysteresis;         /**< intervals a class must hold: 1 = at once */
};

/** [enforce], the part that decides */
struct asym_enforce_settings {
    int pin;                /**< enum asym_pin, or -1: as the policy's row says */
    asym_usec swap_period;  /**< mappings change no more often: 100 ms (Saez 2010, 2.1) */
    asym_usec settle;       /**< a process is not steered before this age: 500 ms */
    asym_usec fork_holdoff; /**< nor this long after it created another: 10 s */
    asym_usec release;      /**< a thread idle this long gets its mask back: 5 s */
};

struct asym_engine_config {
    const struct asym_policy *policy;
    const void *params; /**< of the policy. Copied */
    struct asym_classify_settings classify;
    struct asym_enforce_settings enforce;
    bool keep_nice; /**< plan no boost: the actuator could not give the nice value back */
};

struct asym_engine;

int asym_engine_new(const struct asym_engine_config *config, struct asym_engine **ret_engine);
void asym_engine_free(struct asym_engine *e);

/**
 * Change policy or settings. What is steered stays steered until the next step plans anew; the state
 * of a policy that is replaced is dropped, that of one that stays is kept.
 */
int asym_engine_configure(struct asym_engine *e, const struct asym_engine_config *config);

/**
 * Classify the snapshot, plan, and list what must change. Results are owned by the engine and valid
 * until its next call. Between swap periods the mapping stays; releases and repairs are listed at once.
 * Returns 0; -ENOMEM (nothing changed).
 */
int asym_engine_step(struct asym_engine *e, const struct asym_snapshot *s, const struct asym_plan **ret_plan,
                     const struct asym_action **ret_actions, size_t *ret_n);

/**
 * What became of the actions of the last step, in their order. An action counts as in force only when
 * it is DONE here; RETRY leaves the thread as it was, GONE forgets it, HANDS_OFF leaves it alone for
 * good (reason FOREIGN for -EBUSY, else DENIED).
 */
void asym_engine_outcomes(struct asym_engine *e, const struct asym_outcome *outcomes, size_t n);

/** hp_threshold in force on this machine: the setting, or number of fast CPUs + 1. */
unsigned asym_hp_threshold(const struct asym_classify_settings *c, const struct asym_machine *m);

#endif
