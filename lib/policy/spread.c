/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/spread.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/spread-internal.h"

/* Finding sets: sizes and slots are needed only while they are found. */
struct finder {
    struct asym_spread *sp;
    const struct asym_mask **found;
    uint32_t *size, *slots;
    uint32_t n_slots;
};

/* Small sets first: they have the fewest choices. Then by content, so that the order does not depend on addresses. */
static int by_choices(uint32_t a, uint32_t b, const void *ctx)
{
    const struct finder *f = ctx;
    if (f->size[a] != f->size[b])
        return f->size[a] < f->size[b] ? -1 : 1;
    return memcmp(f->found[a], f->found[b], sizeof *f->found[a]);
}

static uint32_t find_set(struct finder *f, const struct asym_mask *may)
{
    uint64_t h = (uint64_t)(uintptr_t)may * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t slot = (uint32_t)(h >> 32) & (f->n_slots - 1);
    for (; f->slots[slot] != 0; slot = (slot + 1) & (f->n_slots - 1))
        if (f->found[f->slots[slot] - 1] == may)
            return f->slots[slot] - 1;
    uint32_t set = f->sp->n_sets++;
    f->found[set] = may;
    f->size[set] = asym_mask_count(may);
    f->slots[slot] = set + 1;
    return set;
}

static void find_sets(struct finder *f)
{
    struct asym_spread *sp = f->sp;
    const struct asym_policy_input *in = sp->in;
    for (size_t t = 0; t < in->n_threads; t++) {
        bool same = t > 0 && in->threads[t].may == in->threads[t - 1].may;
        sp->set_of[t] = same ? sp->set_of[t - 1] : find_set(f, in->threads[t].may);
    }
    for (uint32_t i = 0; i < sp->n_sets; i++)
        sp->list[i] = i;
    asym_sort_index(sp->list, sp->n_sets, sp->scratch, by_choices, f);
    for (uint32_t i = 0; i < sp->n_sets; i++) {
        sp->sets[i] = f->found[sp->list[i]];
        sp->set_reach[i] = (asym_mask_meets(sp->sets[i], &in->machine->fast) ? ASYM_REACH_FAST : 0) |
                           (asym_mask_meets(sp->sets[i], &in->machine->slow) ? ASYM_REACH_SLOW : 0);
        sp->set_mark[sp->list[i]] = i;
    }
    for (size_t t = 0; t < in->n_threads; t++)
        sp->set_of[t] = sp->set_mark[sp->set_of[t]];
}

static int by_place(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_machine *m = ctx;
    const struct asym_cpu *x = &m->cpus[a], *y = &m->cpus[b];
    if (x->node != y->node)
        return x->node - y->node;
    if (x->llc != y->llc)
        return x->llc - y->llc;
    return x->smt_rank != y->smt_rank ? x->smt_rank - y->smt_rank : x->rank - y->rank;
}

/* An LLC that spans nodes would stand in several places: its later places then count as no LLC of their own. */
static void find_places(struct asym_spread *sp)
{
    const struct asym_machine *m = sp->in->machine;
    ASYM_MASK_FOREACH (c, &m->usable)
        sp->order[sp->n_order++] = (uint32_t)c;
    asym_sort_index(sp->order, sp->n_order, sp->scratch, by_place, m);
    for (uint32_t i = sp->n_order; i-- > 0;) {
        sp->llc_first[m->cpus[sp->order[i]].llc] = i;
        sp->node_first[m->cpus[sp->order[i]].node] = i;
    }
}

/* A take that fails does not end it: the arena then knows what all of them would have wanted. */
static int take_memory(struct asym_spread *sp, struct finder *f)
{
    const struct asym_machine *m = sp->in->machine;
    const size_t n = sp->in->n_threads, groups = ASYM_MAX(m->n_llcs, m->n_nodes);
    const struct {
        uint32_t **field;
        size_t n;
    } fields[] = {
        {&sp->load, m->n_cpus},
        {&sp->core_load, m->n_cores},
        {&sp->order, m->n_cpus},
        {&sp->llc_first, m->n_llcs},
        {&sp->node_first, m->n_nodes},
        {&sp->cursor, groups},
        {&sp->extra, m->n_cores},
        {&sp->want, m->n_cpus},
        {&sp->list, n},
        {&sp->scratch, ASYM_MAX(n, m->n_cpus)},
        {&sp->set_of, n},
        {&sp->set_mark, n + 1},
        {&sp->set_reach, n},
        {&f->size, n},
        {&f->slots, f->n_slots},
    };
    int r = 0;
    for (size_t i = 0; i < ASYM_LENGTH(fields); i++)
        if (!(*fields[i].field = asym_arena_take(sp->in->arena, fields[i].n + 1, sizeof(uint32_t))))
            r = -ENOBUFS;
    sp->sets = asym_arena_take(sp->in->arena, n + 1, sizeof *sp->sets);
    f->found = asym_arena_take(sp->in->arena, n + 1, sizeof *f->found);
    return sp->sets && f->found ? r : -ENOBUFS;
}

int asym_spread_init(struct asym_spread *sp, const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct finder f = {.sp = sp, .n_slots = 64};
    while (f.n_slots < 2 * in->n_threads)
        f.n_slots *= 2;
    *sp = (struct asym_spread){.in = in, .ret = ret};
    int r = take_memory(sp, &f);
    if (r < 0)
        return r;
    find_places(sp);
    find_sets(&f);
    for (size_t t = 0; t < in->n_threads; t++)
        ret[t] = (struct asym_assignment){.cpu = -1};
    return 0;
}

uint32_t *asym_spread_all(const struct asym_policy_input *in)
{
    uint32_t *all = asym_arena_take(in->arena, in->n_threads + 1, sizeof *all);
    for (size_t t = 0; all && t < in->n_threads; t++)
        all[t] = (uint32_t)t;
    return all;
}

size_t asym_spread_able(struct asym_spread *sp, uint32_t *list, size_t n, const struct asym_mask *cpus)
{
    size_t able = 0, others = 0;
    for (uint32_t i = 0; i < sp->n_sets; i++)
        sp->set_mark[i] = asym_mask_meets(sp->sets[i], cpus);
    for (size_t i = 0; i < n; i++) {
        if (sp->set_mark[sp->set_of[list[i]]])
            list[able++] = list[i];
        else
            sp->scratch[others++] = list[i];
    }
    memcpy(list + able, sp->scratch, others * sizeof *list);
    return able;
}

/* The CPUs of avail on cores that have no more than level threads. */
struct level {
    struct asym_mask open;
    uint32_t most;
};

static bool is_open(struct asym_spread *sp, struct level *l, int cpu)
{
    if (!asym_mask_has(&l->open, cpu))
        return false;
    if (sp->core_load[sp->in->machine->cpus[cpu].core] <= l->most)
        return true;
    asym_mask_clear(&l->open, (unsigned)cpu); /* a sibling has been taken since */
    return false;
}

/* Crowding first, then speed, then whether another would have to leave its home, then the way there, then favour. */
static uint64_t cost_of(const struct asym_spread *sp, int home, int cpu)
{
    const struct asym_cpu *c = &sp->in->machine->cpus[cpu];
    uint64_t far = asym_nearness(sp->in->machine, home, cpu), wanted = sp->extra[c->core] > 0;
    return (uint64_t)sp->core_load[c->core] << 32 | (uint64_t)c->type << 24 | wanted << 23 | far << 16 |
           (uint64_t)c->smt_rank << 8 | c->rank;
}

static int cheapest(struct asym_spread *sp, uint32_t t, struct level *l)
{
    const struct asym_policy_thread *thread = &sp->in->threads[t];
    struct asym_mask open = asym_mask_and(&l->open, thread->may);
    uint64_t least = UINT64_MAX;
    int best = -1;
    ASYM_MASK_FOREACH (c, &open) {
        if (!is_open(sp, l, c))
            continue;
        uint64_t cost = cost_of(sp, thread->home, c);
        if (cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

/* Those that can count on a CPU: their homes are left to them as long as there is another choice. */
static void note_homes(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    memset(sp->want, 0, m->n_cpus * sizeof *sp->want);
    memset(sp->extra, 0, m->n_cores * sizeof *sp->extra);
    for (size_t i = 0; i < n; i++) {
        int home = sp->in->threads[list[i]].home;
        if (!asym_mask_has(avail, home))
            continue;
        sp->want[home]++;
        sp->extra[m->cpus[home].core]++;
    }
}

/* A thread whose home is free, but on a core that is no longer, moves only where nobody else would have to. */
static int choose(struct asym_spread *sp, uint32_t t, struct level *l, const struct asym_mask *avail)
{
    int home = sp->in->threads[t].home;
    if (is_open(sp, l, home))
        return home;
    int cpu = cheapest(sp, t, l);
    if (cpu >= 0 && asym_mask_has(avail, home) && sp->extra[sp->in->machine->cpus[cpu].core] > 0)
        return -1;
    return cpu;
}

static void fill_level(struct asym_spread *sp, const uint32_t *list, size_t n, struct level *l, struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    l->open = *avail;
    memset(sp->set_mark, 0, sp->n_sets * sizeof *sp->set_mark);
    for (size_t i = 0; i < n && !asym_mask_empty(&l->open); i++) {
        uint32_t *dry = &sp->set_mark[sp->set_of[list[i]]];
        int home = sp->in->threads[list[i]].home;
        if (*dry || sp->ret[list[i]].cpu >= 0)
            continue;
        int cpu = choose(sp, list[i], l, avail);
        *dry = cpu < 0 && !asym_mask_has(avail, home);
        if (cpu < 0)
            continue;
        if (home >= 0 && sp->want[home] > 0) {
            sp->want[home]--;
            sp->extra[m->cpus[home].core]--;
        }
        asym_spread_put(sp, list[i], cpu);
        asym_mask_clear(avail, (unsigned)cpu);
        asym_mask_clear(&l->open, (unsigned)cpu);
    }
}

/*
 * In order of preference, each keeps its home if that is open: so whoever found nothing finds nothing in a second plan
 * either, as those before it hold what they held. Cores fill level by level, siblings last. Within a level CPUs only ever
 * close, so that a set of threads of which one found none need not look again.
 */
void asym_spread_give(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail)
{
    /* of all CPUs: the siblings of those in avail may have been taken before */
    uint32_t most = asym_most_siblings(sp->in->machine, &sp->in->machine->usable);
    note_homes(sp, list, ASYM_MIN(n, asym_mask_count(avail)), avail);
    for (struct level l = {.most = 0}; l.most < most; l.most++)
        fill_level(sp, list, n, &l, avail);
    memset(sp->want, 0, sp->in->machine->n_cpus * sizeof *sp->want);
}

static bool is_worse(const struct asym_cpu *from, const struct asym_cpu *to)
{
    return from->type != to->type ? from->type > to->type : from->rank > to->rank;
}

/* The first of list that is on a worse CPU takes this one. A master stays: its phases may be shorter than a move is worth. */
static bool offer(struct asym_spread *sp, const uint32_t *list, size_t n, int cpu, struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    for (size_t i = 0; i < n; i++) {
        const struct asym_policy_thread *thread = &sp->in->threads[list[i]];
        const int32_t from = sp->ret[list[i]].cpu;
        if (from < 0 || thread->master || !asym_mask_has(thread->may, cpu) || !is_worse(&m->cpus[from], &m->cpus[cpu]))
            continue;
        sp->load[from]--;
        sp->core_load[m->cpus[from].core]--;
        asym_mask_set(avail, (unsigned)from);
        asym_spread_put(sp, list[i], cpu);
        asym_mask_clear(avail, (unsigned)cpu);
        return true;
    }
    return false;
}

static unsigned count_ranks(const struct asym_machine *m, const struct asym_mask *cpus)
{
    unsigned most = 0;
    ASYM_MASK_FOREACH (c, cpus)
        most = ASYM_MAX(most, m->cpus[c].rank + 1u);
    return most;
}

/*
 * Free cores are offered best first. A CPU that a move frees is worse than the one it takes, and is offered later: after one pass
 * no thread can better itself. True when one has.
 */
static bool offer_all(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    bool moved = false;
    for (unsigned t = 0; t < m->n_types; t++) {
        const unsigned ranks = count_ranks(m, &m->types[t].cpus);
        for (unsigned rank = 0; rank < ranks; rank++) {
            const struct asym_mask open = asym_mask_and(&m->types[t].cpus, avail);
            ASYM_MASK_FOREACH (c, &open)
                if (m->cpus[c].rank == rank && sp->core_load[m->cpus[c].core] == 0)
                    moved = offer(sp, list, n, c, avail) || moved;
        }
    }
    return moved;
}

static bool all_placed(const struct asym_spread *sp, const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sp->ret[list[i]].cpu < 0)
            return false;
    return true;
}

/* The CPU that a move frees may be the only one of another thread. It ends: each turn but the last one places a thread. */
void asym_spread_give_serial(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail)
{
    bool moved;
    size_t left;
    do {
        left = asym_mask_count(avail);
        asym_spread_give(sp, list, n, avail);
        left -= asym_mask_count(avail);
        moved = offer_all(sp, list, n, avail);
    } while (left > 0 && moved && !all_placed(sp, list, n));
}

void asym_spread_mend(struct asym_spread *sp)
{
    const struct asym_machine *m = sp->in->machine;
    struct level idle = {.most = UINT32_MAX};
    ASYM_MASK_FOREACH (c, &m->fast)
        if (sp->load[c] == 0)
            asym_mask_set(&idle.open, (unsigned)c);
    memset(sp->set_mark, 0, sp->n_sets * sizeof *sp->set_mark);
    memset(sp->extra, 0, m->n_cores * sizeof *sp->extra);
    for (uint32_t t = 0; t < sp->in->n_threads && !asym_mask_empty(&idle.open); t++) {
        int32_t from = sp->ret[t].cpu;
        uint32_t *dry = &sp->set_mark[sp->set_of[t]];
        if (*dry || from < 0 || asym_mask_has(&m->fast, from) || sp->load[from] < 2)
            continue;
        int to = cheapest(sp, t, &idle);
        *dry = to < 0;
        if (to < 0)
            continue;
        sp->load[from]--;
        sp->core_load[m->cpus[from].core]--;
        asym_spread_put(sp, t, to);
        asym_mask_clear(&idle.open, (unsigned)to);
    }
}
