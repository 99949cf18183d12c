/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searches for a CPU: where a new thread begins, the idle ones, those with the fewest threads. Changes no thread. */
#include <math.h>

#include "base/macro.h"
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

/* Returns the n-th CPU of a set, from 0; -1: the set has fewer. */
static int nth(const struct asym_mask *set, unsigned n)
{
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++) {
        const unsigned here = (unsigned)__builtin_popcountll(set->w[i]);
        if (n >= here) {
            n -= here;
            continue;
        }
        uint64_t w = set->w[i];
        while (n-- > 0)
            w &= w - 1;
        return (int)(i * 64 + (unsigned)__builtin_ctzll(w));
    }
    return -1;
}

/* By chance; -1: set is empty. */
static int any_of(struct asym_sim *s, const struct asym_mask *set)
{
    const unsigned n = asym_mask_count(set);
    return n > 0 ? nth(set, sim_rng_below(&s->rng, n)) : -1;
}

bool sim_core_is_idle(const struct asym_sim *s, uint32_t cpu)
{
    const struct sim_core *core = &s->cores[s->cpus[cpu].core];
    for (uint32_t i = 0; i < core->n; i++)
        if (s->cpus[core->first + i].running != SIM_NONE)
            return false;
    return true;
}

/* Returns the CPUs of set whose siblings are idle, too; if there are none, set. */
static struct asym_mask whole_cores(const struct asym_sim *s, const struct asym_mask *set)
{
    struct asym_mask whole = {0};
    if (s->scenario->machine.most_smt < 2)
        return *set;
    ASYM_MASK_FOREACH (c, set)
        if (sim_core_is_idle(s, (uint32_t)c))
            asym_mask_set(&whole, (unsigned)c);
    return asym_mask_empty(&whole) ? *set : whole;
}

/* Returns the CPU of idle that went idle last, ties at random. The kernel's own threads have just left a housekeeping CPU. */
static uint32_t last_idle(struct asym_sim *s, const struct asym_mask *idle)
{
    const struct asym_mask kept = asym_mask_and(idle, &s->scenario->scheduler.housekeeping);
    struct asym_mask last = {0};
    uint64_t latest = 0;
    if (!asym_mask_empty(&kept))
        return (uint32_t)any_of(s, &kept);
    ASYM_MASK_FOREACH (c, idle) {
        const uint64_t since = s->cpus[c].idle_since;
        if (since < latest)
            continue;
        if (since > latest)
            last = (struct asym_mask){0};
        latest = since;
        asym_mask_set(&last, (unsigned)c);
    }
    return (uint32_t)any_of(s, &last);
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
    const struct asym_mask whole = whole_cores(s, &near);
    return f.moved ? last_idle(s, &whole) : (uint32_t)any_of(s, &whole);
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
        s->starter = find_idlest(s, (uint32_t)any_of(s, &s->idle), &s->idle);
    return s->starter;
}

uint32_t sim_place_new(struct asym_sim *s, uint32_t thread)
{
    const struct asym_mask *allowed = asym_mask_table_at(&s->masks, s->threads[thread].mask);
    if (s->scenario->scheduler.placement == ASYM_SIM_RANDOM)
        return (uint32_t)any_of(s, allowed);
    const struct asym_mask idle = asym_mask_and(allowed, &s->idle);
    struct asym_mask others = idle;
    if (asym_mask_empty(&idle))
        return sim_emptiest(s, allowed);
    const uint32_t from = started_from(s, thread);
    if (s->starter != SIM_NONE)
        asym_mask_clear(&others, s->starter);
    return find_idlest(s, from, asym_mask_empty(&others) ? &idle : &others);
}

/* build_machine numbers CPUs by LLC and node. */
void sim_span(const struct asym_sim *s, uint32_t cpu, enum sim_reach reach, uint32_t *ret_first, uint32_t *ret_end)
{
    const uint32_t per_node = s->scenario->machine.node;
    uint32_t first = 0, last = s->n_llcs - 1;
    if (reach == SIM_REACH_LLC) {
        first = last = s->cpus[cpu].llc;
    } else if (reach == SIM_REACH_NODE && per_node > 0) {
        first = s->cpus[cpu].node * per_node;
        last = ASYM_MIN(first + per_node, s->n_llcs) - 1;
    }
    *ret_first = s->llcs[first].first;
    *ret_end = s->llcs[last].first + s->llcs[last].n;
}

/* Searches first to end - 1 for a CPU whose core is idle; else keeps the first idle CPU, unless *found has one. */
static bool find_idle(const struct asym_sim *s, const struct asym_mask *idle, uint32_t first, uint32_t end, int *found)
{
    for (int c = asym_mask_next(idle, (int)first); c >= 0 && c < (int)end; c = asym_mask_next(idle, c + 1)) {
        const bool core_is_idle = sim_core_is_idle(s, (uint32_t)c);
        if (core_is_idle || *found < 0)
            *found = c;
        if (core_is_idle)
            return true;
    }
    return false;
}

/* The start of the search depends on cpu, so that neighbours do not all take the same CPU. */
int sim_idle_near(const struct asym_sim *s, uint32_t cpu, const struct asym_mask *allowed)
{
    const struct sim_llc *l = &s->llcs[s->cpus[cpu].llc];
    const struct asym_mask idle = asym_mask_and(&s->idle, allowed);
    const uint32_t from = l->first + cpu % l->n;
    int found = -1;
    if (!find_idle(s, &idle, from, l->first + l->n, &found))
        find_idle(s, &idle, l->first, from, &found);
    return found;
}

/* The CPUs of allowed, which is not empty, with the least load. */
static struct asym_mask least_loaded(const struct asym_sim *s, const struct asym_mask *allowed)
{
    struct asym_mask least = {0};
    double most = (double)INFINITY;
    uint32_t n = 0;
    while (!asym_mask_meets(allowed, &s->levels[n]))
        n++;
    const struct asym_mask some = asym_mask_and(allowed, &s->levels[n]);
    if (!s->by_speed && n < SIM_LAST_LEVEL)
        return some;
    ASYM_MASK_FOREACH (c, &some) {
        if (s->loads[c] > most)
            continue;
        if (s->loads[c] < most)
            least = (struct asym_mask){0};
        most = s->loads[c];
        asym_mask_set(&least, (unsigned)c);
    }
    return least;
}

uint32_t sim_emptiest(struct asym_sim *s, const struct asym_mask *allowed)
{
    const struct asym_mask idle = asym_mask_and(allowed, &s->idle);
    const struct asym_mask best = asym_mask_empty(&idle) ? least_loaded(s, allowed) : whole_cores(s, &idle);
    return (uint32_t)any_of(s, &best);
}
