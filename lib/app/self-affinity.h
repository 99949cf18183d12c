/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Moves asymd itself away from the CPUs that programs need. asymd needs no fast CPU, and must not run on a CPU that is reserved
 * for a thread. The thread of the fork guard stays where it is: it must react fast, and needs only microseconds.
 */
#ifndef ASYM_APP_SELF_AFFINITY_H
#define ASYM_APP_SELF_AFFINITY_H

#include <asym/machine.h>
#include <asym/plan.h>
#include <asym/snapshot.h>

struct asym_self_affinity {
    struct asym_mask own; /**< the mask with which asymd was started (CPUAffinity=); asymd stays within it */
    struct asym_mask set; /**< the mask that asymd set last */
};

/**
 * Choose CPUs for asymd among the online CPUs of own: the slow CPUs that no thread has to itself, without the CPUs of threads
 * that ran at the sample and were runnable for half of the interval or more; if there are none, the slow CPUs that no thread
 * has to itself; if there are none, all CPUs that no thread has to itself; if there are none, the slow CPUs; else own. asymd's
 * own threads do not count. plan: of the snapshot; NULL before the first plan. Pure.
 */
struct asym_mask asym_self_affinity_choose(const struct asym_mask *own, const struct asym_machine *m,
                                           const struct asym_snapshot *snapshot, const struct asym_plan *plan);

/** Record the mask of the calling thread in a->own. Returns 0; -errno: asym_self_affinity_update then moves nothing. */
int asym_self_affinity_init(struct asym_self_affinity *a);

/** Choose again, and move the calling thread if the choice has changed. */
void asym_self_affinity_update(struct asym_self_affinity *a, const struct asym_machine *m,
                               const struct asym_snapshot *snapshot, const struct asym_plan *plan);

#endif
