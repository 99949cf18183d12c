/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A hash table of items of one size. Each item begins with its key, a struct asym_taskid. Items 0 to n - 1 are stored
 * densely: a removal moves the last item into the gap. Addresses hold until the next insertion or removal.
 */
#ifndef ASYM_CORE_TASK_TABLE_H
#define ASYM_CORE_TASK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "base/hash.h"

struct asym_table {
    size_t item_size;
    unsigned char *items;
    struct asym_hash index; /* of items, by id */
    uint32_t n, capacity;
};

void asym_table_init(struct asym_table *t, size_t item_size);
void asym_table_done(struct asym_table *t);

/** Returns the item with this id; NULL: none. */
void *asym_table_find(const struct asym_table *t, const struct asym_taskid *id);

/** Returns the item with this id. A new item is zero except for its id. NULL: no memory, nothing changed. */
void *asym_table_get(struct asym_table *t, const struct asym_taskid *id);

/** Returns as asym_table_get does. It tries item *hint first, and sets *hint to where the next id of the same order should be. */
void *asym_table_get_near(struct asym_table *t, const struct asym_taskid *id, uint32_t *hint);

/** Make room for n more items: that many asym_table_get cannot fail. Returns 0; -ENOMEM, unchanged. */
int asym_table_reserve(struct asym_table *t, size_t n);

/** Remove all items and keep the memory. */
void asym_table_clear(struct asym_table *t);

void *asym_table_at(const struct asym_table *t, uint32_t i);
void asym_table_remove_at(struct asym_table *t, uint32_t i);

/** Remove the item with this id, if there is one. */
void asym_table_remove(struct asym_table *t, const struct asym_taskid *id);

/** Change the size of every item: the first keep bytes stay, the rest is zero. Returns 0; -ENOMEM, unchanged. */
int asym_table_resize_items(struct asym_table *t, size_t item_size, size_t keep);

#endif
