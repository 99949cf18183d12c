/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Working memory of fixed size. asym_arena_take hands it out front to back; the owner frees all of it at once. */
#ifndef ASYM_BASE_ARENA_H
#define ASYM_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct asym_arena {
    unsigned char *base; /* borrowed */
    size_t size, used;
    size_t wanted; /* bytes that all calls so far need, refused ones included */
};

/** Returns n items of size bytes, zeroed and aligned for any type; NULL if the arena is too small. n = 0: a valid address. */
void *asym_arena_take(struct asym_arena *a, size_t n, size_t size);

/** The same, not zeroed: for items that the caller writes before it reads them. */
void *asym_arena_take_raw(struct asym_arena *a, size_t n, size_t size);

/** Returns whether a call was refused. So a policy takes all that it needs, and asks once. */
static inline bool asym_arena_is_short(const struct asym_arena *a)
{
    return a->wanted > a->size;
}

#endif
