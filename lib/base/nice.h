/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Nice values: their weights in the fair scheduler, and what a boost leaves. */
#ifndef ASYM_BASE_NICE_H
#define ASYM_BASE_NICE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * asymd lowered the nice value of a thread from original to set. Returns true if the value found is a result of that boost. The
 * kernel lets every thread raise its nice value: from set the thread can reach all values up to original, and from original
 * none of them. All three are -20 to 19. Returns false if set is not below original.
 */
static inline bool asym_nice_owes_boost(int8_t found, int8_t set, int8_t original)
{
    return set <= found && found < original;
}

enum { ASYM_NICE_LEAST = -20, ASYM_NICE_MOST = 19, ASYM_NICE_LEVELS = ASYM_NICE_MOST - ASYM_NICE_LEAST + 1 };

/** Returns the index of a nice value in the weights: 0 for the least nice value, which has the largest weight. Clamps nice. */
static inline uint32_t asym_nice_level(int nice)
{
    return (uint32_t)((nice < ASYM_NICE_LEAST  ? ASYM_NICE_LEAST
                       : nice > ASYM_NICE_MOST ? ASYM_NICE_MOST
                                               : nice) -
                      ASYM_NICE_LEAST);
}

/**
 * Returns the kernel's sched_prio_to_weight (kernel/sched/core.c): 1024 at nice 0, a factor of about 1.25 for each step. The
 * fair scheduler shares a CPU among threads in proportion to it. Clamps nice.
 */
static inline uint32_t asym_nice_weight(int nice)
{
    static const uint32_t weights[ASYM_NICE_LEVELS] = {
        88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, /* -20 .. -11 */
        9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,  /* -10 .. -1 */
        1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,   /* 0 .. 9 */
        110,   87,    70,    56,    45,    36,    29,    23,    18,    15,    /* 10 .. 19 */
    };
    return weights[asym_nice_level(nice)];
}

#endif
