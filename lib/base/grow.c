/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* The first n_kept items stay. */
static void *enlarge(struct asym_pool *pool, size_t capacity, size_t size, size_t n_kept)
{
    size_t bytes;
    void *items = __builtin_mul_overflow(capacity, size, &bytes) ? NULL : malloc(bytes);
    if (!items)
        return NULL;
    if (n_kept > 0)
        memcpy(items, pool->items, n_kept * size);
    free(pool->items);
    *pool = (struct asym_pool){items, capacity};
    return items;
}

void *asym_pool_reserve(struct asym_pool *pool, size_t n, size_t size)
{
    if (n < pool->capacity || (n == pool->capacity && n > 0))
        return pool->items;
    return enlarge(pool, ASYM_MAX(n + 1, pool->capacity + pool->capacity / 2), size, 0);
}

void *asym_pool_grow(struct asym_pool *pool, size_t capacity, size_t size)
{
    return capacity <= pool->capacity ? pool->items : enlarge(pool, capacity, size, pool->capacity);
}

void asym_pool_done(struct asym_pool *pool)
{
    free(pool->items);
    *pool = (struct asym_pool){0};
}
