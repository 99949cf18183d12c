/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A ring of events that many readers read at their own pace. The writer waits for no reader: it overtakes a slow one. */
#ifndef ASYM_BUS_EVENT_RING_H
#define ASYM_BUS_EVENT_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct asym_event_ring {
    unsigned char *items; /**< NULL: no memory is held, and push drops its event */
    uid_t *users;         /**< of each event: who may see it */
    size_t item_size, n_places;
    uint64_t end; /**< number of the next event; the first one has 0 */
};

/** Take the memory, if the ring has none. Numbers go on. Returns 0; -ENOMEM. */
int asym_event_ring_alloc(struct asym_event_ring *ring, size_t item_size, size_t n_places);

/** Give the memory back. */
void asym_event_ring_free(struct asym_event_ring *ring);

void asym_event_ring_push(struct asym_event_ring *ring, const void *item, uid_t user);

/** Returns event number i with its user; NULL: it is overwritten, or not there yet. */
const void *asym_event_ring_at(const struct asym_event_ring *ring, uint64_t i, uid_t *ret_user);

#endif
