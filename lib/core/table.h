/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Items of one size that begin with a struct asym_taskid, found by it in constant time and stored densely: item i is at
 * i < n, and a removal moves the last item into the gap. Addresses hold until the next insertion or removal.
 */
#ifndef ASYM_CORE_TABLE_H
#define ASYM_CORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

struct asym_table {
    size_t item_size;
    unsigned char *items;
    uint32_t *next;       /* chain of item i, as index + 1 */
    uint32_t *buckets;    /* heads, as index + 1 */
    uint32_t n, capacity; /* as many buckets as capacity; a power of two */
};

void asym_table_init(struct asym_table *t, size_t item_size);
void asym_table_done(struct asym_table *t);

/** NULL when there is none. */
void *asym_table_find(const struct asym_table *t, const struct asym_taskid *id);

/** The item with this id, zeroed but for id when it is new. NULL: no memory, nothing changed. */
void *asym_table_get(struct asym_table *t, const struct asym_taskid *id);

/** As asym_table_get, but looks at item *hint first, and leaves there where the next of the same order may be. */
void *asym_table_get_near(struct asym_table *t, const struct asym_taskid *id, uint32_t *hint);

/** Make room for n more, so that as many asym_table_get cannot fail. 0; -ENOMEM, unchanged. */
int asym_table_reserve(struct asym_table *t, size_t n);

/** Remove all items, keep the memory. */
void asym_table_clear(struct asym_table *t);

void *asym_table_at(const struct asym_table *t, uint32_t i);
void asym_table_remove_at(struct asym_table *t, uint32_t i);

/** Remove the one with this id, if there is one. */
void asym_table_remove(struct asym_table *t, const struct asym_taskid *id);

/** Give every item another size: old bytes up to keep are kept, the rest is zero. 0; -ENOMEM, unchanged. */
int asym_table_resize_items(struct asym_table *t, size_t item_size, size_t keep);

#endif
