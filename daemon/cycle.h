/* SPDX-License-Identifier: GPL-2.0-or-later */
/** One turn of observe, classify, plan, enforce: the same for every mode. */
#ifndef ASYM_DAEMON_CYCLE_H
#define ASYM_DAEMON_CYCLE_H

#include <stddef.h>

#include <asym/engine.h>
#include <asym/port.h>

struct asym_cycle {
    struct asym_source *source;  /* borrowed, as the next four */
    struct asym_source *procfs;  /* told what was done (linux/procfs.h); NULL: nobody is */
    struct asym_source *monitor; /* told who is to be counted (linux/monitor.h); NULL: nobody is */
    struct asym_actuator *actuator;
    struct asym_engine *engine;
    /* Of the last turn; valid until the next one. */
    struct asym_snapshot snapshot;
    const struct asym_plan *plan;
    const struct asym_action *actions;
    struct asym_outcome *outcomes; /* owned */
    size_t n_actions, n_outcomes_max;
    asym_usec source_cpu; /* CPU time of looking, summed over all turns */
    asym_usec plan_cpu;   /* of the engine */
    size_t n_turns;
};

void asym_cycle_done(struct asym_cycle *c);

/**
 * Look and plan; asym_cycle_enforce then carries the plan out. In between the caller may exchange the actuator.
 * Returns 1; 0 when the source has ended; -errno.
 */
int asym_cycle_plan(struct asym_cycle *c);

/** Returns 0; -errno as the actuator does, or for want of memory: then nothing was done, and the next turn plans it anew. */
int asym_cycle_enforce(struct asym_cycle *c);

/** An actuator that changes nothing: every action ends in RETRY with -ECANCELED. */
int asym_actuator_dry_new(struct asym_actuator **ret_actuator);

#endif
