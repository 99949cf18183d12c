/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/intern.h"

#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

#define LIMIT_MIN 1024

void asym_masks_init(struct asym_masks *s)
{
    *s = (struct asym_masks){.limit = LIMIT_MIN};
}

void asym_masks_done(struct asym_masks *s)
{
    asym_pool_done(&s->masks);
    asym_pool_done(&s->next);
    asym_pool_done(&s->marked);
    asym_pool_done(&s->buckets);
}

const struct asym_mask *asym_masks_at(const struct asym_masks *s, uint32_t id)
{
    static const struct asym_mask empty;
    return id == ASYM_MASK_NONE ? &empty : (const struct asym_mask *)s->masks.items + id;
}

/* Four at a time: multiplications that depend on each other would take as long as everything else. */
static uint32_t hash(const struct asym_mask *m)
{
    const uint64_t k = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i += 4) {
        a = (a ^ m->w[i]) * k;
        b = (b ^ m->w[i + 1]) * k;
        c = (c ^ m->w[i + 2]) * k;
        d = (d ^ m->w[i + 3]) * k;
        a ^= a >> 32;
        b ^= b >> 32;
        c ^= c >> 32;
        d ^= d >> 32;
    }
    a = (a + b * 3 + c * 5 + d * 7) * k;
    return (uint32_t)(a >> 32);
}

static uint32_t *bucket(const struct asym_masks *s, const struct asym_mask *m)
{
    return (uint32_t *)s->buckets.items + (hash(m) & (s->buckets.capacity - 1));
}

static void link_all(struct asym_masks *s)
{
    uint32_t *next = s->next.items;
    const uint8_t *marked = s->marked.items;
    memset(s->buckets.items, 0, s->buckets.capacity * sizeof(uint32_t));
    s->free = 0;
    s->n_live = 0;
    for (uint32_t id = 1; id < s->n; id++) {
        uint32_t *head = marked[id] ? bucket(s, asym_masks_at(s, id)) : &s->free;
        next[id] = *head;
        *head = id;
        s->n_live += marked[id];
    }
}

/* Outside of a sweep every number is marked that is not free. The buckets grow last: there is room for as many. */
static bool grow(struct asym_masks *s)
{
    const size_t capacity = ASYM_MAX((size_t)64, s->buckets.capacity * 2);
    if (!asym_pool_grow(&s->masks, capacity, sizeof(struct asym_mask)) ||
        !asym_pool_grow(&s->next, capacity, sizeof(uint32_t)) || !asym_pool_grow(&s->marked, capacity, 1) ||
        !asym_pool_grow(&s->buckets, capacity, sizeof(uint32_t)))
        return false;
    link_all(s);
    return true;
}

uint32_t asym_masks_id(struct asym_masks *s, const struct asym_mask *m)
{
    if (s->buckets.capacity > 0) {
        const uint32_t *next = s->next.items;
        for (uint32_t id = *bucket(s, m); id != 0; id = next[id])
            if (asym_mask_equal(asym_masks_at(s, id), m))
                return id;
    }
    if (asym_mask_empty(m))
        return ASYM_MASK_NONE;
    if (s->n == 0)
        s->n = 1;
    if (s->free == 0 && s->n >= s->buckets.capacity && !grow(s)) {
        s->failed = true;
        return ASYM_MASK_NONE;
    }
    uint32_t *next = s->next.items, id = s->free;
    if (id != 0)
        s->free = next[id];
    else
        id = s->n++;
    ((struct asym_mask *)s->masks.items)[id] = *m;
    ((uint8_t *)s->marked.items)[id] = 1;
    uint32_t *head = bucket(s, m);
    next[id] = *head;
    *head = id;
    s->n_live++;
    return id;
}

bool asym_masks_is_full(const struct asym_masks *s)
{
    return s->n_live > s->limit || s->failed;
}

void asym_masks_mark(struct asym_masks *s, uint32_t id)
{
    if (id != ASYM_MASK_NONE)
        ((uint8_t *)s->marked.items)[id] = 2;
}

void asym_masks_sweep(struct asym_masks *s)
{
    uint8_t *marked = s->marked.items;
    s->failed = false;
    if (s->buckets.capacity == 0)
        return;
    for (uint32_t id = 1; id < s->n; id++)
        marked[id] = marked[id] == 2;
    link_all(s);
    s->limit = ASYM_MAX((uint32_t)LIMIT_MIN, 2 * s->n_live);
}
