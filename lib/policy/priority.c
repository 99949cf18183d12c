/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * By priority (Roehrich 2007, 3.3.2). The thread of the highest priority is on the fastest CPU, and no thread of lower
 * priority has more effective speed, that is speed / threads on its CPU. Priority is the nice value; on a tie the thread
 * that started first ranks higher.
 *
 * A CPU may have floor(faster / slower speed) times as many threads as its slower neighbour. In the source a CPU pulls the
 * highest thread of a slower neighbour or the lowest of a faster one; all such pulls end in these counts, and the second
 * promise holds in these counts only. So the policy first computes the counts, for rows of seats: one thread each from the
 * best seat down, then each further thread to the fastest CPU whose neighbour allows it. Then threads take their places
 * in the order of priority. A thread that comes or goes moves few others, about one from each place in the order to the
 * next, however near the speeds are: the floor is the margin that keeps threads from following every change (3.3.1). Among
 * CPUs of one speed and count a thread stays on its preferred CPU.
 *
 * Deviations from the source:
 * - Its text to figure 3.5 calls two threads beside one an imbalance between one pair of neighbours, but balanced between
 *   the other pair. This holds if only the first pair has speeds of ratio 1, and the policy reads it so.
 * - A thread whose CPUs are all full shares the CPU that leaves it the most speed.
 *
 * With neighbour_period the policy pulls as the source did, to compare with its measurements. A new thread stays where the
 * kernel began it. Once in the period each CPU compares itself with its neighbours in speed, and with no other CPU, so a
 * thread reaches the fastest CPU in hops of one CPU a period. Rule 3 does not hold meanwhile: a fast CPU is idle until its
 * neighbour has a thread for it. In the source each CPU has its own turn of 2 to 3 s; here all have theirs at once.
 */
#include <asym/policy.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/balance.h"
#include "policy/placement/spread.h"

/* The most that a ratio can be. No real CPUs differ so much; times a number of threads and of CPUs it fits in 64 bits. */
#define RATIO_MOST (1U << 20)

#define NO_THREAD  UINT32_MAX

struct params {
    asym_usec neighbour_period;
};

struct state {
    struct asym_mask high; /* CPUs that have one thread more than others of their type */
    asym_usec pulled;      /* time of the last pulls between neighbours */
};

struct key {
    uint64_t start;
    int32_t nice, tid;
};

/* CPUs of one group and thread count. Classes are sorted: the fastest group first; within a group, fewer threads first. */
struct class
{
    struct asym_mask open;  /* CPUs with a free place */
    struct asym_mask spare; /* CPUs with a free place that is not kept for a thread that prefers the CPU */
    uint32_t places;
};

enum { MOST_GROUPS = 2 * ASYM_MAX_TYPES, MOST_CLASSES = 2 * MOST_GROUPS };

struct ranks {
    struct asym_spread sp;
    struct key *keys;          /* per thread */
    uint32_t *order, *scratch; /* threads, the highest priority first */
    bool *kept;                /* per thread: a place on its preferred CPU is kept for it */
    uint32_t *free, *reserved; /* per CPU: free places; and how many of them are kept */
    uint32_t *class_of;        /* per CPU */
    uint32_t *top;             /* per CPU: rank of the highest thread that prefers it, from 1; 0: no thread does */
    uint32_t *first, *end;     /* per CPU: the part of scratch that has its threads, before pulls between neighbours */
    uint32_t *cpus;            /* the CPUs of one group */
    struct asym_mask *groups;  /* CPUs that are equally fast: see group_cpus */
    uint32_t n_groups;
    struct asym_mask *llcs, *nodes;
    struct class *classes;
    uint32_t n_classes;
    struct asym_mask high;
};

static void take_memory(struct ranks *r, const struct asym_policy_input *in)
{
    const struct asym_machine *m = in->machine;
    uint32_t **const per_cpu[] = {&r->free, &r->reserved, &r->class_of, &r->top, &r->cpus, &r->first, &r->end};
    for (size_t i = 0; i < ASYM_LENGTH(per_cpu); i++)
        *per_cpu[i] = asym_arena_take(in->arena, m->n_cpus, sizeof **per_cpu[i]);
    r->keys = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r->keys);
    r->order = asym_spread_all(in);
    r->scratch = asym_arena_take(in->arena, ASYM_MAX(in->n_threads, m->n_cpus) + 1, sizeof *r->scratch);
    r->kept = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r->kept);
    r->llcs = asym_arena_take(in->arena, m->n_llcs, sizeof *r->llcs);
    r->nodes = asym_arena_take(in->arena, m->n_nodes, sizeof *r->nodes);
    r->classes = asym_arena_take(in->arena, MOST_CLASSES, sizeof *r->classes);
    r->groups = asym_arena_take(in->arena, MOST_GROUPS, sizeof *r->groups);
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
        if (in->threads[r->order[i]].preferred_cpu >= 0)
            r->top[in->threads[r->order[i]].preferred_cpu] = i + 1;
}

/* --- counts --- */

/* While there is a seat for each thread, the groups are the rows of seats. When all CPUs are busy, CPUs of a type are equal. */
static void group_cpus(struct ranks *r)
{
    const struct asym_machine *m = r->sp.in->machine;
    const bool by_row = r->sp.in->n_threads <= asym_mask_count(&m->usable);
    const unsigned n = by_row ? m->n_rows : m->n_types;
    ASYM_MASK_FOREACH (c, &m->usable) {
        const unsigned row = asym_machine_row(m, c, m->cpus[c].smt_rank > 0);
        asym_mask_set(&r->groups[by_row ? row : (unsigned)m->cpus[c].type], (unsigned)c);
    }
    /* Where the first hardware thread of each core is of another type, as --slow may say, the row of this type has no CPU. */
    for (unsigned i = 0; i < n; i++)
        if (!asym_mask_empty(&r->groups[i]))
            r->groups[r->n_groups++] = r->groups[i];
}

/*
 * Returns floor(faster / slower), two speeds above 0: a machine of a record or of a scenario may have any speeds. A quotient that
 * is below a whole number only because a double is not exact counts as that number.
 */
static uint64_t ratio_between(const struct asym_machine *m, int faster, int slower)
{
    const double ratio = asym_balance_speed(m, faster) / asym_balance_speed(m, slower) + 1e-6;
    return ratio < RATIO_MOST ? (uint64_t)ratio : RATIO_MOST;
}

/* Returns how many times as many threads a CPU of group i may have as one of the next group, when all CPUs are busy. */
static uint64_t ratio_of(const struct ranks *r, unsigned i)
{
    const struct asym_machine *m = r->sp.in->machine;
    const int faster = asym_mask_next(&r->groups[i], 0), slower = asym_mask_next(&r->groups[i + 1], 0);
    return ASYM_MAX(1, ratio_between(m, faster, slower));
}

/* Returns how many threads the groups up to i take if i itself takes n; at most `enough`. */
static uint64_t capacity(const struct ranks *r, unsigned i, uint64_t n, uint64_t enough)
{
    uint64_t sum = n;
    while (i-- > 0 && sum < enough) {
        const uint64_t least = n / asym_mask_count(&r->groups[i + 1]);
        n = asym_mask_count(&r->groups[i]) * ASYM_MAX(1, ratio_of(r, i) * least);
        sum += n;
    }
    return ASYM_MIN(sum, enough);
}

/* Returns the fewest threads that group i can have if it and the groups before it have n. Each CPU gets one first. */
static uint64_t fewest(const struct ranks *r, unsigned i, uint64_t n)
{
    uint64_t before = 0, cpus = asym_mask_count(&r->groups[i]);
    for (unsigned k = 0; k < i; k++)
        before += asym_mask_count(&r->groups[k]);
    if (n <= before + cpus)
        return n > before ? n - before : 0;
    uint64_t lo = cpus - 1, hi = n;
    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (capacity(r, i, mid, n) >= n)
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

/* A CPU that had the extra thread gets it again. Next come first siblings, then CPUs with threads of the lowest priority,
 * so that the other threads stay. */
static int by_order_for_extra(uint32_t a, uint32_t b, const void *ctx)
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

/* Divide n threads over the CPUs of a group: some CPUs get one more than the others. */
static void divide(struct ranks *r, unsigned group, uint64_t n)
{
    uint32_t *const list = r->cpus, n_cpus = 0;
    ASYM_MASK_FOREACH (c, &r->groups[group])
        list[n_cpus++] = (uint32_t)c;
    const uint32_t extra = (uint32_t)(n % n_cpus), each = (uint32_t)(n / n_cpus);
    if (extra > 0)
        asym_sort_index(list, n_cpus, r->scratch, by_order_for_extra, r);
    for (uint32_t i = 0; i < n_cpus; i++) {
        const uint32_t class = r->class_of[list[i]] = 2 * group + (i < extra);
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
    group_cpus(r);
    for (unsigned i = r->n_groups; i-- > 0;) {
        const uint64_t mine = i > 0 ? fewest(r, i, n) : n;
        divide(r, i, mine);
        n -= mine;
    }
    r->n_classes = 2 * r->n_groups;
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

/* Keep a place for each thread whose preferred CPU is in the class that it will get, so that no other thread takes it. */
static void reserve(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    uint32_t class = 0, left = r->classes[0].places;
    for (size_t i = 0; i < in->n_threads; i++) {
        while (left == 0 && class + 1 < r->n_classes)
            left = r->classes[++class].places;
        left--;
        const int preferred_cpu = in->threads[r->order[i]].preferred_cpu;
        if (preferred_cpu < 0 || r->class_of[preferred_cpu] != class ||
            r->reserved[preferred_cpu] == r->free[preferred_cpu])
            continue;
        r->reserved[preferred_cpu]++;
        r->kept[r->order[i]] = true;
    }
    ASYM_MASK_FOREACH (c, &in->machine->usable)
        note_places(r, c);
}

static int nearest(const struct ranks *r, int preferred_cpu, const struct asym_mask *cpus)
{
    const struct asym_machine *m = r->sp.in->machine;
    for (enum asym_nearness near = ASYM_SAME_LLC; preferred_cpu >= 0 && near <= ASYM_SAME_NODE; near++) {
        const struct asym_mask *there = near == ASYM_SAME_LLC ? &r->llcs[m->cpus[preferred_cpu].llc]
                                                              : &r->nodes[m->cpus[preferred_cpu].node];
        const struct asym_mask close = asym_mask_and(cpus, there);
        const int cpu = asym_mask_next(&close, 0);
        if (cpu >= 0)
            return cpu;
    }
    return asym_mask_next(cpus, 0);
}

/* All CPUs that the thread may use are full: choose the one that leaves it the most speed. */
static int most_speed(const struct ranks *r, uint32_t t)
{
    const struct asym_policy_thread *thread = &r->sp.in->threads[t];
    const struct asym_machine *m = r->sp.in->machine;
    double most = 0;
    int best = -1;
    ASYM_MASK_FOREACH (c, thread->allowed) {
        const double speed = asym_balance_speed(m, c) / (r->sp.load[c] + 1);
        const bool nearer = best < 0 ||
                            asym_nearness(m, thread->preferred_cpu, c) < asym_nearness(m, thread->preferred_cpu, best);
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
    /* Places only become fewer: a class that had none for a thread with the same mask still has none. */
    uint32_t *class = &r->sp.set_mark[r->sp.set_of[t]];
    while (*class < r->n_classes && !asym_mask_meets(&r->classes[*class].open, thread->allowed))
        ++*class;
    if (*class == r->n_classes)
        return most_speed(r, t);
    const struct class *k = &r->classes[*class];
    if (asym_mask_has(&k->open, thread->preferred_cpu))
        return thread->preferred_cpu;
    struct asym_mask cpus = asym_mask_and(&k->spare, thread->allowed);
    if (asym_mask_empty(&cpus))
        cpus = asym_mask_and(&k->open, thread->allowed);
    return nearest(r, thread->preferred_cpu, &cpus);
}

static const struct asym_reason by_rank = {.text = "priority %.0f of %.0f",
                                           .sentence = "has the priority %.0f of %.0f, and the CPUs go by this order"};

/* Set the reason of the thread of this rank, from 0. */
static void explain(const struct ranks *r, uint32_t rank)
{
    const struct asym_policy_input *in = r->sp.in;
    struct asym_assignment *a = &r->sp.ret[r->order[rank]];
    const bool slow_only = asym_machine_is_asymmetric(in->machine) &&
                           asym_spread_reach(&r->sp, r->order[rank]) == ASYM_REACH_SLOW;
    a->reason = slow_only ? &asym_spread_no_fast : &by_rank;
    a->figure[0] = rank + 1.0;
    a->figure[1] = (double)in->n_threads;
}

static void place(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    memset(r->sp.set_mark, 0, r->sp.n_sets * sizeof *r->sp.set_mark);
    for (size_t i = 0; i < in->n_threads; i++) {
        const uint32_t t = r->order[i];
        if (r->kept[t]) {
            r->reserved[in->threads[t].preferred_cpu]--;
            note_places(r, in->threads[t].preferred_cpu);
        }
        const int cpu = choose(r, t);
        asym_spread_put(&r->sp, t, cpu);
        r->free[cpu] -= r->free[cpu] > 0;
        note_places(r, cpu);
        explain(r, (uint32_t)i);
    }
}

/* --- neighbours, two CPUs next to each other in the order of speed (3.3.2) --- */

/* A thread stays on its preferred CPU; one without goes to the CPU that leaves it the most speed. */
static void stay(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    asym_spread_stay(&r->sp);
    for (size_t i = 0; i < in->n_threads; i++)
        if (r->sp.ret[r->order[i]].cpu < 0)
            asym_spread_put(&r->sp, r->order[i], most_speed(r, r->order[i]));
}

/* List the threads of each CPU in scratch, the highest priority first. */
static void list_by_cpu(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    uint32_t sum = 0;
    ASYM_MASK_FOREACH (c, &in->machine->usable) {
        r->first[c] = r->end[c] = sum;
        sum += r->sp.load[c];
    }
    for (size_t i = 0; i < in->n_threads; i++)
        r->scratch[r->end[r->sp.ret[r->order[i]].cpu]++] = r->order[i];
}

/* Returns the highest, or the lowest, thread of a CPU that may go to another. No thread takes part twice. */
static uint32_t find_thread(const struct ranks *r, int from, int to, bool highest)
{
    const uint32_t n = r->end[from] - r->first[from];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = r->scratch[highest ? r->first[from] + i : r->end[from] - 1 - i];
        if (r->sp.ret[t].cpu == from && asym_mask_has(r->sp.in->threads[t].allowed, to))
            return t;
    }
    return NO_THREAD;
}

static void move(struct ranks *r, uint32_t t, int to)
{
    r->sp.load[r->sp.ret[t].cpu]--;
    asym_spread_put(&r->sp, t, to);
}

/*
 * The faster CPU may have floor(y) times as many threads as the slower one for speeds of the ratio y, and at least one. It pulls
 * the thread of the highest priority that fits; the slower one pulls the thread of the lowest priority that is too many. A
 * thread of the slower CPU that ranks above one of the faster CPU changes places with it.
 */
static void balance_pair(struct ranks *r, int fast, int slow)
{
    const uint32_t n_fast = r->sp.load[fast], n_slow = r->sp.load[slow];
    const uint64_t ratio = ratio_between(r->sp.in->machine, fast, slow);
    const uint32_t up = find_thread(r, slow, fast, true), down = find_thread(r, fast, slow, false);
    if (n_fast > ASYM_MAX(1, ratio * n_slow)) {
        if (down != NO_THREAD)
            move(r, down, slow);
        return;
    }
    if (up == NO_THREAD)
        return;
    if (n_fast + 1 <= ASYM_MAX(1, ratio * (n_slow - 1))) {
        move(r, up, fast);
    } else if (down != NO_THREAD && by_priority(up, down, r) < 0) {
        move(r, up, fast);
        move(r, down, slow);
    }
}

/* Each pair of neighbours makes at most one pull or exchange, the fastest pair first. */
static void pull_from_neighbours(struct ranks *r)
{
    const struct asym_machine *m = r->sp.in->machine;
    int faster = -1;
    list_by_cpu(r);
    for (unsigned t = 0; t < m->n_types; t++) {
        ASYM_MASK_FOREACH (c, &m->types[t].cpus) {
            if (faster >= 0)
                balance_pair(r, faster, c);
            faster = c;
        }
    }
}

static void plan_by_neighbours(struct ranks *r)
{
    const struct asym_policy_input *in = r->sp.in;
    const struct params *params = in->params;
    struct state *state = in->state;
    stay(r);
    if (in->now - state->pulled >= params->neighbour_period) {
        pull_from_neighbours(r);
        state->pulled = in->now;
    }
    for (uint32_t i = 0; i < in->n_threads; i++)
        explain(r, i);
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const struct params *params = in->params;
    struct state *state = in->state;
    struct ranks r = {0};
    asym_spread_init(&r.sp, in, ret);
    take_memory(&r, in);
    if (asym_arena_is_short(in->arena))
        return -ENOBUFS;
    sort(&r);
    if (params->neighbour_period > 0) {
        plan_by_neighbours(&r);
        return 0;
    }
    count(&r);
    reserve(&r);
    place(&r);
    asym_spread_fill_fast(&r.sp);
    state->high = r.high;
    return 0;
}

static const struct asym_option options[] = {
    ASYM_OPTION(
        struct params, DURATION, neighbour_period, .def = "0s", .min = 0, .max = 60e6,
        .help = "0: every thread gets its place in each plan; else a CPU pulls one thread from a neighbour in speed "
                "once in this time, as in the kernel of Roehrich 2007 (3.3.2; every 2 to 3 s, 4.1.1), for comparisons "
                "with its measurements."),
    {.key = NULL},
};

const struct asym_policy asym_policy_priority = {
    .name = "priority",
    .summary = "the higher the priority, the faster the CPU; a lower rank never gets more speed",
    .source = "Roehrich 2007, 3.3.2",
    .pin = ASYM_PIN_CPU,
    .params_size = sizeof(struct params),
    .options = options,
    .state_size = sizeof(struct state),
    .plan = plan,
};
