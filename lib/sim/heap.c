/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sim/heap.h"

#include <errno.h>
#include <stdlib.h>

int sim_heap_init(struct sim_heap *h, uint32_t n_slots)
{
    struct sim_heap_item *items = calloc(n_slots, sizeof *items);
    uint32_t *at = calloc(n_slots, sizeof *at);
    if (!items || !at) {
        free(items);
        free(at);
        return -ENOMEM;
    }
    *h = (struct sim_heap){.items = items, .at = at, .n_slots = n_slots};
    return 0;
}

void sim_heap_done(struct sim_heap *h)
{
    free(h->items);
    free(h->at);
    *h = (struct sim_heap){0};
}

static bool before(struct sim_heap_item a, struct sim_heap_item b)
{
    return a.time < b.time || (a.time == b.time && a.slot < b.slot);
}

static void put(struct sim_heap *h, uint32_t i, struct sim_heap_item item)
{
    h->items[i] = item;
    h->at[item.slot] = i + 1;
}

static void rise(struct sim_heap *h, uint32_t i, struct sim_heap_item item)
{
    while (i > 0) {
        const uint32_t parent = (i - 1) / 4;
        if (!before(item, h->items[parent]))
            break;
        put(h, i, h->items[parent]);
        i = parent;
    }
    put(h, i, item);
}

static void sink(struct sim_heap *h, uint32_t i, struct sim_heap_item item)
{
    for (;;) {
        const uint32_t first = 4 * i + 1, end = first + 4 < h->n ? first + 4 : h->n;
        uint32_t least = first;
        if (first >= h->n)
            break;
        for (uint32_t k = first + 1; k < end; k++)
            if (before(h->items[k], h->items[least]))
                least = k;
        if (!before(h->items[least], item))
            break;
        put(h, i, h->items[least]);
        i = least;
    }
    put(h, i, item);
}

static void settle(struct sim_heap *h, uint32_t i, struct sim_heap_item item)
{
    if (i > 0 && before(item, h->items[(i - 1) / 4]))
        rise(h, i, item);
    else
        sink(h, i, item);
}

static void take_out(struct sim_heap *h, uint32_t i)
{
    h->at[h->items[i].slot] = 0;
    const struct sim_heap_item last = h->items[--h->n];
    if (i < h->n)
        settle(h, i, last);
}

void sim_heap_set(struct sim_heap *h, uint32_t slot, uint64_t time)
{
    const uint32_t at = h->at[slot];
    const struct sim_heap_item item = {time, slot};
    if (time == SIM_NEVER) {
        if (at > 0)
            take_out(h, at - 1);
    } else if (at == 0) {
        rise(h, h->n++, item);
    } else if (h->items[at - 1].time != time) {
        settle(h, at - 1, item);
    }
}

uint32_t sim_heap_take(struct sim_heap *h)
{
    const uint32_t slot = h->items[0].slot;
    take_out(h, 0);
    return slot;
}
