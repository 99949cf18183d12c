/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bus/event-ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int asym_event_ring_alloc(struct asym_event_ring *ring, size_t item_size, size_t n_places)
{
    if (ring->items)
        return 0;
    ring->items = calloc(n_places, item_size);
    ring->users = calloc(n_places, sizeof *ring->users);
    if (!ring->items || !ring->users) {
        asym_event_ring_free(ring);
        return -ENOMEM;
    }
    ring->item_size = item_size;
    ring->n_places = n_places;
    return 0;
}

void asym_event_ring_free(struct asym_event_ring *ring)
{
    free(ring->items);
    free(ring->users);
    ring->items = NULL;
    ring->users = NULL;
}

void asym_event_ring_push(struct asym_event_ring *ring, const void *item, uid_t user)
{
    if (!ring->items)
        return;
    const size_t place = ring->end % ring->n_places;
    memcpy(ring->items + place * ring->item_size, item, ring->item_size);
    ring->users[place] = user;
    ring->end++;
}

const void *asym_event_ring_at(const struct asym_event_ring *ring, uint64_t i, uid_t *ret_user)
{
    if (!ring->items || i >= ring->end || ring->end - i > ring->n_places)
        return NULL;
    *ret_user = ring->users[i % ring->n_places];
    return ring->items + i % ring->n_places * ring->item_size;
}
