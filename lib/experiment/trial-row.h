/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A program in a trial, or the machine: its instructions where they are counted, else its work: time on CPUs times their
 * speed. Both are kept, since a trial knows only at its end whether counters saw enough. No I/O, no clock.
 */
#ifndef ASYM_EXPERIMENT_TRIAL_ROW_H
#define ASYM_EXPERIMENT_TRIAL_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/signal.h>
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

enum asym_trial_measure { ASYM_TRIAL_WORK, ASYM_TRIAL_INSTRUCTIONS };

/** Sums over an interval or a block. Times in seconds on CPUs. */
struct asym_trial_sums {
    double busy;
    double work;         /**< time times the speed of the CPU */
    double counted;      /**< the part of busy whose instructions are known */
    double instructions; /**< in that part */
};

/** All zero at first, but for the name. */
struct asym_trial_row {
    char name[64];
    struct asym_trial_sums block, all; /**< of the block under way; of all that counts */
    struct asym_crossover_series by_work, by_instructions;
};

/** Returns what a thread did. sample: its counts of the same interval; NULL: none. speed: of its CPU; 0: not known. */
struct asym_trial_sums asym_trial_thread(double busy, double speed, const struct asym_sample *sample);

void asym_trial_row_add(struct asym_trial_row *row, const struct asym_trial_sums *thread);

/**
 * End a block. seconds: that it counted; 0: the block is not valid. Counters miss the interval in which a thread appears, so
 * instructions are scaled from counted to busy.
 */
void asym_trial_row_end(struct asym_trial_row *row, const struct asym_crossover_moment *block, double seconds);

/** Returns INSTRUCTIONS if at least half of the time on CPUs was counted, in the whole trial and in each block; else WORK. */
enum asym_trial_measure asym_trial_row_measure(const struct asym_trial_row *row);

/** Returns the comparison by that measure. */
struct asym_crossover_result asym_trial_row_result(const struct asym_trial_row *row);

#endif
