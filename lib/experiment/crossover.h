/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A crossover trial: blocks of time with steering and without it, in pairs of random order. What drifts slowly is the same in both
 * blocks of a pair; what changes within a pair counts for either block with the same chance. No I/O, no clock.
 */
#ifndef ASYM_EXPERIMENT_CROSSOVER_H
#define ASYM_EXPERIMENT_CROSSOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

enum { ASYM_CROSSOVER_PAIRS_MAX = 1024 };

/** Times in microseconds. */
struct asym_crossover {
    asym_usec block; /**< of one block: above drop */
    asym_usec drop;  /**< of the beginning of each block, which does not count: threads and caches move then */
    size_t pairs;
    uint64_t seed; /**< of the order in each pair */
};

struct asym_crossover_moment {
    size_t block; /**< from 0; 2 * pairs: the trial is over */
    bool steered;
    bool counts; /**< past the dropped beginning */
};

/** Returns what is due at a time since the beginning. */
struct asym_crossover_moment asym_crossover_at(const struct asym_crossover *c, asym_usec time);

/** A measure of one program over the blocks: more is better. All zero at first. */
struct asym_crossover_series {
    size_t n;                                   /**< complete pairs */
    double log_ratio[ASYM_CROSSOVER_PAIRS_MAX]; /**< of each: ln(steered / not steered) */
    double first;                               /**< the rate of the first block of the pair under way */
};

/** Add the rate of a block. A pair with a rate of 0 or an unknown one (NAN) in either block does not count. */
void asym_crossover_add(struct asym_crossover_series *s, const struct asym_crossover_moment *block, double rate);

/** Shares: 0.05 is 5 % more with steering. */
struct asym_crossover_result {
    size_t pairs;
    double gain;            /**< exp of the mean logarithm; NAN without a pair */
    double low, high;       /**< its 95 % interval, Student's t; NAN below two pairs */
    double for_one_percent; /**< about as many pairs would give an interval of 1 % to each side; NAN below two pairs */
};

struct asym_crossover_result asym_crossover_result(const struct asym_crossover_series *s);

/** Returns 1 if the interval is above 0, -1 if it is below 0, else 0: nothing is shown. */
int asym_crossover_verdict(const struct asym_crossover_result *r);

#endif
