/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Searches for a CPU: the idle ones, those with the fewest threads, those near another one. Changes no thread. */
#include <math.h>

#include "base/macro.h"
#include "base/mask.h"
#include "sim/sim-internal.h"

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

double sim_load(const struct asym_sim *s, uint32_t cpu, uint32_t more)
{
    return (sim_count(s, cpu) + more) / s->machine->cpus[cpu].speed;
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

int sim_any_of(struct asym_sim *s, const struct asym_mask *set)
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

struct asym_mask sim_whole_cores(const struct asym_sim *s, const struct asym_mask *set)
{
    struct asym_mask whole = {0};
    if (s->scenario->machine.most_smt < 2)
        return *set;
    ASYM_MASK_FOREACH (c, set)
        if (sim_core_is_idle(s, (uint32_t)c))
            asym_mask_set(&whole, (unsigned)c);
    return asym_mask_empty(&whole) ? *set : whole;
}

/* Returns the lowest CPU in both sets from first to end - 1; -1: none. */
static int next_of_both(const struct asym_mask *a, const struct asym_mask *b, uint32_t first, uint32_t end)
{
    uint64_t from_first = ~UINT64_C(0) << first % 64;
    for (uint32_t word = first / 64; word * 64 < end; word++, from_first = ~UINT64_C(0)) {
        const uint64_t bits = a->w[word] & b->w[word] & from_first;
        const uint32_t cpu = word * 64 + (bits ? (uint32_t)__builtin_ctzll(bits) : 0);
        if (bits)
            return cpu < end ? (int)cpu : -1;
    }
    return -1;
}

/* Searches first to end - 1 for a CPU whose core is idle; else keeps the first idle CPU, unless *found has one. */
static bool find_idle(const struct asym_sim *s, const struct asym_mask *allowed, uint32_t first, uint32_t end,
                      int *found)
{
    for (int c = next_of_both(&s->idle, allowed, first, end); c >= 0;
         c = next_of_both(&s->idle, allowed, (uint32_t)c + 1, end)) {
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
    const uint32_t from = l->first + cpu % l->n;
    int found = -1;
    if (!find_idle(s, allowed, from, l->first + l->n, &found))
        find_idle(s, allowed, l->first, from, &found);
    return found;
}

static uint32_t least_loaded(struct asym_sim *s, const struct asym_mask *allowed)
{
    struct asym_mask least = {0};
    double most = (double)INFINITY;
    ASYM_MASK_FOREACH (c, allowed) {
        const double load = sim_load(s, (uint32_t)c, 0);
        if (load > most)
            continue;
        if (load < most)
            least = (struct asym_mask){0};
        most = load;
        asym_mask_set(&least, (unsigned)c);
    }
    return (uint32_t)sim_any_of(s, &least);
}

uint32_t sim_emptiest(struct asym_sim *s, const struct asym_mask *allowed)
{
    struct asym_mask least = asym_mask_and(allowed, &s->idle);
    uint32_t fewest = UINT32_MAX;
    if (!asym_mask_empty(&least)) {
        least = sim_whole_cores(s, &least);
        return (uint32_t)sim_any_of(s, &least);
    }
    if (s->scenario->scheduler.capacity != ASYM_SIM_CAPACITY_IGNORED)
        return least_loaded(s, allowed);
    for (uint32_t level = 0; level < SIM_LAST_LEVEL; level++) {
        if (s->at_level[level] == 0)
            continue;
        least = asym_mask_and(allowed, &s->levels[level]);
        if (!asym_mask_empty(&least))
            return (uint32_t)sim_any_of(s, &least);
    }
    /* All CPUs of allowed are at the last level: compare their counts. */
    ASYM_MASK_FOREACH (c, allowed) {
        const uint32_t n = sim_count(s, (uint32_t)c);
        if (n > fewest)
            continue;
        if (n < fewest)
            least = (struct asym_mask){0};
        fewest = n;
        asym_mask_set(&least, (unsigned)c);
    }
    return (uint32_t)sim_any_of(s, &least);
}
