/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Balancing by count, which knows nothing of speeds. */
#include "base/macro.h"
#include "base/mask.h"
#include "sim/internal.h"

enum reach { REACH_LLC, REACH_NODE, REACH_ALL, N_REACHES };

/* Each distance is looked at once: who is nearer has been looked at before. */
static bool reaches(const struct asym_sim *s, uint32_t a, uint32_t b, enum reach reach)
{
    const enum reach nearest = s->cpus[a].llc == s->cpus[b].llc     ? REACH_LLC
                               : s->cpus[a].node == s->cpus[b].node ? REACH_NODE
                                                                    : REACH_ALL;
    return nearest == reach;
}

/* The first in the queue that may run on cpu: Linux, too, takes who has not run for longest, since its cache is cold. */
static uint32_t movable(const struct asym_sim *s, uint32_t from, uint32_t cpu)
{
    /* Most that wait on one CPU have the same mask. */
    uint32_t refused = SIM_NONE;
    for (uint32_t t = s->cpus[from].head; t != SIM_NONE; t = s->threads[t].next) {
        if (s->threads[t].mask == refused)
            continue;
        if (asym_mask_has(sim_masks_at(s->masks, s->threads[t].mask), (int)cpu))
            return t;
        refused = s->threads[t].mask;
    }
    return SIM_NONE;
}

/* The busiest CPU at that distance that has somebody for this one; the first of equals behind it. */
static uint32_t busiest(const struct asym_sim *s, uint32_t cpu, enum reach reach, uint32_t least, uint32_t *ret_thread)
{
    uint32_t best = SIM_NONE, most = least;
    int from = asym_mask_next(&s->overloaded, (int)cpu + 1);
    const bool wraps = from < 0;
    bool wrapped = wraps;
    from = wraps ? asym_mask_next(&s->overloaded, 0) : from;
    while (from >= 0 && !(wrapped && from > (int)cpu)) {
        const uint32_t c = (uint32_t)from, n = sim_count(s, c);
        if (c != cpu && n > most && reaches(s, cpu, c, reach)) {
            const uint32_t thread = movable(s, c, cpu);
            if (thread != SIM_NONE) {
                best = c;
                most = n;
                *ret_thread = thread;
            }
        }
        from = asym_mask_next(&s->overloaded, from + 1);
        if (from < 0 && !wrapped) {
            wrapped = true;
            from = asym_mask_next(&s->overloaded, 0);
        }
    }
    return best;
}

bool sim_pull(struct asym_sim *s, uint32_t cpu)
{
    uint32_t thread = SIM_NONE;
    for (int reach = REACH_LLC; reach < N_REACHES; reach++) {
        if (busiest(s, cpu, (enum reach)reach, 1, &thread) == SIM_NONE)
            continue;
        s->totals.events++;
        sim_move(s, thread, cpu);
        return true;
    }
    return false;
}

void sim_balance(struct asym_sim *s, uint32_t cpu)
{
    uint32_t thread = SIM_NONE;
    for (int reach = REACH_LLC; reach < N_REACHES; reach++) {
        const uint32_t here = sim_count(s, cpu);
        /* Half of the difference, which evens it out. */
        const uint32_t from = busiest(s, cpu, (enum reach)reach, here + 1, &thread);
        if (from == SIM_NONE)
            continue;
        for (uint32_t n = (sim_count(s, from) - here) / 2; n > 0 && thread != SIM_NONE; n--) {
            sim_move(s, thread, cpu);
            thread = movable(s, from, cpu);
        }
    }
}

void sim_kick(struct asym_sim *s)
{
    const uint64_t tick = s->scenario->scheduler.tick;
    if (s->kick_at != SIM_NEVER || asym_mask_empty(&s->idle) || asym_mask_empty(&s->overloaded))
        return;
    s->kick_at = (s->now / tick + 1) * tick;
    sim_heap_set(&s->heap, sim_slot_kick(s), s->kick_at);
}

void sim_kicked(struct asym_sim *s)
{
    const struct asym_mask idle = s->idle;
    s->kick_at = SIM_NEVER;
    ASYM_MASK_FOREACH (c, &idle) {
        if (asym_mask_empty(&s->overloaded))
            break;
        if (s->cpus[c].running == SIM_NONE)
            sim_pend(s, (uint32_t)c, false);
    }
}
