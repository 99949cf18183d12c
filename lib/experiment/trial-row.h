/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A program in a trial, or the machine: its instructions where they are counted, else its work: time on CPUs times their
 * speed. Both are kept, since a trial knows only at its end whether counters saw enough. No I/O, no clock.
 */
#ifndef ASYM_EXPERIMENT_TRIAL_ROW_H
#define ASYM_EXPERIMENT_TRIAL_ROW_H

#include <stdbool.h>

#include <asym/signal.h>

#include "experiment/crossover.h"

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

/** Returns "instructions" or "work". A static string. */
const char *asym_trial_measure_name(enum asym_trial_measure measure);

#endif
