/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/arena.h"

#include <string.h>

void *asym_arena_take_raw(struct asym_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4) {
        a->wanted = SIZE_MAX / 4;
        return NULL;
    }
    bytes = (bytes + 15) & ~(size_t)15;
    a->wanted = a->wanted < SIZE_MAX / 4 ? a->wanted + bytes : a->wanted;
    if (bytes > a->size - a->used)
        return NULL;
    a->used += bytes;
    return a->base + a->used - bytes;
}

void *asym_arena_take(struct asym_arena *a, size_t n, size_t size)
{
    void *p = asym_arena_take_raw(a, n, size);
    return p ? memset(p, 0, n * size) : NULL;
}
