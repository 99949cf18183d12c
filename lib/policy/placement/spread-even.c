/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Even placement: places sets of threads with equal masks one after the other, the set with the fewest choices first. */
#include "policy/placement/spread-even.h"

#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "policy/placement/spread-internal.h"

/* A set of threads with equal masks, which are placed on the same CPUs. */
struct group {
    const uint32_t *threads;
    size_t n;
    struct asym_mask cpus;
    uint32_t level; /* every CPU gets at least this many ... */
    size_t extras;  /* ... and this many CPUs one more */
};

static size_t fits_below(const struct asym_spread *sp, const struct asym_mask *cpus, uint32_t level)
{
    size_t n = 0;
    ASYM_MASK_FOREACH (c, cpus)
        n += sp->load[c] < level ? level - sp->load[c] : 0;
    return n;
}

/* Find the highest level up to which the group can fill all its CPUs. */
static void find_level(const struct asym_spread *sp, struct group *g)
{
    uint32_t lo = 0, hi = 1;
    while (fits_below(sp, &g->cpus, hi) <= g->n)
        hi *= 2;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (fits_below(sp, &g->cpus, mid) <= g->n)
            lo = mid;
        else
            hi = mid;
    }
    g->level = lo;
    g->extras = g->n - fits_below(sp, &g->cpus, lo);
}

/*
 * A round fills CPUs of one kind. With type -1 these are the CPUs below the level. Else they are the CPUs at the level, of
 * one core type, on cores with fewer extras than limit. Within a round CPUs only drop out, so the cursors never go back.
 */
struct round {
    int type;
    uint32_t limit;
    bool at_home; /* only threads whose preferred CPU is open */
};

static bool open_in(const struct asym_spread *sp, const struct group *g, const struct round *r, int cpu)
{
    if (!asym_mask_has(&g->cpus, cpu))
        return false;
    if (r->type < 0)
        return sp->load[cpu] < g->level;
    const struct asym_cpu *c = &sp->in->machine->cpus[cpu];
    return g->extras > 0 && sp->load[cpu] == g->level && c->type == r->type && sp->extra[c->core] < r->limit;
}

static void put_in(struct asym_spread *sp, struct group *g, const struct round *r, uint32_t t, int32_t cpu)
{
    asym_spread_put(sp, t, cpu);
    if (r->type >= 0) {
        g->extras--;
        sp->extra[sp->in->machine->cpus[cpu].core]++;
    }
}

/* Returns the next open CPU of the thread's LLC, of its node, or of all; -1 if there is none. */
static int next_open(struct asym_spread *sp, const struct group *g, const struct round *r, int preferred_cpu,
                     enum asym_nearness near)
{
    const struct asym_machine *m = sp->in->machine;
    uint32_t zero = 0, *cursor = &sp->cursor[0];
    const uint32_t *first = &zero;
    if (near != ASYM_ANYWHERE && preferred_cpu < 0)
        return -1;
    if (near == ASYM_SAME_LLC) {
        cursor = &sp->cursor[m->cpus[preferred_cpu].llc];
        first = &sp->llc_first[m->cpus[preferred_cpu].llc];
    } else if (near == ASYM_SAME_NODE) {
        cursor = &sp->cursor[m->cpus[preferred_cpu].node];
        first = &sp->node_first[m->cpus[preferred_cpu].node];
    }
    for (uint32_t i = *first + *cursor; i < sp->n_order; i = *first + ++*cursor) {
        const struct asym_cpu *c = &m->cpus[sp->order[i]];
        if ((near == ASYM_SAME_LLC && c->llc != m->cpus[preferred_cpu].llc) ||
            (near == ASYM_SAME_NODE && c->node != m->cpus[preferred_cpu].node))
            return -1;
        if (open_in(sp, g, r, (int)sp->order[i]))
            return (int)sp->order[i];
    }
    return -1;
}

static void run_round(struct asym_spread *sp, struct group *g, const struct round *r)
{
    const struct asym_machine *m = sp->in->machine;
    const enum asym_nearness far = r->at_home ? ASYM_AT_PREFERRED : ASYM_ANYWHERE;
    for (enum asym_nearness near = ASYM_AT_PREFERRED; near <= far; near++) {
        memset(sp->cursor, 0, (ASYM_MAX(m->n_llcs, m->n_nodes) + 1) * sizeof *sp->cursor);
        for (size_t i = 0; i < g->n; i++) {
            uint32_t t = g->threads[i];
            int preferred_cpu = sp->in->threads[t].preferred_cpu;
            if (sp->ret[t].cpu >= 0)
                continue;
            if (r->type >= 0 && g->extras == 0)
                return;
            int cpu = preferred_cpu;
            if (near != ASYM_AT_PREFERRED)
                cpu = next_open(sp, g, r, preferred_cpu, near);
            else if (preferred_cpu < 0 || !open_in(sp, g, r, preferred_cpu))
                cpu = -1;
            if (cpu >= 0)
                put_in(sp, g, r, t, cpu);
            else if (near == ASYM_ANYWHERE)
                return;
        }
    }
}

static void place_many(struct asym_spread *sp, struct group *g)
{
    const struct asym_machine *m = sp->in->machine;
    find_level(sp, g);
    run_round(sp, g, &(struct round){.type = -1});
    memset(sp->extra, 0, m->n_cores * sizeof *sp->extra);
    /* Threads of other groups above the level on a core count too. */
    ASYM_MASK_FOREACH (c, &m->usable)
        sp->extra[m->cpus[c].core] += sp->load[c] > g->level ? 1u + asym_mask_has(&sp->reserved, c) : 0;
    for (unsigned i = 0; i < m->n_rows && g->extras > 0; i++) {
        const struct asym_seat_row *row = &m->rows[i];
        const uint32_t most = row->is_beside ? 2u * m->types[row->type].siblings : 1;
        /* Siblings fill level by level, but that is no reason for a thread to leave one for another. */
        run_round(
            sp, g,
            &(struct round){.type = row->type, .limit = ASYM_MIN(most, m->types[row->type].siblings), .at_home = true});
        for (uint32_t limit = row->is_beside ? 2 : 1; limit <= most && g->extras > 0; limit++)
            run_round(sp, g, &(struct round){.type = row->type, .limit = limit});
    }
}

/* For a group of at most this size a loop over all CPUs for each thread is cheaper than the rounds. Thousands of threads
 * may all have different masks. */
#define FEW 16

/* Returns the least loaded CPU of the group; on a tie the best seat, then one that a thread prefers, then one under the LLC of
 * such a CPU. */
static int least_loaded(const struct asym_spread *sp, const struct group *g)
{
    uint64_t least = UINT64_MAX;
    int best = -1;
    ASYM_MASK_FOREACH (c, &g->cpus) {
        const struct asym_machine *m = sp->in->machine;
        const uint32_t beside = asym_spread_beside(sp, c, sp->load[c]);
        const bool is_wanted = sp->want[c] > 0, is_near = sp->cursor[m->cpus[c].llc] > 0;
        uint64_t cost = (uint64_t)sp->load[c] << 36 | (uint64_t)asym_machine_row(m, c, beside > 0) << 26 |
                        (uint64_t)ASYM_MIN(beside, 0xffu) << 18 | (uint64_t)!is_wanted << 17 |
                        (uint64_t)!is_near << 16 | m->cpus[c].rank;
        if (cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

/* Count the threads that prefer each CPU, and mark the LLCs of these CPUs. */
static void note_preferred_cpus(struct asym_spread *sp, const struct group *g)
{
    memset(sp->cursor, 0, sp->in->machine->n_llcs * sizeof *sp->cursor);
    for (size_t i = 0; i < g->n; i++) {
        int preferred_cpu = sp->in->threads[g->threads[i]].preferred_cpu;
        if (preferred_cpu < 0)
            continue;
        sp->cursor[sp->in->machine->cpus[preferred_cpu].llc] = 1;
        sp->want[preferred_cpu]++;
    }
}

/* Give the thread, unless it has a CPU, the first free place that is so near. A place that is taken becomes -1. */
static void take_place(struct asym_spread *sp, uint32_t thread, enum asym_nearness near, int *places, size_t n)
{
    const int32_t preferred_cpu = sp->in->threads[thread].preferred_cpu;
    struct asym_assignment *a = &sp->ret[thread];
    for (size_t k = 0; a->cpu < 0 && k < n; k++) {
        if (places[k] < 0 || asym_nearness(sp->in->machine, preferred_cpu, places[k]) > near)
            continue;
        a->cpu = places[k];
        places[k] = -1;
    }
}

/*
 * Choose the places first, then the thread for each. The order of the threads must not decide which places are taken: in a
 * second plan other threads would come first to a taken CPU, and threads would swap places without end.
 */
static void place_few(struct asym_spread *sp, const struct group *g)
{
    int places[FEW];
    note_preferred_cpus(sp, g);
    for (size_t i = 0; i < g->n; i++) {
        int cpu = places[i] = least_loaded(sp, g);
        sp->want[cpu] -= sp->want[cpu] > 0;
        sp->load[cpu]++;
    }
    for (enum asym_nearness near = ASYM_AT_PREFERRED; near <= ASYM_ANYWHERE; near++)
        for (size_t i = 0; i < g->n; i++)
            take_place(sp, g->threads[i], near, places, g->n);
    for (size_t i = 0; i < g->n; i++)
        if (sp->in->threads[g->threads[i]].preferred_cpu >= 0)
            sp->want[sp->in->threads[g->threads[i]].preferred_cpu] = 0;
}

/* Sort the threads that are not placed yet by set, with a counting sort. set_mark[s] becomes the end of set s. */
static size_t collect(struct asym_spread *sp, const uint32_t *list, size_t n)
{
    memset(sp->set_mark, 0, (sp->n_sets + 1) * sizeof *sp->set_mark);
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            sp->set_mark[sp->set_of[list[i]] + 1]++;
    for (uint32_t s = 1; s <= sp->n_sets; s++)
        sp->set_mark[s] += sp->set_mark[s - 1];
    size_t left = sp->set_mark[sp->n_sets];
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            sp->list[sp->set_mark[sp->set_of[list[i]]]++] = list[i];
    return left;
}

void asym_spread_even(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus)
{
    size_t left = collect(sp, list, n);
    for (size_t first = 0, end; first < left; first = end) {
        uint32_t set = sp->set_of[sp->list[first]];
        end = sp->set_mark[set];
        struct group g = {.threads = sp->list + first, .n = end - first};
        g.cpus = asym_mask_and(sp->sets[set], cpus);
        if (asym_mask_empty(&g.cpus))
            g.cpus = *sp->sets[set];
        if (g.n <= FEW)
            place_few(sp, &g);
        else
            place_many(sp, &g);
    }
}

void asym_spread_give_siblings(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *free_fast)
{
    const struct asym_mask seats = asym_mask_or(&sp->in->machine->slow, free_fast);
    if (collect(sp, list, n) > asym_mask_count(&seats))
        asym_spread_give(sp, list, n, true, free_fast);
}

void asym_spread_rest(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *free_fast)
{
    const struct asym_mask rest = asym_mask_or(&sp->in->machine->slow, free_fast);
    asym_spread_even(sp, list, n, &rest);
    asym_spread_fill_seats(sp);
}

const struct asym_reason asym_spread_no_fast = {.text = "none of its CPUs is fast",
                                                .sentence = "may run on slow CPUs only"};
const struct asym_reason asym_spread_only_fast = {.text = "all of its CPUs are fast",
                                                  .sentence = "may run on fast CPUs only"};
const struct asym_reason asym_spread_spinning = {.text = "spins at a barrier: comes last",
                                                 .sentence = "spins at a barrier, so all other threads come before it"};

static const struct asym_reason alike = {
    .text = "no CPU is known to be faster: threads are only spread",
    .sentence = "has a CPU like all others as far as asymd knows: the policy only spreads the threads"};

void asym_spread_alike(struct asym_spread *sp, const uint32_t *list, size_t n)
{
    asym_spread_even(sp, list, n, &sp->in->machine->usable);
    for (size_t i = 0; i < n; i++)
        sp->ret[list[i]].reason = &alike;
}
