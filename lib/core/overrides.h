/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The orders of the user while asymd runs: a pause, and orders for single processes. They are facts of the snapshot, which a
 * source adds around the chain. So each cycle obeys them, also one that a program's report has started, and the engine releases
 * threads by its ordinary actions.
 *
 * An order belongs to a process, by its number and its start: a later process with the same number has none. A child has none
 * either.
 */
#ifndef ASYM_CORE_OVERRIDES_H
#define ASYM_CORE_OVERRIDES_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/port.h>
#include <asym/snapshot.h>

/** The most processes with an order. */
enum { ASYM_OVERRIDES_MAX = 1024 };

/** The orders for a process. */
struct asym_override {
    struct asym_taskid id;      /**< of its leader */
    bool ruled;                 /**< rule goes before the rule of the configuration */
    enum asym_rule_action rule; /**< valid with ruled */
    uint32_t ruled_by;          /**< the uid of the user who set the rule; valid with ruled */
    asym_usec adopted;          /**< asym_proc.adopted; 0: not */
};

/** The name of a rule that the user ordered (asym_proc.rule_name). */
extern const char asym_overrides_rule_name[];

struct asym_overrides;

/** Wrap the chain of sources. Borrows inner. Returns 0; -ENOMEM. */
int asym_overrides_new(struct asym_source *inner, struct asym_overrides **ret_overrides);

/** The link to use as the outermost source. Its close frees the overrides, and leaves inner open. */
struct asym_source *asym_overrides_source(struct asym_overrides *o);

/** Pause or resume, from the next snapshot on. */
void asym_overrides_pause(struct asym_overrides *o, bool paused);
bool asym_overrides_is_paused(const struct asym_overrides *o);

/** Use this rule for the process. by: uid of the user who sets it. Returns 0; -ENOSPC: too many processes. */
int asym_overrides_set_rule(struct asym_overrides *o, const struct asym_taskid *proc, enum asym_rule_action rule,
                            uint32_t by);

/**
 * Let the rules of the configuration decide about it again, whatever masks it has now: they count as its own. Returns 0; -ENOSPC,
 * if it had no order.
 */
int asym_overrides_unset_rule(struct asym_overrides *o, const struct asym_taskid *proc, asym_usec now);

/** Returns the orders for the process, or NULL. */
const struct asym_override *asym_overrides_find(const struct asym_overrides *o, const struct asym_taskid *proc);

/** Change the facts of the process by its orders, if it has some. */
void asym_overrides_apply(const struct asym_overrides *o, struct asym_proc *proc);

/** The number of processes with a rule. */
size_t asym_overrides_count(const struct asym_overrides *o);

/** Drop the orders for processes that have ended. */
void asym_overrides_forget(struct asym_overrides *o, bool (*has_ended)(const struct asym_taskid *proc));

#endif
