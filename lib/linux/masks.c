/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/masks.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mask.h"

static size_t hash_of(const struct asym_mask *m)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < ASYM_MASK_WORDS; i++)
        h = (h ^ m->w[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h ^ h >> 32);
}

/* Where the mask is, or where it belongs. There is always a free slot. */
static struct asym_mask **slot_of(struct asym_mask **slots, size_t n_slots, const struct asym_mask *m)
{
    size_t i = hash_of(m) & (n_slots - 1);
    while (slots[i] && !asym_mask_equal(slots[i], m))
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

static int grow(struct asym_mask_pool *pool)
{
    size_t n_slots = pool->n_slots ? pool->n_slots * 2 : 16;
    struct asym_mask **slots = calloc(n_slots, sizeof(struct asym_mask *));
    if (!slots)
        return -1;
    for (size_t i = 0; i < pool->n_slots; i++)
        if (pool->slots[i])
            *slot_of(slots, n_slots, pool->slots[i]) = pool->slots[i];
    free(pool->slots);
    pool->slots = slots;
    pool->n_slots = n_slots;
    return 0;
}

const struct asym_mask *asym_mask_pool_get(struct asym_mask_pool *pool, const struct asym_mask *m)
{
    if (2 * (pool->n + 1) > pool->n_slots && grow(pool) < 0)
        return NULL;
    struct asym_mask **slot = slot_of(pool->slots, pool->n_slots, m);
    if (*slot)
        return *slot;
    *slot = malloc(sizeof **slot);
    if (!*slot)
        return NULL;
    **slot = *m;
    pool->n++;
    return *slot;
}

void asym_mask_pool_done(struct asym_mask_pool *pool)
{
    for (size_t i = 0; i < pool->n_slots; i++)
        free(pool->slots[i]);
    free(pool->slots);
    *pool = (struct asym_mask_pool){0};
}
