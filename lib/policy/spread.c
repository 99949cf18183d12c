/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/spread.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"

static int by_place(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_machine *m = ctx;
    const struct asym_cpu *x = &m->cpus[a], *y = &m->cpus[b];
    if (x->node != y->node)
        return x->node - y->node;
    if (x->llc != y->llc)
        return x->llc - y->llc;
    return x->smt_rank - y->smt_rank;
}

/* An LLC that spans nodes would stand in several places: its later places then count as no LLC of their own. */
static void find_groups(struct asym_spread *sp)
{
    const struct asym_machine *m = sp->in->machine;
    for (uint32_t i = sp->n_order; i-- > 0;) {
        sp->llc_first[m->cpus[sp->order[i]].llc] = i;
        sp->node_first[m->cpus[sp->order[i]].node] = i;
    }
}

int asym_spread_init(struct asym_spread *sp, const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const struct asym_machine *m = in->machine;
    struct asym_arena *a = in->arena;
    const struct {
        uint32_t **field;
        size_t n;
    } fields[] = {
        {&sp->load, m->n_cpus},      {&sp->core_load, m->n_cores},  {&sp->order, m->n_cpus},
        {&sp->llc_first, m->n_llcs}, {&sp->node_first, m->n_nodes}, {&sp->cursor, ASYM_MAX(m->n_llcs, m->n_nodes)},
        {&sp->extra, m->n_cores},    {&sp->list, in->n_threads},    {&sp->scratch, ASYM_MAX(in->n_threads, m->n_cpus)},
    };
    *sp = (struct asym_spread){.in = in, .ret = ret};
    int r = 0;
    for (size_t i = 0; i < ASYM_LENGTH(fields); i++)
        if (!(*fields[i].field = asym_arena_take(a, fields[i].n + 1, sizeof(uint32_t))))
            r = -ENOBUFS;
    if (r < 0)
        return r;
    ASYM_MASK_FOREACH (c, &m->usable)
        sp->order[sp->n_order++] = (uint32_t)c;
    asym_sort_index(sp->order, sp->n_order, sp->scratch, by_place, m);
    find_groups(sp);
    for (size_t t = 0; t < in->n_threads; t++)
        ret[t] = (struct asym_assignment){.cpu = -1};
    return 0;
}

static void put(struct asym_spread *sp, uint32_t t, int32_t cpu)
{
    sp->ret[t].cpu = cpu;
    sp->load[cpu]++;
    sp->core_load[sp->in->machine->cpus[cpu].core]++;
}

/* How far from home, and how crowded: lower is better. */
static uint64_t cost_of(const struct asym_spread *sp, int home, int cpu)
{
    const struct asym_cpu *c = &sp->in->machine->cpus[cpu];
    uint64_t far = 3;
    if (cpu == home) {
        far = 0;
    } else if (home >= 0) {
        const struct asym_cpu *h = &sp->in->machine->cpus[home];
        far = h->llc == c->llc ? 1 : h->node == c->node ? 2 : 3;
    }
    return (uint64_t)sp->core_load[c->core] << 32 | (uint64_t)c->type << 16 | far << 8 | c->smt_rank;
}

static uint32_t most_siblings(const struct asym_machine *m, const struct asym_mask *cpus)
{
    uint32_t most = 1;
    ASYM_MASK_FOREACH (c, cpus)
        most = ASYM_MAX(most, m->cpus[c].smt_rank + 1u);
    return most;
}

static void take(struct asym_spread *sp, uint32_t t, int cpu, struct asym_mask *avail)
{
    put(sp, t, cpu);
    asym_mask_clear(avail, (unsigned)cpu);
}

static size_t keep_homes(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail,
                         uint32_t level)
{
    size_t given = 0;
    for (size_t i = 0; i < n; i++) {
        int home = sp->in->threads[list[i]].home;
        if (sp->ret[list[i]].cpu >= 0 || !asym_mask_has(avail, home) ||
            sp->core_load[sp->in->machine->cpus[home].core] > level)
            continue;
        take(sp, list[i], home, avail);
        given++;
    }
    return given;
}

static int cheapest(const struct asym_spread *sp, const struct asym_policy_thread *t, const struct asym_mask *avail,
                    uint32_t level)
{
    struct asym_mask open = asym_mask_and(avail, t->may);
    int best = -1;
    ASYM_MASK_FOREACH (c, &open)
        if (sp->core_load[sp->in->machine->cpus[c].core] <= level &&
            (best < 0 || cost_of(sp, t->home, c) < cost_of(sp, t->home, best)))
            best = c;
    return best;
}

/*
 * Cores fill level by level: whoever stays at home on a core with level threads must know that no core with fewer is open
 * to those that come later, or a second plan would move the third sibling of a core to another's place.
 */
size_t asym_spread_give(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail)
{
    size_t room = asym_mask_count(avail), given = 0;
    uint32_t most = most_siblings(sp->in->machine, avail);
    for (uint32_t level = 0; level < most && given < room; level++) {
        /* Those that will surely get one keep their home first, or another would take it from under them. */
        given += keep_homes(sp, list, ASYM_MIN(n, room), avail, level);
        for (size_t i = 0; i < n && given < room; i++) {
            int cpu = sp->ret[list[i]].cpu >= 0 ? -1 : cheapest(sp, &sp->in->threads[list[i]], avail, level);
            if (cpu < 0)
                continue;
            take(sp, list[i], cpu, avail);
            given++;
        }
    }
    return given;
}

/* One set of threads with equal masks being placed on the same CPUs. */
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

/* The highest level that the group can fill all its CPUs up to. */
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
 * A round fills CPUs of one kind: below the level (type -1), or at it, of one core type, on cores with fewer extras than
 * limit. Within a round CPUs only ever drop out, so that the cursors never go back.
 */
struct round {
    int type;
    uint32_t limit;
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
    put(sp, t, cpu);
    if (r->type >= 0) {
        g->extras--;
        sp->extra[sp->in->machine->cpus[cpu].core]++;
    }
}

enum nearness { AT_HOME, SAME_LLC, SAME_NODE, ANYWHERE };

/* The next open CPU of the thread's LLC, of its node, or of all; -1: none. */
static int next_open(struct asym_spread *sp, const struct group *g, const struct round *r, int home, enum nearness near)
{
    const struct asym_machine *m = sp->in->machine;
    uint32_t zero = 0, *cursor = &sp->cursor[0];
    const uint32_t *first = &zero;
    if (near != ANYWHERE && home < 0)
        return -1;
    if (near == SAME_LLC) {
        cursor = &sp->cursor[m->cpus[home].llc];
        first = &sp->llc_first[m->cpus[home].llc];
    } else if (near == SAME_NODE) {
        cursor = &sp->cursor[m->cpus[home].node];
        first = &sp->node_first[m->cpus[home].node];
    }
    for (uint32_t i = *first + *cursor; i < sp->n_order; i = *first + ++*cursor) {
        const struct asym_cpu *c = &m->cpus[sp->order[i]];
        if ((near == SAME_LLC && c->llc != m->cpus[home].llc) || (near == SAME_NODE && c->node != m->cpus[home].node))
            return -1;
        if (open_in(sp, g, r, (int)sp->order[i]))
            return (int)sp->order[i];
    }
    return -1;
}

static void run_round(struct asym_spread *sp, struct group *g, const struct round *r)
{
    const struct asym_machine *m = sp->in->machine;
    for (enum nearness near = AT_HOME; near <= ANYWHERE; near++) {
        memset(sp->cursor, 0, (ASYM_MAX(m->n_llcs, m->n_nodes) + 1) * sizeof *sp->cursor);
        for (size_t i = 0; i < g->n; i++) {
            uint32_t t = g->threads[i];
            int home = sp->in->threads[t].home;
            if (sp->ret[t].cpu >= 0)
                continue;
            if (r->type >= 0 && g->extras == 0)
                return;
            int cpu = home;
            if (near != AT_HOME)
                cpu = next_open(sp, g, r, home, near);
            else if (home < 0 || !open_in(sp, g, r, home))
                cpu = -1;
            if (cpu >= 0)
                put_in(sp, g, r, t, cpu);
            else if (near == ANYWHERE)
                return;
        }
    }
}

static void place_group(struct asym_spread *sp, struct group *g)
{
    const struct asym_machine *m = sp->in->machine;
    find_level(sp, g);
    run_round(sp, g, &(struct round){.type = -1});
    memset(sp->extra, 0, m->n_cores * sizeof *sp->extra);
    /* What other threads have put above the level on a core counts too. */
    ASYM_MASK_FOREACH (c, &g->cpus)
        sp->extra[m->cpus[c].core] += sp->load[c] > g->level;
    uint32_t most = most_siblings(m, &g->cpus);
    for (uint32_t limit = 1; limit <= most && g->extras > 0; limit++)
        for (unsigned t = 0; t < m->n_types && g->extras > 0; t++)
            if (asym_mask_meets(&g->cpus, &m->types[t].cpus))
                run_round(sp, g, &(struct round){.type = (int)t, .limit = limit});
}

/* Few choices first; then by content, so that the order does not depend on addresses. */
static int by_mask(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_policy_thread *threads = ctx;
    const struct asym_mask *x = threads[a].may, *y = threads[b].may;
    if (x == y)
        return 0;
    unsigned n = asym_mask_count(x), k = asym_mask_count(y);
    return n != k ? (n < k ? -1 : 1) : memcmp(x, y, sizeof *x);
}

void asym_spread_even(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            sp->list[left++] = list[i];
    asym_sort_index(sp->list, left, sp->scratch, by_mask, sp->in->threads);
    for (size_t first = 0, end; first < left; first = end) {
        const struct asym_mask *may = sp->in->threads[sp->list[first]].may;
        for (end = first; end < left && sp->in->threads[sp->list[end]].may == may;)
            end++;
        struct group g = {.threads = sp->list + first, .n = end - first, .cpus = asym_mask_and(may, cpus)};
        if (asym_mask_empty(&g.cpus))
            g.cpus = *may;
        place_group(sp, &g);
    }
}

void asym_spread_mend(struct asym_spread *sp)
{
    const struct asym_machine *m = sp->in->machine;
    struct asym_mask idle = {0};
    ASYM_MASK_FOREACH (c, &m->fast)
        if (sp->load[c] == 0)
            asym_mask_set(&idle, (unsigned)c);
    for (size_t t = 0; t < sp->in->n_threads && !asym_mask_empty(&idle); t++) {
        int32_t from = sp->ret[t].cpu;
        if (from < 0 || asym_mask_has(&m->fast, from) || sp->load[from] < 2)
            continue;
        struct asym_mask open = asym_mask_and(&idle, sp->in->threads[t].may);
        int to = asym_mask_next(&open, 0);
        if (to < 0)
            continue;
        sp->load[from]--;
        sp->core_load[m->cpus[from].core]--;
        put(sp, (uint32_t)t, to);
        asym_mask_clear(&idle, (unsigned)to);
    }
}
