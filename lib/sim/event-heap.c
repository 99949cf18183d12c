/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sim/sim-internal.h"

#include <errno.h>
#include <stdlib.h>

enum { LINE = 64 /* bytes */ };

int sim_heap_init(struct sim_heap *h, uint32_t n_slots)
{
    /* Groups of children begin at items 1, 5, 9 ...: each group fills one cache line. */
    const size_t ahead = LINE / sizeof(struct sim_heap_item) - 1;
    const size_t size = (ahead + n_slots) * sizeof(struct sim_heap_item);
    struct sim_heap_item *memory = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);
    uint32_t *at = calloc(n_slots, sizeof *at);
    if (!memory || !at) {
        free(memory);
        free(at);
        return -ENOMEM;
    }
    *h = (struct sim_heap){.memory = memory, .items = memory + ahead, .at = at};
    return 0;
}

void sim_heap_done(struct sim_heap *h)
{
    free(h->memory);
    free(h->at);
    *h = (struct sim_heap){0};
}

static bool before(struct sim_heap_item a, struct sim_heap_item b)
{
    /* The branch predictor cannot guess the result, so this is one comparison of both fields, without branches. */
    __extension__ typedef unsigned __int128 both;
    return ((both)a.time << 64 | a.slot) < ((both)b.time << 64 | b.slot);
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

/* Returns the least of the children first to end - 1; first < end. */
static uint32_t least_of(const struct sim_heap *h, uint32_t first, uint32_t end)
{
    const struct sim_heap_item *items = h->items;
    uint32_t least = first;
    if (end - first == 4) {
        const uint32_t a = first + before(items[first + 1], items[first]);
        const uint32_t b = first + 2 + before(items[first + 3], items[first + 2]);
        return a + (b - a) * before(items[b], items[a]);
    }
    for (uint32_t k = first + 1; k < end; k++)
        if (before(items[k], items[least]))
            least = k;
    return least;
}

static void sink(struct sim_heap *h, uint32_t i, struct sim_heap_item item)
{
    for (;;) {
        const uint32_t first = 4 * i + 1;
        if (first >= h->n)
            break;
        const uint32_t least = least_of(h, first, first + 4 < h->n ? first + 4 : h->n);
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
    if (h->taken == slot + 1)
        h->taken = 0;
    if (time == SIM_NEVER) {
        if (at > 0)
            take_out(h, at - 1);
    } else if (at == 0) {
        rise(h, h->n++, item);
    } else if (h->items[at - 1].time != time) {
        settle(h, at - 1, item);
    }
}

void sim_heap_drop(struct sim_heap *h)
{
    if (h->taken == 0)
        return;
    const uint32_t slot = h->taken - 1;
    h->taken = 0;
    take_out(h, h->at[slot] - 1);
}

uint32_t sim_heap_take(struct sim_heap *h)
{
    sim_heap_drop(h);
    h->taken = h->items[0].slot + 1;
    return h->items[0].slot;
}
