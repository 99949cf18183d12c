/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What a nice value weighs: the share of a CPU that the kernel's fair scheduler gives it beside others. */
#ifndef ASYM_POLICY_WEIGHT_H
#define ASYM_POLICY_WEIGHT_H

#include <stdint.h>

enum { ASYM_NICE_LEAST = -20, ASYM_NICE_MOST = 19, ASYM_NICE_LEVELS = ASYM_NICE_MOST - ASYM_NICE_LEAST + 1 };

/** 0 for the least nice value, the heaviest. Clamps nice. */
static inline uint32_t asym_nice_level(int nice)
{
    return (uint32_t)((nice < ASYM_NICE_LEAST  ? ASYM_NICE_LEAST
                       : nice > ASYM_NICE_MOST ? ASYM_NICE_MOST
                                               : nice) -
                      ASYM_NICE_LEAST);
}

/** 1024 at nice 0, a factor of about 1.25 for each step: sched_prio_to_weight of the kernel. Clamps nice. */
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
