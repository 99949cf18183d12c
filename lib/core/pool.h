/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A growing array that keeps its memory from step to step. All zero: empty. */
#ifndef ASYM_CORE_POOL_H
#define ASYM_CORE_POOL_H

#include <stddef.h>

struct asym_pool {
    void *items;
    size_t capacity; /* items */
};

/** Room for n items of size; what was there is not kept. NULL: no memory. */
void *asym_pool_reserve(struct asym_pool *pool, size_t n, size_t size);

/** Room for exactly capacity items, unless there is more; what was there is kept. NULL: no memory, unchanged. */
void *asym_pool_grow(struct asym_pool *pool, size_t capacity, size_t size);

void asym_pool_done(struct asym_pool *pool);

#endif
