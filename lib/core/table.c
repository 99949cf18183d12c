/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "core/pool.h"

#define CAPACITY_MIN 64

void *asym_pool_reserve(struct asym_pool *pool, size_t n, size_t size)
{
    if (n < pool->capacity || (n == pool->capacity && n > 0))
        return pool->items;
    size_t capacity = ASYM_MAX(n + 1, pool->capacity + pool->capacity / 2), bytes;
    if (__builtin_mul_overflow(capacity, size, &bytes))
        return NULL;
    void *items = malloc(bytes);
    if (!items)
        return NULL;
    free(pool->items);
    pool->items = items;
    pool->capacity = capacity;
    return items;
}
void *asym_pool_grow(struct asym_pool *pool, size_t capacity, size_t size)
{
    size_t bytes;
    if (capacity <= pool->capacity)
        return pool->items;
    if (__builtin_mul_overflow(capacity, size, &bytes))
        return NULL;
    void *items = malloc(bytes);
    if (!items)
        return NULL;
    if (pool->capacity > 0)
        memcpy(items, pool->items, pool->capacity * size);
    free(pool->items);
    *pool = (struct asym_pool){items, capacity};
    return items;
}

void asym_pool_done(struct asym_pool *pool)
{
    free(pool->items);
    *pool = (struct asym_pool){0};
}

void asym_table_init(struct asym_table *t, size_t item_size)
{
    *t = (struct asym_table){.item_size = item_size};
}

void asym_table_done(struct asym_table *t)
{
    free(t->items);
    free(t->next);
    free(t->buckets);
    *t = (struct asym_table){.item_size = t->item_size};
}

void *asym_table_at(const struct asym_table *t, uint32_t i)
{
    return t->items + (size_t)i * t->item_size;
}

static uint32_t bucket_of(const struct asym_table *t, const struct asym_taskid *id)
{
    uint64_t h = ((uint64_t)(uint32_t)id->tid ^ id->start << 20) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32) & (t->capacity - 1);
}

static int same(const struct asym_taskid *a, const struct asym_taskid *b)
{
    return a->tid == b->tid && a->tgid == b->tgid && a->start == b->start;
}

void *asym_table_find(const struct asym_table *t, const struct asym_taskid *id)
{
    if (t->capacity == 0)
        return NULL;
    for (uint32_t i = t->buckets[bucket_of(t, id)]; i != 0; i = t->next[i - 1]) {
        struct asym_taskid *item = asym_table_at(t, i - 1);
        if (same(item, id))
            return item;
    }
    return NULL;
}

static void link_item(struct asym_table *t, uint32_t i)
{
    uint32_t *head = &t->buckets[bucket_of(t, asym_table_at(t, i))];
    t->next[i] = *head;
    *head = i + 1;
}

static int grow(struct asym_table *t, uint32_t capacity)
{
    unsigned char *items = malloc((size_t)capacity * t->item_size);
    uint32_t *next = malloc(capacity * sizeof *next), *buckets = calloc(capacity, sizeof *buckets);
    if (!items || !next || !buckets) {
        free(items);
        free(next);
        free(buckets);
        return -ENOMEM;
    }
    if (t->n > 0)
        memcpy(items, t->items, t->n * t->item_size);
    uint32_t n = t->n;
    asym_table_done(t);
    t->items = items;
    t->next = next;
    t->buckets = buckets;
    t->capacity = capacity;
    t->n = n;
    for (uint32_t i = 0; i < n; i++)
        link_item(t, i);
    return 0;
}

int asym_table_reserve(struct asym_table *t, size_t n)
{
    size_t capacity = t->capacity ? t->capacity : CAPACITY_MIN;
    while (capacity < t->n + n)
        capacity *= 2;
    if (capacity > UINT32_MAX / 2)
        return -ENOMEM;
    return capacity > t->capacity ? grow(t, (uint32_t)capacity) : 0;
}

void asym_table_clear(struct asym_table *t)
{
    t->n = 0;
    if (t->capacity > 0)
        memset(t->buckets, 0, t->capacity * sizeof *t->buckets);
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
    link_item(t, t->n++);
    return item;
}

void *asym_table_get_near(struct asym_table *t, const struct asym_taskid *id, uint32_t *hint)
{
    void *item = *hint < t->n ? asym_table_at(t, *hint) : NULL;
    if (!item || !same(item, id))
        item = asym_table_get(t, id);
    if (item)
        *hint = (uint32_t)((size_t)((unsigned char *)item - t->items) / t->item_size) + 1;
    return item;
}

static void unlink_item(struct asym_table *t, uint32_t i)
{
    uint32_t *link = &t->buckets[bucket_of(t, asym_table_at(t, i))];
    while (*link != i + 1)
        link = &t->next[*link - 1];
    *link = t->next[i];
}

void asym_table_remove_at(struct asym_table *t, uint32_t i)
{
    uint32_t last = t->n - 1;
    unlink_item(t, i);
    if (i != last) {
        unlink_item(t, last);
        memcpy(asym_table_at(t, i), asym_table_at(t, last), t->item_size);
        link_item(t, i);
    }
    t->n--;
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
