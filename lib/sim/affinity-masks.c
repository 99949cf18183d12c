/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "base/mask.h"
#include "base/mask-table.h"
#include "sim/sim-internal.h"

struct sim_masks {
    struct asym_mask_table masks;
    uint32_t *users; /* of each mask, by its number */
};

int sim_masks_new(uint32_t n_most, const struct asym_mask *all, struct sim_masks **ret_masks)
{
    struct sim_masks *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->users = calloc(n_most + 2, sizeof *m->users);
    if (!m->users || asym_mask_table_reserve(&m->masks, n_most + 1) < 0) {
        sim_masks_free(m);
        return -ENOMEM;
    }
    sim_masks_get(m, all);
    *ret_masks = m;
    return 0;
}

void sim_masks_free(struct sim_masks *m)
{
    if (!m)
        return;
    asym_mask_table_done(&m->masks);
    free(m->users);
    free(m);
}

const struct asym_mask *sim_masks_at(const struct sim_masks *m, uint32_t id)
{
    return asym_mask_table_at(&m->masks, id);
}

uint32_t sim_masks_get(struct sim_masks *m, const struct asym_mask *mask)
{
    const uint32_t id = asym_mask_table_id(&m->masks, mask);
    m->users[id]++;
    return id;
}

void sim_masks_put(struct sim_masks *m, uint32_t id)
{
    if (--m->users[id] == 0)
        asym_mask_table_drop(&m->masks, id);
}
