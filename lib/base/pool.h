/* SPDX-License-Identifier: GPL-2.0-or-later */
/** An array that keeps its memory from one use to the next, and grows when a use needs more. A pool of zeros is empty. */
#ifndef ASYM_BASE_POOL_H
#define ASYM_BASE_POOL_H

#include <stddef.h>

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
