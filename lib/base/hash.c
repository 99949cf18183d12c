/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"

#define SLOTS_LEAST 16

/* The loop has four independent chains, because dependent multiplications would take as long as all the rest. */
uint32_t asym_hash_of_mask(const struct asym_mask *m)
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
    return asym_hash_of_u64(a + b * 3 + c * 5 + d * 7);
}

static struct asym_hash_slot *slot_of(const struct asym_hash *h, uint32_t hash, uint32_t item)
{
    size_t i = hash & (h->n_slots - 1);
    while (h->slots[i].item != item)
        i = (i + 1) & (h->n_slots - 1);
    return &h->slots[i];
}

size_t asym_hash_slots_for(size_t n)
{
    size_t n_slots = SLOTS_LEAST;
    while (n_slots < 2 * n)
        n_slots *= 2;
    return n_slots;
}

int asym_hash_reserve(struct asym_hash *h, size_t n)
{
    if (2 * (h->n + n) <= h->n_slots)
        return 0;
    if (h->n + n >= UINT32_MAX)
        return -ENOMEM;
    struct asym_hash larger = {.n_slots = asym_hash_slots_for(h->n + n)};
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < h->n_slots; i++)
        if (h->slots[i].item != 0)
            asym_hash_add(&larger, h->slots[i].hash, h->slots[i].item - 1);
    free(h->slots);
    *h = larger;
    return 0;
}

void asym_hash_done(struct asym_hash *h)
{
    free(h->slots);
    *h = (struct asym_hash){0};
}

void asym_hash_init_in(struct asym_hash *h, struct asym_hash_slot *slots, size_t n_slots)
{
    *h = (struct asym_hash){.slots = slots, .n_slots = n_slots};
    asym_hash_clear(h);
}

void asym_hash_add(struct asym_hash *h, uint32_t hash, size_t item)
{
    *slot_of(h, hash, 0) = (struct asym_hash_slot){hash, (uint32_t)item + 1};
    h->n++;
}

/* A search ends at a free slot. So an item behind the gap moves into it if its search would otherwise end there. */
void asym_hash_remove(struct asym_hash *h, uint32_t hash, size_t item)
{
    const size_t last = h->n_slots - 1;
    size_t gap = (size_t)(slot_of(h, hash, (uint32_t)item + 1) - h->slots);
    for (size_t i = (gap + 1) & last; h->slots[i].item != 0; i = (i + 1) & last) {
        if (((i - h->slots[i].hash) & last) < ((i - gap) & last))
            continue;
        h->slots[gap] = h->slots[i];
        gap = i;
    }
    h->slots[gap] = (struct asym_hash_slot){0};
    h->n--;
}

void asym_hash_renumber(struct asym_hash *h, uint32_t hash, size_t from, size_t to)
{
    slot_of(h, hash, (uint32_t)from + 1)->item = (uint32_t)to + 1;
}

void asym_hash_clear(struct asym_hash *h)
{
    if (h->n_slots > 0)
        memset(h->slots, 0, h->n_slots * sizeof *h->slots);
    h->n = 0;
}
