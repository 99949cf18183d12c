/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The arithmetic of proportional shares on cores with several hardware threads (Snavely 2002, 3 and 4.1). Numbers in,
 * numbers out; who is where is lib/policy/smt-place.h's affair.
 *
 * The system of the source is one core: shares are of a core, among the threads on it.
 */
#ifndef ASYM_POLICY_SMT_H
#define ASYM_POLICY_SMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

enum asym_smt_weights {
    ASYM_SMT_NICE,   /**< what the kernel gives a nice value */
    ASYM_SMT_SOURCE, /**< 19 - p, with p = nice clamped to 0..19 (Snavely 2002, 3) */
};

double asym_smt_weight(enum asym_smt_weights weights, int nice);

/** FRAC: what part of its core a thread is entitled to. All weights 0: equal parts of n. */
double asym_smt_frac(double weight, double sum, size_t n);

/**
 * COFRAC and COFRAC' in one: the part of the time that a thread is content to run beside others, where x is the part of
 * its speed alone that it then has. Naive takes x = 1/P (equation 1). The source prints MAX and 1/X for COFRAC'; its text
 * wants more coscheduling for a larger X and names equation 1 as the case X = 1/P, which this gives and that does not.
 */
double asym_smt_cofrac(double frac, double x);

/**
 * Lay n windows end to end round a period of length 1, beginning at shift (McNaughton 1959): never are more than limit of
 * them open at once, and none meets itself. What does not fit is shortened, all alike. length[] is rewritten.
 * Returns the factor it was shortened by, at most 1.
 */
double asym_smt_lay(double *length, size_t n, unsigned limit, double shift, double *ret_begin);

/** How much is left of a window at a point of the period, the period's end ending it too; 0: it is not open. */
double asym_smt_left(double begin, double length, double at);

/** Weighted speedup (4.1): the sum of IPC achieved over IPC alone of those for which both are known (above 0). */
double asym_smt_speedup(const double *achieved, const double *alone, size_t n);

enum asym_smt_kind {
    ASYM_SMT_RUN,      /**< windows by share */
    ASYM_SMT_ALONE,    /**< a window for each thread, to measure it alone */
    ASYM_SMT_TOGETHER, /**< no windows: they are measured side by side */
};

/** How time is divided. 0: no such part. */
struct asym_smt_times {
    asym_usec rotation; /* windows come once in each */
    asym_usec sample;   /* half of it alone, half together */
    asym_usec symbios;  /* between two sample phases */
    unsigned pairings;  /* tried one after the other while together */
};

struct asym_smt_stage {
    enum asym_smt_kind kind;
    asym_usec from, until; /**< windows are laid once for this time */
    uint64_t cycle;        /**< number of the sample phase that this is or follows, from 1; 0: there are none */
    unsigned pairing;      /**< that is being tried; 0: as it was */
};

/** The stage that now is in, when the first began at `began`. */
struct asym_smt_stage asym_smt_stage_at(const struct asym_smt_times *times, asym_usec began, asym_usec now);

/** Where in the stage a time is: 0 .. 1. */
double asym_smt_at(const struct asym_smt_stage *stage, asym_usec now);

/**
 * Where the windows of a stage begin to be laid. Looks that keep step with the rotation would always or never hit a short
 * window: each stage begins elsewhere (golden section), so that over some of them every window gets the looks it should.
 */
double asym_smt_shift(const struct asym_smt_stage *stage);

#endif
