/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Masks by content, each once: equal masks have equal addresses. Thousands of threads share a handful of masks, so that a
 * thread needs a pointer and not 128 bytes, and whoever compares masks compares addresses.
 */
#ifndef ASYM_LINUX_MASKS_H
#define ASYM_LINUX_MASKS_H

#include <stddef.h>

#include <asym/types.h>

/** All zero: empty. */
struct asym_mask_pool {
    struct asym_mask **slots; /* owned, as the masks are; open addressing, NULL: free */
    size_t n, n_slots;        /* n_slots: 0 or a power of two */
};

/** The one copy of m; valid until the pool is done with. NULL when there is no memory. */
const struct asym_mask *asym_mask_pool_get(struct asym_mask_pool *pool, const struct asym_mask *m);

/** Free all masks; the pool is empty then and can be used again. */
void asym_mask_pool_done(struct asym_mask_pool *pool);

#endif
