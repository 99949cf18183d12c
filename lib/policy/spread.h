/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Placing threads on CPUs, the part that all policies share: even, sticky, and near.
 *
 * Sticky (policies.md, rule 4): among equal choices a thread stays at home, then under the same LLC, then on the same
 * NUMA node (Saez 2010, 3.4: migrating across memory domains costs up to 18 %). Physical cores fill before siblings.
 */
#ifndef ASYM_POLICY_SPREAD_H
#define ASYM_POLICY_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

struct asym_spread {
    const struct asym_policy_input *in;
    struct asym_assignment *ret;
    uint32_t *load;      /* threads given to each CPU */
    uint32_t *core_load; /* and to each core */
    uint32_t *order;     /* usable CPUs by node, LLC, sibling rank */
    uint32_t n_order;
    uint32_t *llc_first, *node_first; /* where each begins in order; one more at the end */
    uint32_t *cursor;                 /* as long as order's groups */
    uint32_t *extra;                  /* per core: threads above the level, while one group is placed */
    uint32_t *list, *scratch;         /* n_threads each */
};

/** Takes its memory from in->arena. All of ret becomes "not placed" (cpu -1). 0; -ENOBUFS. */
int asym_spread_init(struct asym_spread *sp, const struct asym_policy_input *in, struct asym_assignment *ret);

/**
 * Give each thread of list, in order of preference, a CPU of *avail to itself, as long as there are any; those given leave
 * *avail. Returns how many were given one; the rest keep cpu -1.
 */
size_t asym_spread_give(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail);

/**
 * Spread the threads of list that are not placed yet over cpus (or, where a thread may run on none of them, over all it
 * may) so that the counts are even; where they cannot be, the faster CPU has one more.
 * Cost: O((n + CPUs) log n) for each set of threads with equal masks.
 */
void asym_spread_even(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus);

/** Rule 3: move threads off slow CPUs that have two onto fast CPUs that have none. */
void asym_spread_mend(struct asym_spread *sp);

#endif
