/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Policies that hold the fast CPUs for the threads that gain most from them: static-ipc, ipc-driven. Who gains how much is
 * theirs to say; who goes where is the same for both.
 */
#ifndef ASYM_POLICY_RANKED_H
#define ASYM_POLICY_RANKED_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/spread.h"

struct asym_ranked {
    struct asym_spread *sp;
    float *gain; /**< of each thread, to be filled: how many times as fast it is on a fast CPU; 0: nothing is known */
    bool *held;  /**< of each thread: it had a fast CPU to itself in the last plan; then: it has one in this */
    uint32_t *keys; /* of each thread: the least goes first */
    uint32_t *order, *scratch;
};

/** Takes its memory from the arena; gain and held are all zero. 0; -ENOBUFS. */
int asym_ranked_init(struct asym_ranked *r, struct asym_spread *sp);

/**
 * Give the fast CPUs of *fast, one each, to the threads that gain most, and spread the rest over the other CPUs. Threads
 * that are placed already stay. Gains that differ by less than a hundredth are equal: then who holds a fast CPU keeps it.
 * Who nothing is known of comes last.
 */
void asym_ranked_place(struct asym_ranked *r, struct asym_mask *fast);

/** Why thread t is where it is now; figure 0 is its gain. unknown: the reason of those nothing is known of. */
void asym_ranked_explain(const struct asym_ranked *r, size_t t, enum asym_reason unknown);

#endif
