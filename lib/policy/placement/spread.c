/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/spread.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread-internal.h"

/* State of the search for sets: sizes and slots are needed only during the search. */
struct finder {
    struct asym_spread *sp;
    const struct asym_mask **found;
    uint32_t *size;
    struct asym_hash index;
};

/* Small sets come first, because they have the fewest choices. Ties go by content, so that the order does not depend on
 * addresses. */
static int by_choices(uint32_t a, uint32_t b, const void *ctx)
{
    const struct finder *f = ctx;
    if (f->size[a] != f->size[b])
        return f->size[a] < f->size[b] ? -1 : 1;
    return memcmp(f->found[a], f->found[b], sizeof *f->found[a]);
}

static uint32_t find_set(struct finder *f, const struct asym_mask *allowed)
{
    const uint32_t hash = asym_hash_of_u64((uint64_t)(uintptr_t)allowed);
    ASYM_HASH_FOREACH (set, &f->index, hash)
        if (f->found[set] == allowed)
            return (uint32_t)set;
    const uint32_t set = f->sp->n_sets++;
    f->found[set] = allowed;
    f->size[set] = asym_mask_count(allowed);
    asym_hash_add(&f->index, hash, set);
    return set;
}

static void find_sets(struct finder *f)
{
    struct asym_spread *sp = f->sp;
    const struct asym_policy_input *in = sp->in;
    for (size_t t = 0; t < in->n_threads; t++) {
        bool same = t > 0 && in->threads[t].allowed == in->threads[t - 1].allowed;
        sp->set_of[t] = same ? sp->set_of[t - 1] : find_set(f, in->threads[t].allowed);
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

/* An LLC that spans nodes stands in several places of the order; only the first place counts as the LLC. */
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

/* Continue after a failed take, so that the arena learns the total size that is needed. */
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
    };
    int r = 0;
    for (size_t i = 0; i < ASYM_LENGTH(fields); i++)
        if (!(*fields[i].field = asym_arena_take(sp->in->arena, fields[i].n + 1, sizeof(uint32_t))))
            r = -ENOBUFS;
    sp->sets = asym_arena_take(sp->in->arena, n + 1, sizeof *sp->sets);
    f->found = asym_arena_take(sp->in->arena, n + 1, sizeof *f->found);
    const size_t n_slots = asym_hash_slots_for(n);
    struct asym_hash_slot *slots = asym_arena_take(sp->in->arena, n_slots, sizeof *slots);
    if (slots)
        asym_hash_init_in(&f->index, slots, n_slots);
    return sp->sets && f->found && slots ? r : -ENOBUFS;
}

int asym_spread_init(struct asym_spread *sp, const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct finder f = {.sp = sp};
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

/* The CPUs of avail on cores that have at most `most` threads. */
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
    asym_mask_clear(&l->open, (unsigned)cpu); /* a sibling was taken since */
    return false;
}

/* The cost compares, in this order: threads on the core, speed, whether another thread would lose its preferred CPU, distance,
 * sibling rank, favour. */
static uint64_t cost_of(const struct asym_spread *sp, int preferred_cpu, int cpu)
{
    const struct asym_cpu *c = &sp->in->machine->cpus[cpu];
    uint64_t far = asym_nearness(sp->in->machine, preferred_cpu, cpu), wanted = sp->extra[c->core] > 0;
    return (uint64_t)sp->core_load[c->core] << 32 | (uint64_t)c->type << 24 | wanted << 23 | far << 16 |
           (uint64_t)c->smt_rank << 8 | c->rank;
}

static int cheapest(struct asym_spread *sp, uint32_t t, struct level *l)
{
    const struct asym_policy_thread *thread = &sp->in->threads[t];
    struct asym_mask open = asym_mask_and(&l->open, thread->allowed);
    uint64_t least = UINT64_MAX;
    int best = -1;
    ASYM_MASK_FOREACH (c, &open) {
        if (!is_open(sp, l, c))
            continue;
        uint64_t cost = cost_of(sp, thread->preferred_cpu, c);
        if (cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

/* Count the threads that are sure of a CPU: their preferred CPUs stay free for them as long as there is another choice. */
static void note_preferred_cpus(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    memset(sp->want, 0, m->n_cpus * sizeof *sp->want);
    memset(sp->extra, 0, m->n_cores * sizeof *sp->extra);
    for (size_t i = 0; i < n; i++) {
        int preferred_cpu = sp->in->threads[list[i]].preferred_cpu;
        if (!asym_mask_has(avail, preferred_cpu))
            continue;
        sp->want[preferred_cpu]++;
        sp->extra[m->cpus[preferred_cpu].core]++;
    }
}

/* A thread whose preferred CPU is free, on a core that already has a thread, moves only if no other thread must move. */
static int choose(struct asym_spread *sp, uint32_t t, struct level *l, const struct asym_mask *avail)
{
    int preferred_cpu = sp->in->threads[t].preferred_cpu;
    if (is_open(sp, l, preferred_cpu))
        return preferred_cpu;
    int cpu = cheapest(sp, t, l);
    if (cpu >= 0 && asym_mask_has(avail, preferred_cpu) && sp->extra[sp->in->machine->cpus[cpu].core] > 0)
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
        int preferred_cpu = sp->in->threads[list[i]].preferred_cpu;
        if (*dry || sp->ret[list[i]].cpu >= 0)
            continue;
        int cpu = choose(sp, list[i], l, avail);
        *dry = cpu < 0 && !asym_mask_has(avail, preferred_cpu);
        if (cpu < 0)
            continue;
        if (preferred_cpu >= 0 && sp->want[preferred_cpu] > 0) {
            sp->want[preferred_cpu]--;
            sp->extra[m->cpus[preferred_cpu].core]--;
        }
        asym_spread_put(sp, list[i], cpu);
        asym_mask_clear(avail, (unsigned)cpu);
        asym_mask_clear(&l->open, (unsigned)cpu);
    }
}

/*
 * In order of preference, each thread keeps its preferred CPU if that is open. So a thread that found no CPU finds none in a
 * second plan either, because the threads before it hold the same CPUs. Cores fill level by level, siblings last. Within a
 * level CPUs only close: if one thread of a set found none, the others of the set need not search again.
 */
void asym_spread_give(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail)
{
    /* The maximum is over all CPUs, because the siblings of CPUs in avail may have been taken before. */
    uint32_t most = asym_most_siblings(sp->in->machine, &sp->in->machine->usable);
    note_preferred_cpus(sp, list, ASYM_MIN(n, asym_mask_count(avail)), avail);
    for (struct level l = {.most = 0}; l.most < most; l.most++)
        fill_level(sp, list, n, &l, avail);
    memset(sp->want, 0, sp->in->machine->n_cpus * sizeof *sp->want);
}

static bool is_worse(const struct asym_cpu *from, const struct asym_cpu *to)
{
    return from->type != to->type ? from->type > to->type : from->rank > to->rank;
}

/* The first thread of list on a worse CPU takes this one. A master stays: its phases may be too short to justify a move. */
static bool offer(struct asym_spread *sp, const uint32_t *list, size_t n, int cpu, struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    for (size_t i = 0; i < n; i++) {
        const struct asym_policy_thread *thread = &sp->in->threads[list[i]];
        const int32_t from = sp->ret[list[i]].cpu;
        if (from < 0 || thread->master || !asym_mask_has(thread->allowed, cpu) ||
            !is_worse(&m->cpus[from], &m->cpus[cpu]))
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

/* Offer the free cores among these CPUs whose CPU has this rank. Returns true if a thread moved. */
static bool offer_rank(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus,
                       unsigned rank, struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    const struct asym_mask open = asym_mask_and(cpus, avail);
    bool moved = false;
    ASYM_MASK_FOREACH (c, &open)
        if (m->cpus[c].rank == rank && sp->core_load[m->cpus[c].core] == 0)
            moved = offer(sp, list, n, c, avail) || moved;
    return moved;
}

/*
 * Offer the free cores, best first. A CPU that a move frees is worse than the one that the thread takes, and is offered
 * later, so after one pass no thread can improve. Returns true if a thread moved.
 */
static bool offer_all(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *avail)
{
    const struct asym_machine *m = sp->in->machine;
    bool moved = false;
    for (unsigned t = 0; t < m->n_types; t++) {
        const unsigned ranks = count_ranks(m, &m->types[t].cpus);
        for (unsigned rank = 0; rank < ranks; rank++)
            moved = offer_rank(sp, list, n, &m->types[t].cpus, rank, avail) || moved;
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

/* A CPU that a move frees may be the only choice of another thread, so the steps repeat. The loop ends, because each pass
 * except the last places a thread. */
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

void asym_spread_fill_idle_fast(struct asym_spread *sp)
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
        if (*dry || from < 0 || asym_mask_has(&m->fast, from) || sp->load[from] < 2 || (sp->stays && sp->stays[t]))
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
