/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Placing threads on CPUs, the part that all policies share: even, sticky, and near.
 *
 * Sticky (policies.md, rule 4): among equal choices a thread stays at home, then under the same LLC, then on the same
 * NUMA node (Saez 2010, 3.4: migrating across memory domains costs up to 18 %). Physical cores fill before siblings, and
 * of what is equally loaded the faster core type fills first: so the slow CPUs of a machine with more than two types are
 * used in the order of their speed. CPUs that are equal in all that are taken in the order of their favour (asym_cpu.rank).
 */
#ifndef ASYM_POLICY_SPREAD_H
#define ASYM_POLICY_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

/** Placement in progress. Policies read in, ret and load. */
struct asym_spread {
    const struct asym_policy_input *in;
    struct asym_assignment *ret;
    uint32_t *load;      /* threads given to each CPU */
    uint32_t *core_load; /* and to each core */

    uint32_t *order; /* usable CPUs by node, LLC, sibling rank */
    uint32_t n_order;
    uint32_t *llc_first, *node_first; /* where each begins in order */
    uint32_t *cursor;                 /* how far each has been filled; [0] for all CPUs */
    uint32_t *extra;                  /* per core: threads above the level; or threads whose home it has */
    uint32_t *want;                   /* per CPU: threads to be placed whose home it is */

    const struct asym_mask **sets; /* the different may, fewest CPUs first */
    uint32_t *set_of;              /* of each thread */
    uint32_t *set_mark;            /* of each set, for whoever walks over them; one more than there are sets */
    uint32_t *set_reach;           /* of each set: ASYM_REACH_* */
    uint32_t n_sets;
    uint32_t *list, *scratch; /* n_threads each */
};

/** Takes its memory from in->arena. All of ret becomes "not placed" (cpu -1). 0; -ENOBUFS. */
int asym_spread_init(struct asym_spread *sp, const struct asym_policy_input *in, struct asym_assignment *ret);

/** Bring to the front of list, in their order, the threads that may run on one of cpus. Returns how many. */
size_t asym_spread_able(struct asym_spread *sp, uint32_t *list, size_t n, const struct asym_mask *cpus);

/**
 * Give each thread of list, in order of preference, a CPU of *avail to itself, as long as there are any; those given leave
 * *avail; the rest keep cpu -1.
 * Cost: O(n + CPUs of avail squared) for each level of siblings.
 */
void asym_spread_give(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail);

/**
 * The same for serial threads. Then the cores of *avail that are free are offered to those of list, best first: one that is on
 * a CPU of a slower type or of less favour moves there, the first of list before others. An RTX master stays.
 * Cost: that of asym_spread_give, and O(n) for each core that is free.
 */
void asym_spread_give_serial(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail);

/**
 * Spread the threads of list that are not placed yet over cpus (or, where a thread may run on none of them, over all it
 * may) so that the counts are even.
 * Cost: O(n) for all, and O(CPUs) for each set of threads with equal may.
 */
void asym_spread_even(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus);

/** Rule 3: move threads off slow CPUs that have two onto fast CPUs that have none. O(n) */
void asym_spread_mend(struct asym_spread *sp);

/** What kinds of CPU a thread may run on, as bits. */
enum { ASYM_REACH_FAST = 1 << 0, ASYM_REACH_SLOW = 1 << 1 };

/** Those bits for thread t. */
static inline unsigned asym_spread_reach(const struct asym_spread *sp, size_t t)
{
    return sp->set_reach[sp->set_of[t]];
}

/** A machine whose CPUs are all alike: every thread not placed yet is spread evenly, reason ASYM_WHY_ALIKE. */
void asym_spread_alike(struct asym_spread *sp, const uint32_t *list, size_t n);

/** All threads, 0.. n_threads - 1. From the arena; NULL: too small. */
uint32_t *asym_spread_all(const struct asym_policy_input *in);

#endif
