/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The arithmetic of proportional shares on cores with several hardware threads (Snavely 2002, 3 and 4.1). It computes with
 * numbers only; lib/policy/smt/smt-place.h places the threads.
 *
 * The source has one core. Here the threads on each core share that core.
 */
#ifndef ASYM_POLICY_SMT_SHARES_H
#define ASYM_POLICY_SMT_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

enum asym_smt_weights {
    ASYM_SMT_NICE,   /**< the kernel's weight of the nice value */
    ASYM_SMT_SOURCE, /**< 19 - p, with p = nice clamped to 0..19 (Snavely 2002, 3) */
};

/** Returns the weight of a nice value, which is clamped to -20..19. */
double asym_smt_weight(enum asym_smt_weights weights, int nice);

/** Returns FRAC, the part of its core that a thread is entitled to; equal parts of n if all weights are 0. */
double asym_smt_frac(double weight, double sum, size_t n);

/**
 * Returns COFRAC, or COFRAC': the part of the time that a thread may run beside others and still get its share. x is the
 * part of its speed alone that it then has. Naive takes x = 1/P (equation 1). For COFRAC' the source prints MAX and 1/X.
 * Its text requires more coscheduling for a larger X, and names equation 1 as the case X = 1/P. This formula gives both;
 * the printed one does not.
 */
double asym_smt_cofrac(double frac, double x);

/**
 * Lays n windows end to end round a period of length 1, from shift on (McNaughton 1959). At most limit windows are open at
 * once, and no window overlaps itself. If they do not fit, all are shortened by one factor. Rewrites length[].
 * Returns the factor, at most 1.
 */
double asym_smt_lay(double *length, size_t n, unsigned limit, double shift, double *ret_begin);

/** Returns the rest of a window at a point of the period; the end of the period also ends it. 0 if it is not open. */
double asym_smt_left(double begin, double length, double at);

/** Returns the weighted speedup (4.1): the sum of IPC achieved / IPC alone over the threads with both known (above 0). */
double asym_smt_speedup(const double *achieved, const double *alone, size_t n);

enum asym_smt_kind {
    ASYM_SMT_RUN,      /**< windows by share */
    ASYM_SMT_ALONE,    /**< a window for each thread, to measure it alone */
    ASYM_SMT_TOGETHER, /**< no windows: threads are measured side by side */
};

/** The division of time into stages. A part of length 0 does not exist. */
struct asym_smt_times {
    asym_usec rotation; /* each window opens once in it */
    asym_usec sample;   /* length of the sample phase: half of it alone, half together */
    asym_usec symbios;  /* time between two sample phases */
    unsigned pairings;  /* number of pairings, tried one after the other while together */
};

struct asym_smt_stage {
    enum asym_smt_kind kind;
    asym_usec from, until; /**< windows are laid once for this time */
    uint64_t cycle;   /**< number of the sample phase that this is or follows, from 1; 0: there is no sample phase */
    unsigned pairing; /**< the pairing that is tried; 0: the current one */
};

/** Returns the stage at time now, where the first stage began at `began`. */
struct asym_smt_stage asym_smt_stage_at(const struct asym_smt_times *times, asym_usec began, asym_usec now);

/** Returns the position of a time in the stage: 0 .. 1. */
double asym_smt_at(const struct asym_smt_stage *stage, asym_usec now);

/**
 * Returns the point of the stage from which its windows are laid. Samples in step with the rotation would hit a short
 * window always or never. So each stage uses another point (golden section), and over several stages each window gets its
 * proportion of the samples.
 */
double asym_smt_shift(const struct asym_smt_stage *stage);

#endif
