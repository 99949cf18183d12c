/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "base/mask.h"
#include "base/mask-table.h"
#include "sim/sim-internal.h"

/* A mask's counts, by its number. */
struct entry {
    uint32_t users;
    uint32_t waiting;        /* threads that wait for a CPU */
    uint32_t before, behind; /* neighbours in the list of masks with waiting threads */
    bool roams;              /* it has more than one CPU */
};

struct sim_masks {
    struct asym_mask_table masks;
    struct entry *entries;
    uint32_t first_waited; /* head of that list */
};

int sim_masks_new(uint32_t n_most, const struct asym_mask *all, struct sim_masks **ret_masks)
{
    struct sim_masks *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->first_waited = SIM_NONE;
    m->entries = calloc(n_most + 2, sizeof *m->entries);
    if (!m->entries || asym_mask_table_reserve(&m->masks, n_most + 1) < 0) {
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
    free(m->entries);
    free(m);
}

const struct asym_mask *sim_masks_at(const struct sim_masks *m, uint32_t id)
{
    return asym_mask_table_at(&m->masks, id);
}

uint32_t sim_masks_get(struct sim_masks *m, const struct asym_mask *mask)
{
    const uint32_t id = asym_mask_table_id(&m->masks, mask);
    struct entry *e = &m->entries[id];
    if (e->users++ == 0)
        e->roams = asym_mask_count(mask) > 1;
    return id;
}

void sim_masks_put(struct sim_masks *m, uint32_t id)
{
    if (--m->entries[id].users == 0)
        asym_mask_table_drop(&m->masks, id);
}

bool sim_masks_roams(const struct sim_masks *m, uint32_t id)
{
    return m->entries[id].roams;
}

void sim_masks_wait(struct sim_masks *m, uint32_t id, int sign)
{
    struct entry *e = &m->entries[id];
    if (sign > 0 && e->waiting++ == 0) {
        e->before = SIM_NONE;
        e->behind = m->first_waited;
        if (e->behind != SIM_NONE)
            m->entries[e->behind].before = id;
        m->first_waited = id;
    } else if (sign < 0 && --e->waiting == 0) {
        *(e->before == SIM_NONE ? &m->first_waited : &m->entries[e->before].behind) = e->behind;
        if (e->behind != SIM_NONE)
            m->entries[e->behind].before = e->before;
    }
}

bool sim_masks_any_waits(const struct sim_masks *m, uint32_t cpu)
{
    for (uint32_t i = m->first_waited; i != SIM_NONE; i = m->entries[i].behind)
        if (asym_mask_has(asym_mask_table_at(&m->masks, i), (int)cpu))
            return true;
    return false;
}
