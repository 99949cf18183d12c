/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Placement for policies that give the faster CPUs to the threads that gain most from them: static-ipc and ipc-driven. The
 * policy sets the gain of each thread; the placement is the same for both.
 */
#ifndef ASYM_POLICY_PLACEMENT_RANKED_H
#define ASYM_POLICY_PLACEMENT_RANKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "policy/placement/spread.h"

struct asym_ranked {
    struct asym_spread *sp;
    float *gain;    /**< per thread, set by the policy: how many times as fast it is on a fast CPU; 0: not known */
    uint8_t *holds; /**< per thread, as in struct asym_spread: in, by its rank in the last plan; out, in this plan */
    uint32_t *keys; /* per thread; the least key goes first */
    uint32_t *order, *scratch;
};

/** Takes its memory from the arena; gain and holds are all zero. The caller asks asym_arena_is_short. */
void asym_ranked_init(struct asym_ranked *r, struct asym_spread *sp);

/**
 * Ranks the threads over the rows of seats: gives the seats of each row, what adds most first, to the threads that gain most, and
 * spreads the rest over the slow CPUs and the fast ones that are left. Threads that are already placed stay.
 * Gains that differ by less than a hundredth are equal: then a thread that had a CPU by its rank goes first, then the thread on
 * the faster type. Threads with an unknown gain come last.
 */
void asym_ranked_place(struct asym_ranked *r);

/** Sets the reason of thread t; figure 0 is its gain. unknown is the reason of threads with an unknown gain. */
void asym_ranked_explain(const struct asym_ranked *r, size_t t, const struct asym_reason *unknown);

#endif
