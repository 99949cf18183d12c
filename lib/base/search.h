/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Binary search by a number, such as a thread or process id, that is a member of each item. */
#ifndef ASYM_BASE_SEARCH_H
#define ASYM_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Call this through ASYM_LOWER_BOUND. */
static inline size_t asym_lower_bound(const void *items, size_t n, size_t size, size_t offset, int32_t key)
{
    size_t low = 0;
    while (low < n) {
        const size_t middle = low + (n - low) / 2;
        int32_t number;
        memcpy(&number, (const unsigned char *)items + middle * size + offset, sizeof number);
        if (number < key)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/**
 * Returns the index of the first item whose int32_t member is not below key, or n if all are below. The n items are sorted by
 * that member, lowest first. items may be NULL if n is 0.
 */
#define ASYM_LOWER_BOUND(items, n, member, key)                                                                        \
    asym_lower_bound((items), (n), sizeof *(items), offsetof(__typeof__(*(items)), member), (key))

#endif
