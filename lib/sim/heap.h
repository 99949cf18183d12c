/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The queue of coming events: a heap of slots, each with at most one time. Slots of one time come in the order of their
 * numbers. Four children a node: fewer cache lines than two.
 */
#ifndef ASYM_SIM_HEAP_H
#define ASYM_SIM_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_NEVER UINT64_MAX

struct sim_heap_item {
    uint64_t time;
    uint32_t slot;
};

struct sim_heap {
    void *memory;                /* owned */
    struct sim_heap_item *items; /* in memory, so that the four children of a node share a cache line */
    uint32_t *at;                /* owned; by slot: index + 1, 0: not there */
    uint32_t n, n_slots;
    uint32_t taken; /* slot + 1: still there, as mostly it has a new time at once; 0: none */
};

/** 0; -ENOMEM. */
int sim_heap_init(struct sim_heap *h, uint32_t n_slots);
void sim_heap_done(struct sim_heap *h);

/** Give the slot this time in place of any it has; SIM_NEVER: none. */
void sim_heap_set(struct sim_heap *h, uint32_t slot, uint64_t time);

/** The one that was taken last is out of the heap from here on, unless it has been given a time since. */
void sim_heap_drop(struct sim_heap *h);

/** Time of the next event, SIM_NEVER when there is none. */
static inline uint64_t sim_heap_time(struct sim_heap *h)
{
    if (h->taken)
        sim_heap_drop(h);
    return h->n > 0 ? h->items[0].time : SIM_NEVER;
}

/** Its slot, where sim_heap_time has just named a time. */
static inline uint32_t sim_heap_slot(const struct sim_heap *h)
{
    return h->items[0].slot;
}

/** Take the next event out. There is one. */
uint32_t sim_heap_take(struct sim_heap *h);

#endif
