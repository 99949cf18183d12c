/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Pulls between neighbours, two CPUs next to each other in the order of speed (Roehrich 2007, 3.3.2). Among two CPUs whose speeds
 * have the ratio y the faster one may have floor(y) times as many threads as the slower one, and at least one. It pulls the
 * thread of the highest priority that fits; the slower one pulls the thread of the lowest priority that is too many. A thread
 * of the slower CPU that ranks above one of the faster CPU changes places with it.
 */
#ifndef ASYM_POLICY_PLACEMENT_NEIGHBOURS_H
#define ASYM_POLICY_PLACEMENT_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/placement/spread.h"

/**
 * Places all threads: each stays on its preferred CPU; one without goes to the CPU that leaves it the most speed. Then, if
 * pull is set, each pair of neighbours makes at most one pull or exchange, the fastest pair first. No thread takes part twice.
 * order: all threads, the highest priority first.
 * Returns 0, or -ENOBUFS if the arena is too small. Cost: O(n + CPUs), and O(CPUs) for each thread without a preferred CPU.
 */
int asym_neighbours_place(struct asym_spread *sp, const uint32_t *order, bool pull);

/** The most that a ratio can be. No real CPUs differ so much; times a number of threads and of CPUs it fits in 64 bits. */
#define ASYM_NEIGHBOURS_RATIO_MAX (1U << 20)

/**
 * Returns floor(faster / slower), two speeds above 0, but at most ASYM_NEIGHBOURS_RATIO_MAX: a machine of a record or of a scenario
 * may have any speeds. A quotient that is below a whole number only because a double is not exact counts as that number.
 */
static inline uint64_t asym_neighbours_ratio(double faster, double slower)
{
    const double ratio = faster / slower + 1e-6;
    return ratio < ASYM_NEIGHBOURS_RATIO_MAX ? (uint64_t)ratio : ASYM_NEIGHBOURS_RATIO_MAX;
}

#endif
