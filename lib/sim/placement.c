/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPU on which a new thread begins. sim-internal.h has the rules and their source. */
#include "base/mask.h"
#include "sim/sim-internal.h"

/* Returns the CPUs of set, from first to end - 1. */
static struct asym_mask between(const struct asym_mask *set, uint32_t first, uint32_t end)
{
    struct asym_mask part = {0};
    for (int c = asym_mask_next(set, (int)first); c >= 0 && c < (int)end; c = asym_mask_next(set, c + 1))
        asym_mask_set(&part, (unsigned)c);
    return part;
}

/* Returns the CPU of idle that went idle last, ties at random. The kernel's own threads have just left a housekeeping CPU. */
static uint32_t last_idle(struct asym_sim *s, const struct asym_mask *idle)
{
    const struct asym_mask kept = asym_mask_and(idle, &s->scenario->scheduler.housekeeping);
    struct asym_mask last = {0};
    uint64_t latest = 0;
    if (!asym_mask_empty(&kept))
        return (uint32_t)sim_any_of(s, &kept);
    ASYM_MASK_FOREACH (c, idle) {
        const uint64_t since = s->cpus[c].idle_since;
        if (since < latest)
            continue;
        if (since > latest)
            last = (struct asym_mask){0};
        latest = since;
        asym_mask_set(&last, (unsigned)c);
    }
    return (uint32_t)sim_any_of(s, &last);
}

/* A search that has come to the CPU at. idle: the CPUs that the thread may take; not empty. */
struct search {
    struct asym_mask idle;
    uint32_t at;
    bool moved; /* from the part of the CPU where it began */
};

/* Chooses between the parts of at's surroundings: the part of at, unless another one has more idle CPUs. */
static void choose_part(struct asym_sim *s, struct search *f, enum sim_reach around, enum sim_reach part)
{
    uint32_t from, to, first, end, ties = 0;
    sim_span(s, f->at, part, &first, &end);
    struct asym_mask best = between(&f->idle, first, end);
    unsigned most = asym_mask_count(&best);
    sim_span(s, f->at, around, &from, &to);
    for (uint32_t c = from; c < to; c = end) {
        sim_span(s, c, part, &first, &end);
        const struct asym_mask idle = between(&f->idle, first, end);
        const unsigned n = asym_mask_count(&idle);
        if (n < most || (n == most && ties == 0))
            continue;
        ties = n > most ? 1 : ties + 1;
        most = n;
        if (ties == 1 || sim_rng_below(&s->rng, ties) == 0)
            best = idle;
    }
    if (ties > 0) {
        f->at = last_idle(s, &best);
        f->moved = true;
    }
}

static uint32_t find_idlest(struct asym_sim *s, uint32_t from, const struct asym_mask *idle)
{
    struct search f = {.idle = *idle, .at = from};
    uint32_t first, end;
    for (int around = SIM_REACH_ALL; around > SIM_REACH_LLC; around--)
        choose_part(s, &f, (enum sim_reach)around, (enum sim_reach)(around - 1));
    sim_span(s, f.at, SIM_REACH_LLC, &first, &end);
    const struct asym_mask near = between(&f.idle, first, end);
    const struct asym_mask whole = sim_whole_cores(s, &near);
    return f.moved ? last_idle(s, &whole) : (uint32_t)sim_any_of(s, &whole);
}

/* Returns the CPU of the thread that starts this one. Idle CPUs exist. */
static uint32_t started_from(struct asym_sim *s, uint32_t thread)
{
    const uint32_t master = s->procs[s->threads[thread].proc].first;
    if (thread != master && s->threads[master].cpu >= 0)
        return (uint32_t)s->threads[master].cpu;
    if (s->n_llcs == 1)
        return 0;
    if (s->starter == SIM_NONE)
        s->starter = find_idlest(s, (uint32_t)sim_any_of(s, &s->idle), &s->idle);
    return s->starter;
}

uint32_t sim_place_new(struct asym_sim *s, uint32_t thread)
{
    const struct asym_mask *allowed = sim_masks_at(s->masks, s->threads[thread].mask);
    if (s->scenario->scheduler.placement == ASYM_SIM_RANDOM)
        return (uint32_t)sim_any_of(s, allowed);
    const struct asym_mask idle = asym_mask_and(allowed, &s->idle);
    struct asym_mask others = idle;
    if (asym_mask_empty(&idle))
        return sim_emptiest(s, allowed);
    const uint32_t from = started_from(s, thread);
    if (s->starter != SIM_NONE)
        asym_mask_clear(&others, s->starter);
    return find_idlest(s, from, asym_mask_empty(&others) ? &idle : &others);
}
