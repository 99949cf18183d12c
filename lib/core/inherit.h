/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Inherited affinity. A thread or process that a steered thread creates starts with the mask that asymd set on its
 * creator. A thread that calls exec takes the leader's number and keeps its mask: the engine treats it like a new thread of the
 * same process. /proc does not tell such a mask from one that the thread set itself.
 *
 * For each thread the engine keeps the mask in force and the one before it, also for a while after a release. Only a step
 * with candidates pays for the search: it indexes all these masks once, by process and mask.
 */
#ifndef ASYM_CORE_INHERIT_H
#define ASYM_CORE_INHERIT_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/pool.h"
#include "core/task-table.h"
#include "core/thread-state.h"

struct asym_inherited {
    const struct asym_table *threads;
    /** By process and mask. An item is twice the index of a thread, plus 1 for the mask that was in force before. */
    struct asym_hash index;
};

/**
 * True when the thread may have inherited a mask or a nice value. No snapshot listed it before, or it has its number since it
 * called exec; its mask leaves out CPUs of its cpuset, or its nice value is not 0; and the source calls it newborn or EXECUTED,
 * or its process began after asymd first set anything.
 */
bool asym_inherited_is_candidate(const struct asym_thread_state *m, const struct asym_seen *seen,
                                 asym_usec first_steered);

/** Index the masks that a new thread can have inherited from threads. pool holds the slots. Returns 0; -ENOMEM. */
int asym_inherited_list(struct asym_inherited *h, const struct asym_table *threads, struct asym_pool *pool);

/**
 * Find the creator: a thread of the same process or of its parent process on which asymd set exactly this mask; for a thread
 * that called exec, its own former state. If there is one, m gets the creator's original mask and nice value and becomes
 * INHERITED, and its own children are found too.
 * Returns true in that case. parent: the parent process; NULL: the snapshot does not list it.
 * The kernel reuses process numbers: a process that began after the creator did not contain it.
 */
bool asym_inherited_adopt(struct asym_inherited *h, struct asym_thread_state *m, const struct asym_seen *seen,
                          const struct asym_proc *parent, asym_usec now);

#endif
