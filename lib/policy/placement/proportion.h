/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A rule for balance.h that places threads in proportion to speed. No CPU is idle before any has two threads; the fastest
 * CPUs fill first. When all are busy, a thread moves if that brings the speeds per thread of two CPUs, the effective CPU
 * power of Roehrich 2007, nearer to each other. This is Dean's method of apportionment, whose divisor is the harmonic mean
 * of n and n + 1.
 */
#ifndef ASYM_POLICY_PLACEMENT_PROPORTION_H
#define ASYM_POLICY_PLACEMENT_PROPORTION_H

#include <stddef.h>

#include "policy/placement/balance.h"

extern const struct asym_balance_rule asym_proportion_rule;

/** Returns the sum of the speeds of cpus. */
double asym_proportion_total(const struct asym_machine *m, const struct asym_mask *cpus);

/** Sets the reason of thread t. n threads share CPUs of that total speed. */
void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total);

#endif
