/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Memory that is used again and again. */
#ifndef ASYM_BASE_ARENA_H
#define ASYM_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Working memory of fixed size. asym_arena_take hands it out front to back; the owner frees all of it at once. */
struct asym_arena {
    unsigned char *base; /* borrowed */
    size_t size, used;
    size_t wanted; /* bytes that all calls so far need, refused ones included */
};

/** Returns n items of size bytes, zeroed and aligned for any type; NULL if the arena is too small. n = 0: a valid address. */
void *asym_arena_take(struct asym_arena *a, size_t n, size_t size);

/** Returns whether a call was refused. So a policy takes all that it needs, and asks once. */
static inline bool asym_arena_is_short(const struct asym_arena *a)
{
    return a->wanted > a->size;
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
