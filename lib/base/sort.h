/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A stable sort that does not allocate, and a binary search. glibc's qsort gives neither of the first two: it allocates its buffer
 * with malloc above 1 KiB, and is unstable if that fails.
 */
#ifndef ASYM_BASE_SORT_H
#define ASYM_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * Sort the n numbers in index. compare(a, b, ctx) returns less than 0 if a sorts before b. scratch has room for n numbers.
 * This is a merge sort: O(n log n), and equal numbers keep their order.
 */
void asym_sort_index(uint32_t *index, size_t n, uint32_t *scratch,
                     int (*compare)(uint32_t a, uint32_t b, const void *ctx), const void *ctx);

/**
 * Move the k numbers that sort first to the front of the n numbers in index. Neither part is sorted. If several compare equal,
 * any of them can be among the k. The cost is O(n log k).
 */
void asym_sort_least(uint32_t *index, size_t n, size_t k, int (*compare)(uint32_t a, uint32_t b, const void *ctx),
                     const void *ctx);

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
