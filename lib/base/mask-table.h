/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A table that stores each mask once and gives it a number. A plan for 10,000 threads has only some dozens of different masks.
 * A mask has 128 bytes: with a copy in each thread, a step would read mostly masks. Equal masks have equal numbers and
 * addresses.
 *
 * Numbers and addresses stay valid until asym_mask_table_drop, asym_mask_table_sweep or asym_mask_table_done.
 */
#ifndef ASYM_BASE_MASK_TABLE_H
#define ASYM_BASE_MASK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

#include "base/hash.h"
#include "base/grow.h"

/** The number of the empty mask. It also means "no mask". */
#define ASYM_MASK_NONE 0

/** All zero: empty. */
struct asym_mask_table {
    struct asym_pool chunks; /* addresses of chunks of masks, so that masks do not move when the table grows */
    struct asym_pool states; /* one byte for each number */
    struct asym_hash index;  /* the numbers in use, by content; its n is the number of masks */
    size_t n_chunks;
    uint32_t n;     /* numbers assigned so far, free ones included */
    uint32_t free;  /* first free number, whose mask holds the next one; 0: none */
    uint32_t limit; /* sweep if more masks than this are in use; 0: not swept yet */
    bool failed;    /* memory ran out since the last sweep */
};

/** Free the memory. The table is then empty and can be used again. */
void asym_mask_table_done(struct asym_mask_table *s);

/** Make room for n more masks, so that the next n calls of asym_mask_table_id cannot fail. Returns 0; -ENOMEM. */
int asym_mask_table_reserve(struct asym_mask_table *s, size_t n);

/** Returns the number of this mask. If memory runs out, returns ASYM_MASK_NONE and sets failed. */
uint32_t asym_mask_table_id(struct asym_mask_table *s, const struct asym_mask *m);

const struct asym_mask *asym_mask_table_at(const struct asym_mask_table *s, uint32_t id);

/** Returns the table's copy of this mask. If memory runs out, returns NULL and sets failed. */
const struct asym_mask *asym_mask_table_get(struct asym_mask_table *s, const struct asym_mask *m);

/** Free this number, which is in use. */
void asym_mask_table_drop(struct asym_mask_table *s, uint32_t id);

/** Returns true if a sweep is worth its cost. The caller then marks every number that it still uses, and sweeps the rest. */
bool asym_mask_table_is_full(const struct asym_mask_table *s);
void asym_mask_table_mark(struct asym_mask_table *s, uint32_t id);
void asym_mask_table_sweep(struct asym_mask_table *s);

#endif
