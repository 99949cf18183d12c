/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A hash table of numbers. It finds the items of the caller's array that have a given hash. The caller has the keys and
 * compares them. The table uses open addressing with linear probing, and is at most half full. A slot keeps the hash of its
 * item: a search reads only items with the wanted hash, and the table grows and removes items without their keys. All zero:
 * empty.
 */
#ifndef ASYM_BASE_HASH_H
#define ASYM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

struct asym_hash_slot {
    uint32_t hash;
    uint32_t item; /* + 1; 0: free */
};

struct asym_hash {
    struct asym_hash_slot *slots;
    size_t n, n_slots; /* n_slots: 0 or a power of two */
};

#define ASYM_HASH_NONE SIZE_MAX

/** The kernel assigns thread and process ids in sequence. The product spreads them over the low bits. */
static inline uint32_t asym_hash_of_id(int32_t id)
{
    return (uint32_t)id * UINT32_C(2654435769);
}

static inline uint32_t asym_hash_of_u64(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

uint32_t asym_hash_of_mask(const struct asym_mask *m);

/** Returns the next item with this hash, or ASYM_HASH_NONE. *probe is the position of the search; set it to 0 first. */
static inline size_t asym_hash_next(const struct asym_hash *h, uint32_t hash, size_t *probe)
{
    while (h->n_slots > 0) {
        const struct asym_hash_slot *slot = &h->slots[(hash + (*probe)++) & (h->n_slots - 1)];
        if (slot->item == 0)
            break;
        if (slot->hash == hash)
            return slot->item - 1;
    }
    return ASYM_HASH_NONE;
}

/** Iterate over the items with this hash. The table must not change during the loop. */
#define ASYM_HASH_FOREACH(i, table, hash)                                                                              \
    for (size_t probe_##i = 0, i; (i = asym_hash_next((table), (hash), &probe_##i)) != ASYM_HASH_NONE;)

/** Make room for n more items, so that the next n calls of asym_hash_add cannot fail. Returns 0; -ENOMEM (table unchanged). */
int asym_hash_reserve(struct asym_hash *h, size_t n);
void asym_hash_done(struct asym_hash *h);

/** Returns the number of slots that a table of n items needs. */
size_t asym_hash_slots_for(size_t n);

/**
 * Set up an empty table in the caller's memory, of asym_hash_slots_for() slots. Such a table needs neither asym_hash_reserve
 * nor asym_hash_done.
 */
void asym_hash_init_in(struct asym_hash *h, struct asym_hash_slot *slots, size_t n_slots);

/** Add an item, below UINT32_MAX. The caller has made room for it. */
void asym_hash_add(struct asym_hash *h, uint32_t hash, size_t item);
/** Remove an item that is in the table with this hash. */
void asym_hash_remove(struct asym_hash *h, uint32_t hash, size_t item);
/** Change the number of an item that is in the table with this hash. */
void asym_hash_renumber(struct asym_hash *h, uint32_t hash, size_t from, size_t to);
/** Remove all items and keep the memory. */
void asym_hash_clear(struct asym_hash *h);

#endif
