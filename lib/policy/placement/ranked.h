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

#include "policy/placement/balance.h"
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

/* The boost of light threads: a nice delta that gives a thread, which shares its fast CPU because it sleeps much, that CPU when
 * it wakes. Only serial phases and serial programs have it, and only while all CPUs are busy. */

/** The params and the options of a policy with this boost. */
struct asym_boost_params {
    int sp_boost;
};
extern const struct asym_option asym_boost_options[];

/** Boost the light threads on fast CPUs, which the policy has placed. */
void asym_boost_light(const struct asym_policy_input *in, struct asym_assignment *ret);

/*
 * A rule for balance.h that places threads in proportion to speed. No CPU is idle before any has two threads; the fastest
 * CPUs fill first. When all are busy, a thread moves if that brings the speeds per thread of two CPUs, the effective CPU
 * power of Roehrich 2007, nearer to each other. This is Dean's method of apportionment, whose divisor is the harmonic mean
 * of n and n + 1.
 */

extern const struct asym_balance_rule asym_proportion_rule;

/** Returns the sum of the speeds of cpus. */
double asym_proportion_total(const struct asym_machine *m, const struct asym_mask *cpus);

/** Sets the reason of thread t. n threads share CPUs of that total speed. */
void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total);

#endif
