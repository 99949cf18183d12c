/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The two ports between the engine and a machine: a source returns snapshots, and an actuator carries out actions. A mode of
 * asymd is a choice of a source and an actuator.
 *
 * A cycle calls next, steps the engine, calls apply, hands the outcomes to the engine, and calls feedback, in this order.
 *
 * Sources form a chain. A source may wrap another one, its inner source: its next calls that of the inner source and changes
 * the snapshot. It keeps the order and the number of apps, procs and tasks, so that a plan fits the snapshots of every link.
 * feedback and refresh go to each source of the chain (asym_source_feedback, asym_source_refresh): the innermost (procfs)
 * gets them first, the outermost last. No source calls those of its inner source.
 */
#ifndef ASYM_PORT_H
#define ASYM_PORT_H

#include <stddef.h>

#include <asym/plan.h>
#include <asym/snapshot.h>

/** The plan, the actions and the outcomes of a snapshot. All of it is borrowed and valid only during the call. */
struct asym_feedback {
    const struct asym_snapshot *snapshot; /**< the last one that the outermost source returned */
    const struct asym_plan *plan;         /**< the engine's plan for it, even if it could not be carried out */
    const struct asym_action *actions;    /**< the actions that the actuator got */
    const struct asym_outcome *outcomes;  /**< the outcome of each action: n_actions of them */
    size_t n_actions;
};

struct asym_source {
    struct asym_source *inner; /**< the source that it wraps, borrowed; NULL: this is the innermost */
    /**
     * Take a snapshot. Fills *ret. The source owns the data to which *ret points; it is valid until the next call.
     * Returns 1; 0 at the end (a trace has ended); -EINPROGRESS if the snapshot is not complete and the
     * next call continues it; -errno.
     */
    int (*next)(struct asym_source *source, struct asym_snapshot *ret);
    /**
     * The cycle calls this once after every apply, also when apply failed and when there were no actions: a source can rely
     * on the plan of every enforced snapshot. It is not called for a snapshot that was not enforced (memory ran out, or the
     * caller ended the run). It cannot fail: a source ignores feedback that it can no longer use (on a thread that has ended).
     * NULL: the source does not use feedback.
     */
    void (*feedback)(struct asym_source *source, const struct asym_feedback *feedback);
    /**
     * Make the next call of next() return the last snapshot again. The source reads again only data that it can read in
     * microseconds: masks, forks, and the states that programs report. Measured values and the interval stay those of the last
     * snapshot. now is the time of the call, and asym_snapshot.refreshed is set. If there is no last snapshot, next() takes a
     * full one. A refresh affects one call of next(). asymd calls it when a program or the kernel reports the
     * start or end of a serial phase.
     * NULL: the source has nothing to do for it; for the innermost: it cannot refresh, and the next snapshot is a full one.
     */
    void (*refresh)(struct asym_source *source);
    /** Free it. An inner source stays open. NULL: who made the source frees it. */
    void (*close)(struct asym_source *source);
};

struct asym_actuator {
    /**
     * Carry out n actions in order, and write the outcome of each to ret_outcomes[i], whatever is returned.
     * Returns 0; -errno if no thread may be steered (for example, the ledger cannot be written). Then the outcome of each STEER
     * is RETRY with that error, and the actuator has carried out only the actions that restore.
     */
    int (*apply)(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                 struct asym_outcome *ret_outcomes);
    /** Free it. close restores no thread. NULL as above. */
    void (*close)(struct asym_actuator *actuator);
};

/** Give feedback to all sources of the chain. source: the outermost. */
static inline void asym_source_feedback(struct asym_source *source, const struct asym_feedback *feedback)
{
    if (source->inner)
        asym_source_feedback(source->inner, feedback);
    if (source->feedback)
        source->feedback(source, feedback);
}

/** Have all sources of the chain refresh. source: the outermost. */
static inline void asym_source_refresh(struct asym_source *source)
{
    if (source->inner)
        asym_source_refresh(source->inner);
    if (source->refresh)
        source->refresh(source);
}

#endif
