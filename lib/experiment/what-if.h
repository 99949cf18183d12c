/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What-if: shows the snapshots of a source as they would look if each action had been carried out. A steered thread has the
 * planned mask and nice value, and the planned CPU where the mask leaves out the CPU of the snapshot. If the program itself
 * changes its mask in the snapshots, that mask counts from then on.
 */
#ifndef ASYM_EXPERIMENT_WHAT_IF_H
#define ASYM_EXPERIMENT_WHAT_IF_H

#include <asym/plan.h>
#include <asym/snapshot.h>

#include "base/mask-table.h"
#include "base/pool.h"
#include "core/task-table.h"

struct asym_what_if {
    struct asym_table steered;
    struct asym_mask_table masks;
    struct asym_pool tasks, outcomes;
};

void asym_what_if_init(struct asym_what_if *w);
void asym_what_if_done(struct asym_what_if *w);

/** Change the snapshot. Its tasks then belong to w, until the next call. Returns 0; -ENOMEM. */
int asym_what_if_show(struct asym_what_if *w, struct asym_snapshot *s);

/** Carry out the actions of the plan for that snapshot. Returns their outcomes, all DONE; NULL: no memory. */
const struct asym_outcome *asym_what_if_apply(struct asym_what_if *w, const struct asym_snapshot *s,
                                              const struct asym_plan *plan, const struct asym_action *actions,
                                              size_t n);

#endif
