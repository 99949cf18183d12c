/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Working memory of fixed size that is given out front to back and taken back all at once. */
#ifndef ASYM_BASE_ARENA_H
#define ASYM_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct asym_arena {
    unsigned char *base; /* borrowed */
    size_t size, used;
    size_t wanted; /* what would have sufficed so far, also after a refusal */
};

/** n items of size bytes, zeroed, aligned for any type; NULL when the arena is too small. n = 0: a valid address. */
void *asym_arena_take(struct asym_arena *a, size_t n, size_t size);

#endif
