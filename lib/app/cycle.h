/* SPDX-License-Identifier: GPL-2.0-or-later */
/** One cycle: observe, classify, plan, enforce. It is the same for every mode. */
#ifndef ASYM_APP_CYCLE_H
#define ASYM_APP_CYCLE_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/engine.h>
#include <asym/port.h>

struct asym_cycle {
    struct asym_source *source; /* the outermost source; borrowed, as is the next one */
    struct asym_actuator *actuator;
    struct asym_engine *engine; /* owned */
    /* The results of the last cycle; valid until the next one. */
    struct asym_snapshot snapshot;
    const struct asym_plan *plan;
    const struct asym_action *actions;
    struct asym_outcome *outcomes; /* owned */
    size_t n_actions, n_outcomes_max;
    bool has_outcomes;    /* of this plan; false: there was no memory for them, and nothing was done */
    asym_usec source_cpu; /* CPU time of the source in all cycles, microseconds */
    asym_usec plan_cpu;   /* CPU time of the engine in all cycles, microseconds */
    size_t n_cycles;
};

/** Make the engine. Returns 0; -ENOMEM. */
int asym_cycle_init(struct asym_cycle *c, const struct asym_engine_config *config, struct asym_source *source,
                    struct asym_actuator *actuator);
void asym_cycle_done(struct asym_cycle *c);

/**
 * Take a snapshot and plan; asym_cycle_enforce then carries out the plan. In between the caller may replace the actuator.
 * Returns 1; 0 if the source has ended; -errno.
 */
int asym_cycle_plan(struct asym_cycle *c);

/**
 * Carry out the plan, and pass the outcomes to the engine and the source. Returns 0; the -errno of the actuator; -ENOMEM
 * without has_outcomes: nothing was done, neither the engine nor the source gets outcomes, and the next cycle plans again.
 */
int asym_cycle_enforce(struct asym_cycle *c);

/**
 * The first half of asym_cycle_enforce: carry out the plan, and pass the outcomes to the engine. If it sets has_outcomes,
 * asym_cycle_feedback has to follow before the next cycle.
 */
int asym_cycle_apply(struct asym_cycle *c);

/** Returns the time until the next snapshot: interval, or less if the policy wants to plan again before. */
asym_usec asym_cycle_wait(const struct asym_cycle *c, asym_usec interval);

/** The second half: pass the outcomes to the source. */
void asym_cycle_feedback(struct asym_cycle *c);

/** The plan and the outcomes of the last cycle. It points into c, and is valid until the next cycle. */
struct asym_feedback asym_cycle_result(const struct asym_cycle *c);

/** Returns an actuator that changes nothing: the outcome of every action is RETRY with -ECANCELED. It need not be closed. */
struct asym_actuator *asym_actuator_dry(void);

#endif
