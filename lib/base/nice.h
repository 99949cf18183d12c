/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Nice values that a boost has made possible. */
#ifndef ASYM_BASE_NICE_H
#define ASYM_BASE_NICE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * A thread of nice original was given the lower value set: can it have the value found by that alone? The kernel lets every
 * thread raise its nice value. From set the thread reaches all values up to the original, and from the original none of them.
 * All three: -20 to 19. False where set is not below the original.
 */
static inline bool asym_nice_owes_boost(int8_t found, int8_t set, int8_t original)
{
    return set <= found && found < original;
}

#endif
