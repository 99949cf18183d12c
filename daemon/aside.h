/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Where asymd itself runs. It needs no fast CPU, and on one that a thread holds by a claim it would be the very company
 * that it keeps away from that thread. The guard is elsewhere: it has to be quick, and takes microseconds.
 */
#ifndef ASYM_DAEMON_ASIDE_H
#define ASYM_DAEMON_ASIDE_H

#include <asym/machine.h>
#include <asym/plan.h>

struct asym_aside {
    struct asym_mask own; /**< what it was started with (CPUAffinity=): never more than that */
    struct asym_mask set; /**< what was set last */
};

/**
 * The CPUs for asymd, of own and online: slow ones that nobody claims; else others that nobody claims; else slow ones; else
 * own. plan: NULL before the first. Pure.
 */
struct asym_mask asym_aside_choose(const struct asym_mask *own, const struct asym_machine *m,
                                   const struct asym_plan *plan);

/** The calling thread's mask is its own from now on. Returns 0; -errno: it stays where it is. */
int asym_aside_init(struct asym_aside *a);

/** Move the calling thread, if the choice is another one than at the last time. */
void asym_aside_mind(struct asym_aside *a, const struct asym_machine *m, const struct asym_plan *plan);

#endif
