/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "base/mask.h"
#include "sim/internal.h"

struct entry {
    struct asym_mask mask;
    uint32_t users, next;             /* next: in its bucket, or in the list of free ones */
    uint32_t waiting, before, behind; /* threads that wait for a CPU; in the list of masks that have some */
    bool roams;                       /* more than one CPU */
};

struct sim_masks {
    struct entry *entries;
    uint32_t *buckets;
    uint32_t n, n_buckets, unused;
    uint32_t first_waited; /* of that list */
};

int sim_masks_new(uint32_t n_most, const struct asym_mask *all, struct sim_masks **ret_masks)
{
    struct sim_masks *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->n = n_most + 1;
    m->first_waited = SIM_NONE;
    m->n_buckets = 2 * m->n + 1;
    m->entries = calloc(m->n, sizeof *m->entries);
    m->buckets = malloc(m->n_buckets * sizeof *m->buckets);
    if (!m->entries || !m->buckets) {
        sim_masks_free(m);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < m->n_buckets; i++)
        m->buckets[i] = SIM_NONE;
    for (uint32_t i = 0; i < m->n; i++)
        m->entries[i].next = i + 1 < m->n ? i + 1 : SIM_NONE;
    sim_masks_get(m, all);
    *ret_masks = m;
    return 0;
}

void sim_masks_free(struct sim_masks *m)
{
    if (!m)
        return;
    free(m->entries);
    free(m->buckets);
    free(m);
}

const struct asym_mask *sim_masks_at(const struct sim_masks *m, uint32_t id)
{
    return &m->entries[id].mask;
}

static uint32_t *bucket_of(struct sim_masks *m, const struct asym_mask *mask)
{
    uint64_t h = 0;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        h = (h ^ mask->w[i]) * UINT64_C(0x9e3779b97f4a7c15) + (h >> 29);
    return &m->buckets[(h >> 20) % m->n_buckets];
}

uint32_t sim_masks_get(struct sim_masks *m, const struct asym_mask *mask)
{
    uint32_t *bucket = bucket_of(m, mask);
    for (uint32_t i = *bucket; i != SIM_NONE; i = m->entries[i].next) {
        if (asym_mask_equal(&m->entries[i].mask, mask)) {
            m->entries[i].users++;
            return i;
        }
    }
    const uint32_t id = m->unused;
    struct entry *e = &m->entries[id];
    m->unused = e->next;
    *e = (struct entry){.mask = *mask, .users = 1, .next = *bucket, .roams = asym_mask_count(mask) > 1};
    *bucket = id;
    return id;
}

void sim_masks_put(struct sim_masks *m, uint32_t id)
{
    struct entry *e = &m->entries[id];
    if (--e->users > 0)
        return;
    uint32_t *link = bucket_of(m, &e->mask);
    while (*link != id)
        link = &m->entries[*link].next;
    *link = e->next;
    e->next = m->unused;
    m->unused = id;
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
        if (asym_mask_has(&m->entries[i].mask, (int)cpu))
            return true;
    return false;
}
