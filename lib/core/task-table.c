/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/task-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 64

void asym_table_init(struct asym_table *t, size_t item_size)
{
    *t = (struct asym_table){.item_size = item_size};
}

void asym_table_done(struct asym_table *t)
{
    free(t->items);
    asym_hash_done(&t->index);
    *t = (struct asym_table){.item_size = t->item_size};
}

void *asym_table_at(const struct asym_table *t, uint32_t i)
{
    return t->items + (size_t)i * t->item_size;
}

static uint32_t hash_of(const struct asym_taskid *id)
{
    return asym_hash_of_u64((uint64_t)(uint32_t)id->tid ^ id->start << 20);
}

void *asym_table_find(const struct asym_table *t, const struct asym_taskid *id)
{
    const uint32_t hash = hash_of(id);
    ASYM_HASH_FOREACH (i, &t->index, hash) {
        struct asym_taskid *item = asym_table_at(t, (uint32_t)i);
        if (asym_taskid_equal(item, id))
            return item;
    }
    return NULL;
}

int asym_table_reserve(struct asym_table *t, size_t n)
{
    size_t capacity = t->capacity ? t->capacity : CAPACITY_MIN, bytes;
    while (capacity < t->n + n)
        capacity *= 2;
    if (capacity <= t->capacity)
        return 0;
    if (capacity > UINT32_MAX / 2 || __builtin_mul_overflow(capacity, t->item_size, &bytes) ||
        asym_hash_reserve(&t->index, capacity - t->n) < 0)
        return -ENOMEM;
    unsigned char *items = malloc(bytes);
    if (!items)
        return -ENOMEM;
    if (t->n > 0)
        memcpy(items, t->items, t->n * t->item_size);
    free(t->items);
    t->items = items;
    t->capacity = (uint32_t)capacity;
    return 0;
}

void asym_table_clear(struct asym_table *t)
{
    t->n = 0;
    asym_hash_clear(&t->index);
}

void *asym_table_get(struct asym_table *t, const struct asym_taskid *id)
{
    struct asym_taskid *item = asym_table_find(t, id);
    if (item)
        return item;
    if (asym_table_reserve(t, 1) < 0)
        return NULL;
    item = asym_table_at(t, t->n);
    memset(item, 0, t->item_size);
    *item = *id;
    asym_hash_add(&t->index, hash_of(id), t->n++);
    return item;
}

void *asym_table_get_near(struct asym_table *t, const struct asym_taskid *id, uint32_t *hint)
{
    void *item = *hint < t->n ? asym_table_at(t, *hint) : NULL;
    if (item && asym_taskid_equal(item, id)) {
        ++*hint;
        return item;
    }
    item = asym_table_get(t, id);
    if (item)
        *hint = (uint32_t)((size_t)((unsigned char *)item - t->items) / t->item_size) + 1;
    return item;
}

void asym_table_remove_at(struct asym_table *t, uint32_t i)
{
    const uint32_t last = --t->n;
    asym_hash_remove(&t->index, hash_of(asym_table_at(t, i)), i);
    if (i == last)
        return;
    asym_hash_renumber(&t->index, hash_of(asym_table_at(t, last)), last, i);
    memcpy(asym_table_at(t, i), asym_table_at(t, last), t->item_size);
}

void asym_table_remove(struct asym_table *t, const struct asym_taskid *id)
{
    const unsigned char *item = asym_table_find(t, id);
    if (item)
        asym_table_remove_at(t, (uint32_t)((size_t)(item - t->items) / t->item_size));
}

int asym_table_resize_items(struct asym_table *t, size_t item_size, size_t keep)
{
    unsigned char *items = NULL;
    if (t->capacity > 0) {
        items = calloc(t->capacity, item_size);
        if (!items)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < t->n; i++)
        memcpy(items + i * item_size, asym_table_at(t, i), keep < item_size ? keep : item_size);
    free(t->items);
    t->items = items;
    t->item_size = item_size;
    return 0;
}
