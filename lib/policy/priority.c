/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * By priority (Roehrich 2007, 3.3.2). The thread of the highest priority is on the fastest CPU, and none of a lower one has
 * more effective speed, that is speed / threads on its CPU. Priority is the nice value, then who started first.
 *
 * A CPU may have floor(faster / slower speed) times as many threads as its slower neighbour: all pulls of the source, the
 * highest of a slower neighbour, the lowest of a faster one, end in such counts, and only in those the second promise holds.
 * So the counts are worked out first, for core types: one thread each from the fastest CPU down; any further one to the
 * fastest CPU whose neighbour allows it. Then threads take their places in the order of their priority. Who comes or goes
 * moves few others, about one from each place in the order to the next, however near the speeds: the floor is the margin
 * that keeps threads from following every change (3.3.1). Among CPUs of one speed and count a thread stays at home.
 *
 * What differs from the source. Its text to figure 3.5 calls two threads beside one an imbalance between one pair of
 * neighbours and balanced between the other, which holds if only the first have speeds of ratio 1; it is read so. A
 * thread whose CPUs are all full shares the one that leaves it most speed.
 */
#include <asym/policy.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/balance.h"
#include "policy/spread-internal.h"
#include "policy/spread.h"

/* A quotient of speeds this little below a whole number is that number. */
#define ROUNDING 1e-6

struct state {
    struct asym_mask high; /* CPUs that have one thread more than others of their type */
};

struct key {
    uint64_t start;
    int32_t nice, tid;
};

/* CPUs of one type and count; the fastest first, of a type those with fewer threads. */
struct class
{
    struct asym_mask open;  /* have a place */
    struct asym_mask spare; /* have one that is not kept for who is at home there */
    uint32_t places;
};

enum { MOST_CLASSES = 2 * ASYM_MAX_TYPES };

struct ranks {
    struct asym_spread sp;
    struct key *keys;          /* of each thread */
    uint32_t *order, *scratch; /* threads, the highest priority first */
    bool *kept;                /* of each thread: a place at home is kept for it */
    uint32_t *free, *reserved; /* places of each CPU; and those kept */
    uint32_t *class_of;        /* of each CPU */
    uint32_t *top;             /* of each CPU: the rank of the first who is at home there, from 1; 0: nobody is */
    uint32_t *cpus;            /* of a type */
    struct asym_mask *llcs, *nodes;
    struct class *classes;
    uint32_t n_classes;
    struct asym_mask high;
};

static int take_memory(struct ranks *r, const struct asym_policy_input *in)
{
    const struct asym_machine *m = in->machine;
    uint32_t **const per_cpu[] = {&r->free, &r->reserved, &r->class_of, &r->top, &r->cpus};
    int result = 0;
    for (size_t i = 0; i < ASYM_LENGTH(per_cpu); i++)
        if (!(*per_cpu[i] = asym_arena_take(in->arena, m->n_cpus, sizeof **per_cpu[i])))
            result = -ENOBUFS;
    r->keys = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r->keys);
    r->order = asym_spread_all(in);
    r->scratch = asym_arena_take(in->arena, ASYM_MAX(in->n_threads, m->n_cpus) + 1, sizeof *r->scratch);
    r->kept = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r->kept);
    r->llcs = asym_arena_take(in->arena, m->n_llcs, sizeof *r->llcs);
    r->nodes = asym_arena_take(in->arena, m->n_nodes, sizeof *r->nodes);
    r->classes = asym_arena_take(in->arena, MOST_CLASSES, sizeof *r->classes);
    return r->keys && r->order && r->scratch && r->kept && r->llcs && r->nodes && r->classes ? result : -ENOBUFS;
}

static int by_priority(uint32_t a, uint32_t b, const void *ctx)
{
    const struct ranks *r = ctx;
    const struct key *x = &r->keys[a], *y = &r->keys[b];
    if (x->nice != y->nice)
        return x->nice < y->nice ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void sort(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    for (size_t t = 0; t < in->n_threads; t++) {
        const struct asym_policy_thread *thread = &in->threads[t];
        r->keys[t] = (struct key){.start = thread->id.start, .nice = thread->nice, .tid = thread->id.tid};
    }
    asym_sort_index(r->order, in->n_threads, r->scratch, by_priority, r);
    for (uint32_t i = (uint32_t)in->n_threads; i-- > 0;)
        if (in->threads[r->order[i]].home >= 0)
            r->top[in->threads[r->order[i]].home] = i + 1;
}

/* --- counts --- */

/* How many threads the types up to t take when t itself takes n; no more than enough. */
static uint64_t capacity(const struct asym_machine *m, unsigned t, uint64_t n, uint64_t enough)
{
    uint64_t sum = n;
    while (t-- > 0 && sum < enough) {
        const uint64_t ratio = (uint64_t)(m->types[t].speed / m->types[t + 1].speed + ROUNDING);
        const uint64_t least = n / asym_mask_count(&m->types[t + 1].cpus);
        n = asym_mask_count(&m->types[t].cpus) * ASYM_MAX(1, ratio * least);
        sum += n;
    }
    return ASYM_MIN(sum, enough);
}

/* The fewest that type t can have when it and the faster ones have n; one for each CPU at least, as long as there are. */
static uint64_t fewest(const struct asym_machine *m, unsigned t, uint64_t n)
{
    uint64_t faster = 0, cpus = asym_mask_count(&m->types[t].cpus);
    for (unsigned k = 0; k < t; k++)
        faster += asym_mask_count(&m->types[k].cpus);
    if (n <= faster + cpus)
        return n > faster ? n - faster : 0;
    uint64_t lo = cpus - 1, hi = n;
    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (capacity(m, t, mid, n) >= n)
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

/* Who had one more has it again, then a first sibling; then whose threads are of the lowest priority: the others stay. */
static int by_claim_to_more(uint32_t a, uint32_t b, const void *ctx)
{
    const struct ranks *r = ctx;
    const struct state *state = r->sp.in->state;
    const struct asym_cpu *cpus = r->sp.in->machine->cpus;
    const int had = asym_mask_has(&state->high, (int)b) - asym_mask_has(&state->high, (int)a);
    if (had != 0)
        return had;
    if (cpus[a].smt_rank != cpus[b].smt_rank)
        return cpus[a].smt_rank - cpus[b].smt_rank;
    return r->top[a] > r->top[b] ? -1 : r->top[a] < r->top[b];
}

/* Type t takes n threads: some of its CPUs one more than the others. */
static void divide(struct ranks *r, unsigned t, uint64_t n)
{
    const struct asym_core_type *type = &r->sp.in->machine->types[t];
    uint32_t *const list = r->cpus, n_cpus = 0;
    ASYM_MASK_FOREACH (c, &type->cpus)
        list[n_cpus++] = (uint32_t)c;
    const uint32_t extra = (uint32_t)(n % n_cpus), each = (uint32_t)(n / n_cpus);
    if (extra > 0)
        asym_sort_index(list, n_cpus, r->scratch, by_claim_to_more, r);
    for (uint32_t i = 0; i < n_cpus; i++) {
        const uint32_t class = r->class_of[list[i]] = 2 * t + (i < extra);
        r->free[list[i]] = each + (i < extra);
        r->classes[class].places += r->free[list[i]];
        if (i < extra)
            asym_mask_set(&r->high, list[i]);
    }
}

static void count(struct ranks *r)
{
    const struct asym_machine *m = r->sp.in->machine;
    uint64_t n = r->sp.in->n_threads;
    for (unsigned t = m->n_types; t-- > 0;) {
        const uint64_t mine = t > 0 ? fewest(m, t, n) : n;
        divide(r, t, mine);
        n -= mine;
    }
    r->n_classes = 2 * m->n_types;
    ASYM_MASK_FOREACH (c, &m->usable) {
        asym_mask_set(&r->llcs[m->cpus[c].llc], (unsigned)c);
        asym_mask_set(&r->nodes[m->cpus[c].node], (unsigned)c);
    }
}

/* --- places --- */

static void note_places(struct ranks *r, int cpu)
{
    struct class *k = &r->classes[r->class_of[cpu]];
    if (r->free[cpu] > 0)
        asym_mask_set(&k->open, (unsigned)cpu);
    else
        asym_mask_clear(&k->open, (unsigned)cpu);
    if (r->free[cpu] > r->reserved[cpu])
        asym_mask_set(&k->spare, (unsigned)cpu);
    else
        asym_mask_clear(&k->spare, (unsigned)cpu);
}

/* Keep places for those that will be at home where they are going to be, so that nobody else takes them. */
static void reserve(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    uint32_t class = 0, left = r->classes[0].places;
    for (size_t i = 0; i < in->n_threads; i++) {
        while (left == 0 && class + 1 < r->n_classes)
            left = r->classes[++class].places;
        left--;
        const int home = in->threads[r->order[i]].home;
        if (home < 0 || r->class_of[home] != class || r->reserved[home] == r->free[home])
            continue;
        r->reserved[home]++;
        r->kept[r->order[i]] = true;
    }
    ASYM_MASK_FOREACH (c, &in->machine->usable)
        note_places(r, c);
}

static int nearest(const struct ranks *r, int home, const struct asym_mask *cpus)
{
    const struct asym_machine *m = r->sp.in->machine;
    for (enum asym_nearness near = ASYM_SAME_LLC; home >= 0 && near <= ASYM_SAME_NODE; near++) {
        const struct asym_mask *there = near == ASYM_SAME_LLC ? &r->llcs[m->cpus[home].llc]
                                                              : &r->nodes[m->cpus[home].node];
        const struct asym_mask close = asym_mask_and(cpus, there);
        const int cpu = asym_mask_next(&close, 0);
        if (cpu >= 0)
            return cpu;
    }
    return asym_mask_next(cpus, 0);
}

/* All that it may have is full. */
static int most_speed(const struct ranks *r, uint32_t t)
{
    const struct asym_policy_thread *thread = &r->sp.in->threads[t];
    const struct asym_machine *m = r->sp.in->machine;
    double most = 0;
    int best = -1;
    ASYM_MASK_FOREACH (c, thread->may) {
        const double speed = asym_balance_speed(m, c) / (r->sp.load[c] + 1);
        const bool nearer = best < 0 || asym_nearness(m, thread->home, c) < asym_nearness(m, thread->home, best);
        if (speed > most || (speed == most && nearer)) {
            most = speed;
            best = c;
        }
    }
    return best;
}

static int choose(struct ranks *r, uint32_t t)
{
    const struct asym_policy_thread *thread = &r->sp.in->threads[t];
    /* places only become fewer: where a thread with the same choice found nothing there still is nothing */
    uint32_t *class = &r->sp.set_mark[r->sp.set_of[t]];
    while (*class < r->n_classes && !asym_mask_meets(&r->classes[*class].open, thread->may))
        ++*class;
    if (*class == r->n_classes)
        return most_speed(r, t);
    const struct class *k = &r->classes[*class];
    if (asym_mask_has(&k->open, thread->home))
        return thread->home;
    struct asym_mask cpus = asym_mask_and(&k->spare, thread->may);
    if (asym_mask_empty(&cpus))
        cpus = asym_mask_and(&k->open, thread->may);
    return nearest(r, thread->home, &cpus);
}

static void place(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    memset(r->sp.set_mark, 0, r->sp.n_sets * sizeof *r->sp.set_mark);
    for (size_t i = 0; i < in->n_threads; i++) {
        const uint32_t t = r->order[i];
        if (r->kept[t]) {
            r->reserved[in->threads[t].home]--;
            note_places(r, in->threads[t].home);
        }
        const int cpu = choose(r, t);
        asym_spread_put(&r->sp, t, cpu);
        r->free[cpu] -= r->free[cpu] > 0;
        note_places(r, cpu);
        struct asym_assignment *a = &r->sp.ret[t];
        const bool slow_only = asym_machine_is_asymmetric(in->machine) &&
                               asym_spread_reach(&r->sp, t) == ASYM_REACH_SLOW;
        a->reason = slow_only ? ASYM_WHY_NO_FAST : ASYM_WHY_RANK;
        a->figure[0] = (double)(i + 1);
        a->figure[1] = (double)in->n_threads;
    }
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct state *state = in->state;
    struct ranks r = {0};
    int result = asym_spread_init(&r.sp, in, ret);
    if (take_memory(&r, in) < 0 || result < 0)
        return -ENOBUFS;
    sort(&r);
    count(&r);
    reserve(&r);
    place(&r);
    asym_spread_mend(&r.sp);
    state->high = r.high;
    return 0;
}

extern const struct asym_policy asym_policy_priority;
const struct asym_policy asym_policy_priority = {
    .name = "priority",
    .summary = "the higher the priority, the faster the CPU; who ranks lower never gets more speed",
    .source = "Roehrich 2007, 3.3.2",
    .pin = ASYM_PIN_CPU,
    .state_size = sizeof(struct state),
    .plan = plan,
};
