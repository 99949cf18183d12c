/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A stable sort that allocates nothing. glibc's qsort is neither: it takes its buffer from malloc above 1 KiB, and is
 * unstable when that fails.
 */
#ifndef ASYM_BASE_SORT_H
#define ASYM_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/**
 * Sort the n numbers in index by less-than-zero-is-first compare(a, b, ctx); scratch holds n numbers too.
 * Merge sort: O(n log n), equal ones keep their order.
 */
void asym_sort_index(uint32_t *index, size_t n, uint32_t *scratch,
                     int (*compare)(uint32_t a, uint32_t b, const void *ctx), const void *ctx);

/**
 * Bring the k numbers that come first to the front of the n in index, both parts in no order. Which they are is certain
 * where no two compare equal.
 * O(n log k)
 */
void asym_sort_least(uint32_t *index, size_t n, size_t k, int (*compare)(uint32_t a, uint32_t b, const void *ctx),
                     const void *ctx);

#endif
