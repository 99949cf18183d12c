/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/sort.h"

typedef int compare_fn(uint32_t a, uint32_t b, const void *ctx);

/* Insertion sort handles runs of this length, because it is faster than a merge on a few items. */
#define RUN 16

static void sort_run(uint32_t *v, size_t n, compare_fn *compare, const void *ctx)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t x = v[i];
        size_t j = i;
        for (; j > 0 && compare(x, v[j - 1], ctx) < 0; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

/* Merge from[lo, mid) and from[mid, hi) into to[lo, hi). On a tie the left item goes first. */
static void merge(const uint32_t *from, uint32_t *to, size_t lo, size_t mid, size_t hi, compare_fn *compare,
                  const void *ctx)
{
    size_t a = lo, b = mid;
    for (size_t out = lo; out < hi; out++) {
        if (b >= hi || (a < mid && compare(from[b], from[a], ctx) >= 0))
            to[out] = from[a++];
        else
            to[out] = from[b++];
    }
}

void asym_sort_index(uint32_t *index, size_t n, uint32_t *scratch, compare_fn *compare, const void *ctx)
{
    for (size_t lo = 0; lo < n; lo += RUN)
        sort_run(index + lo, n - lo < RUN ? n - lo : RUN, compare, ctx);
    uint32_t *from = index, *to = scratch;
    for (size_t width = RUN; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = n - lo < width ? n : lo + width;
            size_t hi = n - lo < 2 * width ? n : lo + 2 * width;
            merge(from, to, lo, mid, hi, compare, ctx);
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != index)
        memcpy(index, from, n * sizeof *index);
}

/* Restore a heap whose top is the item that sorts last. Only v[i] may be out of place. */
static void sink(uint32_t *v, size_t i, size_t n, compare_fn *compare, const void *ctx)
{
    const uint32_t x = v[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && compare(v[child + 1], v[child], ctx) > 0)
            child++;
        if (compare(v[child], x, ctx) <= 0)
            break;
        v[i] = v[child];
    }
    v[i] = x;
}

void asym_sort_least(uint32_t *index, size_t n, size_t k, compare_fn *compare, const void *ctx)
{
    if (k == 0 || k >= n)
        return;
    for (size_t i = k / 2; i-- > 0;)
        sink(index, i, k, compare, ctx);
    for (size_t i = k; i < n; i++) {
        const uint32_t x = index[i];
        if (compare(x, index[0], ctx) >= 0)
            continue;
        index[i] = index[0];
        index[0] = x;
        sink(index, 0, k, compare, ctx);
    }
}
