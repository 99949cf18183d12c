/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Even placement: fills CPUs so that their counts of threads differ by at most one. */
#ifndef ASYM_POLICY_PLACEMENT_SPREAD_EVEN_H
#define ASYM_POLICY_PLACEMENT_SPREAD_EVEN_H

#include "policy/placement/spread.h"

/**
 * Spreads the threads of list that are not placed yet over cpus so that the counts are even. A thread that may run on none
 * of cpus is spread over all CPUs that it may run on.
 * Cost: O(n) for all, and O(CPUs) for each set of threads with equal `allowed`.
 */
void asym_spread_even(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus);

/**
 * Gives the first threads of list an idle CPU of *free_fast beside a busy sibling, and removes it, if the threads that are not
 * placed yet are more than the slow CPUs and *free_fast: no thread shares a slow CPU while it could be first to such a seat.
 */
void asym_spread_give_siblings(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *free_fast);

/**
 * Spreads the threads of list that are not placed yet over the slow CPUs and free_fast, the fast CPUs that no thread was
 * given; then fills idle seats. This is the last step of a policy that gives fast seats one each.
 */
void asym_spread_rest(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *free_fast);

/**
 * Gives the seats that add more than a core of the slowest type to the first n_ranked threads of list, best first, and places the
 * rest as asym_spread_rest does: the cores of the slowest type, and what adds less, need no rank, unless there are too few for all.
 */
void asym_spread_by_rank(struct asym_spread *sp, const uint32_t *list, size_t n_ranked, size_t n);

/** For a machine whose CPUs are all alike: spreads every thread that is not placed yet evenly, and gives that as the reason. */
void asym_spread_alike(struct asym_spread *sp, const uint32_t *list, size_t n);

#endif
