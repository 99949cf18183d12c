/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The queue of future events. A slot is one source of events, and has one time or none. The heap takes the slot with the
 * smallest time first, and of slots with equal times the one with the smallest number. A node has four children: they share a
 * cache line, so that a step touches fewer lines than with two children.
 */
#ifndef ASYM_SIM_EVENT_HEAP_H
#define ASYM_SIM_EVENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_NEVER UINT64_MAX

struct sim_heap_item {
    uint64_t time;
    uint32_t slot;
};

struct sim_heap {
    void *memory;                /* owned */
    struct sim_heap_item *items; /* points into memory; the four children of a node share a cache line */
    uint32_t *at;                /* owned; by slot: 1 + its index in items; 0: the slot is not in the heap */
    uint32_t n, n_slots;
    /* 1 + the slot that was taken last; 0: none. It stays in items until the next call, because most slots get a new time
     * at once. */
    uint32_t taken;
};

/** Returns 0; -ENOMEM. */
int sim_heap_init(struct sim_heap *h, uint32_t n_slots);
void sim_heap_done(struct sim_heap *h);

/** Sets the time of the slot, in ns, whether it has one or not. SIM_NEVER removes the slot. */
void sim_heap_set(struct sim_heap *h, uint32_t slot, uint64_t time);

/** Removes the slot that was taken last, unless sim_heap_set has given it a new time. */
void sim_heap_drop(struct sim_heap *h);

/** Returns the time of the next event in ns; SIM_NEVER: no event. */
static inline uint64_t sim_heap_time(struct sim_heap *h)
{
    if (h->taken)
        sim_heap_drop(h);
    return h->n > 0 ? h->items[0].time : SIM_NEVER;
}

/** Returns the slot of the next event. Valid only right after sim_heap_time returned a time other than SIM_NEVER. */
static inline uint32_t sim_heap_slot(const struct sim_heap *h)
{
    return h->items[0].slot;
}

/** Takes the next event and returns its slot. The heap must not be empty. */
uint32_t sim_heap_take(struct sim_heap *h);

#endif
