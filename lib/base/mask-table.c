/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/mask-table.h"

#include <errno.h>

#include "base/macro.h"
#include "base/mask.h"

#define LIMIT_MIN 1024

/* Masks per chunk. Threads in turns soon have hundreds, and a step that allocates is slow. */
enum { CHUNK = 256 };

enum state { FREE, IN_USE, MARKED };

static struct asym_mask *mask_of(const struct asym_mask_table *s, uint32_t id)
{
    const struct asym_pool *chunks = s->chunks.items;
    return (struct asym_mask *)chunks[(id - 1) / CHUNK].items + (id - 1) % CHUNK;
}

static uint8_t *state_of(const struct asym_mask_table *s, uint32_t id)
{
    return (uint8_t *)s->states.items + id - 1;
}

void asym_mask_table_done(struct asym_mask_table *s)
{
    struct asym_pool *chunks = s->chunks.items;
    for (size_t i = 0; i < s->n_chunks; i++)
        asym_pool_done(&chunks[i]);
    asym_pool_done(&s->chunks);
    asym_pool_done(&s->states);
    asym_hash_done(&s->index);
    *s = (struct asym_mask_table){0};
}

const struct asym_mask *asym_mask_table_at(const struct asym_mask_table *s, uint32_t id)
{
    static const struct asym_mask empty;
    return id == ASYM_MASK_NONE ? &empty : mask_of(s, id);
}

static bool add_chunk(struct asym_mask_table *s)
{
    const size_t n = s->n_chunks, larger = 2 * n + 4;
    struct asym_pool chunk = {0};
    if (n == s->chunks.capacity && !asym_pool_grow(&s->chunks, larger, sizeof chunk))
        return false;
    if (n * CHUNK == s->states.capacity && !asym_pool_grow(&s->states, larger * CHUNK, 1))
        return false;
    if (asym_hash_reserve(&s->index, (n + 1) * CHUNK - s->index.n) < 0 ||
        !asym_pool_grow(&chunk, CHUNK, sizeof(struct asym_mask)))
        return false;
    ((struct asym_pool *)s->chunks.items)[n] = chunk;
    s->n_chunks++;
    return true;
}

int asym_mask_table_reserve(struct asym_mask_table *s, size_t n)
{
    while (s->n_chunks * CHUNK < s->index.n + n)
        if (!add_chunk(s))
            return -ENOMEM;
    return 0;
}

static uint32_t add_mask(struct asym_mask_table *s, uint32_t hash, const struct asym_mask *m)
{
    uint32_t id = s->free;
    if (asym_mask_table_reserve(s, 1) < 0) {
        s->failed = true;
        return ASYM_MASK_NONE;
    }
    if (id != 0)
        s->free = (uint32_t)mask_of(s, id)->w[0];
    else
        id = ++s->n;
    *mask_of(s, id) = *m;
    *state_of(s, id) = IN_USE;
    asym_hash_add(&s->index, hash, id);
    return id;
}

uint32_t asym_mask_table_id(struct asym_mask_table *s, const struct asym_mask *m)
{
    const uint32_t hash = asym_hash_of_mask(m);
    ASYM_HASH_FOREACH (id, &s->index, hash)
        if (asym_mask_equal(mask_of(s, (uint32_t)id), m))
            return (uint32_t)id;
    return asym_mask_empty(m) ? ASYM_MASK_NONE : add_mask(s, hash, m);
}

const struct asym_mask *asym_mask_table_get(struct asym_mask_table *s, const struct asym_mask *m)
{
    const uint32_t id = asym_mask_table_id(s, m);
    return id == ASYM_MASK_NONE && !asym_mask_empty(m) ? NULL : asym_mask_table_at(s, id);
}

void asym_mask_table_drop(struct asym_mask_table *s, uint32_t id)
{
    struct asym_mask *m = mask_of(s, id);
    asym_hash_remove(&s->index, asym_hash_of_mask(m), id);
    *state_of(s, id) = FREE;
    m->w[0] = s->free;
    s->free = id;
}

bool asym_mask_table_is_full(const struct asym_mask_table *s)
{
    return s->index.n > ASYM_MAX((size_t)LIMIT_MIN, s->limit) || s->failed;
}

void asym_mask_table_mark(struct asym_mask_table *s, uint32_t id)
{
    if (id != ASYM_MASK_NONE)
        *state_of(s, id) = MARKED;
}

void asym_mask_table_sweep(struct asym_mask_table *s)
{
    s->failed = false;
    for (uint32_t id = 1; id <= s->n; id++) {
        if (*state_of(s, id) == IN_USE)
            asym_mask_table_drop(s, id);
        else if (*state_of(s, id) == MARKED)
            *state_of(s, id) = IN_USE;
    }
    s->limit = 2 * (uint32_t)s->index.n;
}
