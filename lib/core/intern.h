/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Masks by number: each content once. There are few of them (a plan for 10,000 threads has some dozens), and 128 bytes
 * each: kept per thread they would be most of what a step has to read.
 *
 * Numbers hold until asym_masks_sweep; addresses until the next asym_masks_id.
 */
#ifndef ASYM_CORE_INTERN_H
#define ASYM_CORE_INTERN_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

#include "core/pool.h"

/** The empty mask; also "none". */
#define ASYM_MASK_NONE 0

struct asym_masks {
    struct asym_pool masks, next, marked, buckets;
    uint32_t n;      /* numbers given so far, free ones included */
    uint32_t free;   /* first free number, linked by next; 0: none */
    uint32_t n_live; /* not free */
    uint32_t limit;  /* sweep when more live than this */
    bool failed;     /* memory ran out since the last sweep */
};

void asym_masks_init(struct asym_masks *s);
void asym_masks_done(struct asym_masks *s);

/** The number of this content. Where there is no memory for a new one: ASYM_MASK_NONE, and failed is set. */
uint32_t asym_masks_id(struct asym_masks *s, const struct asym_mask *m);

const struct asym_mask *asym_masks_at(const struct asym_masks *s, uint32_t id);

/** Is it worth it to sweep? Then mark all that is in use, and sweep. */
bool asym_masks_is_full(const struct asym_masks *s);
void asym_masks_mark(struct asym_masks *s, uint32_t id);
void asym_masks_sweep(struct asym_masks *s);

#endif
