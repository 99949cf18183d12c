/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The engine classifies, plans and diffs. It is pure: it takes a snapshot, returns a plan and actions, and takes the outcomes
 * of the actions. It keeps state for each application and thread: the class and since when it holds, what asymd has set, and
 * what the thread had before. It drops the state of applications and threads that have ended.
 */
#ifndef ASYM_ENGINE_H
#define ASYM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/settings-options.h>
#include <asym/plan.h>
#include <asym/policy.h>
#include <asym/snapshot.h>

enum asym_estimator { ASYM_ESTIMATOR_MEAN, ASYM_ESTIMATOR_INSTANT };

/** [classify] */
struct asym_classify_settings {
    ASYM_OPTIONS_CLASSIFY(ASYM_OPTION_FIELD)
};

/** [enforce]: the options that the engine uses */
struct asym_enforce_settings {
    ASYM_OPTIONS_ENFORCE(ASYM_OPTION_FIELD)
};

struct asym_engine_config {
    const struct asym_policy *policy;
    const void *params; /**< parameters of the policy. Copied */
    struct asym_classify_settings classify;
    struct asym_enforce_settings enforce;
    bool keep_nice; /**< plan no boost, because the actuator could not restore the nice value */
};

struct asym_engine;

int asym_engine_new(const struct asym_engine_config *config, struct asym_engine **ret_engine);
void asym_engine_free(struct asym_engine *e);

/**
 * Change policy or settings. Steered threads stay steered until the next step makes a new plan. The engine frees the state of a
 * policy that is replaced, and keeps the state of a policy that stays.
 */
int asym_engine_configure(struct asym_engine *e, const struct asym_engine_config *config);

/**
 * Classify the snapshot, plan, and list the actions that are needed. The engine owns the results; they are valid until its next
 * call. The mapping changes only when a swap period ends; releases and repairs are listed at once. Actions on threads that must
 * leave their CPU come first, then those on threads that get a CPU to themselves.
 * Returns 0; -ENOMEM (nothing changed).
 */
int asym_engine_step(struct asym_engine *e, const struct asym_snapshot *s, const struct asym_plan **ret_plan,
                     const struct asym_action **ret_actions, size_t *ret_n);

/**
 * Report the outcomes of the actions of the last step, in their order. An action is in force only if its outcome is DONE. After
 * RETRY the engine takes the thread as unchanged. After GONE it drops the thread. After HANDS_OFF it steers the thread again
 * only if the user adopts its process later (reason: asym_why_hands_off).
 */
void asym_engine_outcomes(struct asym_engine *e, const struct asym_outcome *outcomes, size_t n);

/**
 * Returns the time after the last step at which the policy wants to plan again, before the swap period ends; 0: it does not. A loop
 * takes a snapshot then.
 */
asym_usec asym_engine_again(const struct asym_engine *e);

/** Returns the hp_threshold in force on this machine: the setting, or the number of fast cores that ordinary threads get + 1. */
unsigned asym_hp_threshold(const struct asym_classify_settings *c, const struct asym_machine *m);

#endif
