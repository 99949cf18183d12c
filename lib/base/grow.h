/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Arrays that malloc has made, or that are NULL. */
#ifndef ASYM_BASE_GROW_H
#define ASYM_BASE_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/** Makes room for n items in *array. *capacity doubles at least, from 4 on. Returns 0; -ENOMEM: nothing has changed. */
static inline int asym_reserve(void *array, size_t n, size_t *capacity, size_t size)
{
    void *items;
    if (n <= *capacity)
        return 0;
    const size_t doubled = ASYM_MAX(*capacity * 2, (size_t)4), larger = ASYM_MAX(doubled, n);
    memcpy(&items, array, sizeof items); /* *array has a type of its own */
    items = reallocarray(items, larger, size);
    if (!items)
        return -ENOMEM;
    memcpy(array, &items, sizeof items);
    *capacity = larger;
    return 0;
}

/** Makes room for one more item in *array, beyond n. Returns as asym_reserve. */
static inline int asym_grow(void *array, size_t n, size_t *capacity, size_t size)
{
    return asym_reserve(array, n + 1, capacity, size);
}

/** Copies n items into *array, which has room for *capacity, and grows it if need be. Returns 0; -ENOMEM: nothing has changed. */
static inline int asym_copy(void *array, size_t *capacity, const void *from, size_t n, size_t size)
{
    void *items;
    if (asym_reserve(array, n, capacity, size) < 0)
        return -ENOMEM;
    memcpy(&items, array, sizeof items);
    if (n > 0)
        memcpy(items, from, n * size);
    return 0;
}

/** An array that keeps its memory from one use to the next, and grows when a use needs more. A pool of zeros is empty. */
struct asym_pool {
    void *items;
    size_t capacity; /* number of items that the memory holds */
};

/** Returns memory for n items of size bytes. The old contents are lost. NULL: no memory. */
void *asym_pool_reserve(struct asym_pool *pool, size_t n, size_t size);

/**
 * Returns memory for exactly capacity items of size bytes, or for more if the pool has more already. The old contents stay.
 * NULL: no memory, and the pool is unchanged.
 */
void *asym_pool_grow(struct asym_pool *pool, size_t capacity, size_t size);

/** Frees the memory. */
void asym_pool_done(struct asym_pool *pool);

#endif
