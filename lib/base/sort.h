/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A stable sort that does not allocate. glibc's qsort gives neither: it allocates its buffer with malloc above 1 KiB, and is
 * unstable if that fails.
 */
#ifndef ASYM_BASE_SORT_H
#define ASYM_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

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

#endif
