/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Loops that tests repeat for confidence. ./dev test makes few rounds, and ./dev nightly (ASYM_NIGHTLY is set) all of them. */
#ifndef ASYM_TESTS_SUPPORT_ROUNDS_H
#define ASYM_TESTS_SUPPORT_ROUNDS_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool asym_rounds_are_all(void)
{
    return getenv("ASYM_NIGHTLY") != NULL;
}

/** Returns how many of so many rounds to make: all, or a fifth. */
static inline unsigned asym_rounds(unsigned all)
{
    return asym_rounds_are_all() ? all : (all + 4) / 5;
}

/**
 * Returns the distance from one seed to the next for a test whose rules the optimised build checks on every seed. Under sanitizers
 * it looks for faults of memory, and 7 has no divisor in common with the periods of the generated inputs (3, 4, 8, 10, 40, 50).
 */
static inline unsigned asym_rounds_stride(void)
{
#ifdef __SANITIZE_ADDRESS__
    return asym_rounds_are_all() ? 1 : 7;
#else
    return 1;
#endif
}

#endif
