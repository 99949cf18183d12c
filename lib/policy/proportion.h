/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Threads in proportion to speed: a rule for balance.h. No CPU is idle before any has two threads, the fastest first; when
 * all are busy, threads move as long as that brings the CPUs' speeds per thread, the effective CPU power of Roehrich 2007,
 * nearer to each other: Dean's rule for seats, whose divisor is the harmonic mean of n and n + 1.
 */
#ifndef ASYM_POLICY_PROPORTION_H
#define ASYM_POLICY_PROPORTION_H

#include <stddef.h>

#include "policy/balance.h"

extern const struct asym_balance_rule asym_proportion_rule;

/** The speeds of cpus together. */
double asym_proportion_total(const struct asym_machine *m, const struct asym_mask *cpus);

/** Tell a thread why it is where it is; n: how many share CPUs of that total speed. */
void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total);

#endif
