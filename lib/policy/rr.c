/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All threads share fast and slow CPUs equally: at each turn the fastest cores go to the threads that have had the least fast
 * time (Saez 2010, 2.3, after Becchi & Crowley), the next fastest to the next threads, and so on for all rows of seats. A turn
 * is one plan, that is one swap period.
 *
 * Fast time is the time for which a thread ran on a CPU of the fastest type. The source has two types. With more, a type counts
 * by its speed: the slowest not at all, one half way to the fastest by half. A thread that is new, or was missing from the
 * last plan, starts with the least fast time of the threads that were in it. So it does not wait, and it cannot claim the
 * time it missed, which would keep the other threads off the fast CPUs. A thread that spun gets the mean
 * fast time of that turn, so it neither gains nor loses a claim. If it lost its claim, a thread that spins in every second plan
 * would never get a fast CPU.
 */
#include <asym/policy.h>

#include <stdbool.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread.h"

struct state {
    asym_usec last; /* time of the last plan */
};

struct thread_state {
    double fast_time; /* seconds */
    asym_usec last;   /* time of the last plan that it was in */
    double counts;    /* of a second on the CPU of the last plan: 0 on the slowest type, 1 on the fastest */
    uint8_t holds;    /* as in struct asym_spread, of the last turn */
    bool spun;        /* in the last plan: it had no turn */
};

/* The sort key of a thread. Thread states lie far apart in memory, so the keys are gathered once. */
struct key {
    double fast_time;
    int type; /* of its preferred CPU: 0 is the fastest */
    bool away;
    int place; /* asym_spread_place of the last turn */
};

struct queue {
    const struct asym_policy_input *in;
    struct key *keys; /* per thread */
    uint32_t *order, *scratch;
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

static void take_memory(const struct asym_policy_input *in, struct queue *q)
{
    q->in = in;
    q->keys = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->keys);
    q->order = asym_spread_all(in);
    q->scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->scratch);
}

/* The thread with less fast time goes first. On a tie the thread that already holds a faster CPU, or is on one, keeps it. */
static int by_fast_time(uint32_t a, uint32_t b, const void *ctx)
{
    const struct queue *q = ctx;
    const struct key *x = &q->keys[a], *y = &q->keys[b];
    if (x->fast_time < y->fast_time)
        return -1;
    if (x->fast_time > y->fast_time)
        return 1;
    return x->place != y->place ? x->place - y->place : x->type - y->type;
}

/* Returns the fast time of a thread since the last plan, seconds. */
static double turn_of(const struct asym_policy_input *in, uint32_t t)
{
    return (double)in->interval / (double)ASYM_SEC * in->threads[t].running * state_of(in, t)->counts;
}

/* Make the key of a thread, with the fast time of the last turn added. */
static struct key key_of(const struct asym_policy_input *in, uint32_t t)
{
    const struct state *state = in->state;
    const struct thread_state *s = state_of(in, t);
    const int preferred_cpu = in->threads[t].preferred_cpu;
    struct key k = {.fast_time = s->fast_time, .place = asym_spread_place(s->holds)};
    k.away = s->last == 0 || s->last != state->last;
    k.type = preferred_cpu >= 0 ? in->machine->cpus[preferred_cpu].type : (int)in->machine->n_types;
    if (!k.away && !s->spun)
        k.fast_time += turn_of(in, t);
    return k;
}

/* Returns what a second on this CPU counts as fast time. One that shares its core is not on a fast CPU. */
static double counts_of(const struct asym_spread *sp, int cpu)
{
    const struct asym_machine *m = sp->in->machine;
    const double slowest = m->types[m->n_types - 1].speed, range = m->types[0].speed - slowest;
    if (asym_spread_beside(sp, cpu, 0) > 0)
        return 0;
    /* Types of equal speed differ in kind, or by a cap without effect. */
    if (range <= 0)
        return m->cpus[cpu].type == 0;
    return (m->types[m->cpus[cpu].type].speed - slowest) / range;
}

/* Returns the mean fast time since the last plan of those of n threads that had a turn, seconds. */
static double mean_turn(const struct queue *q, size_t n)
{
    double sum = 0;
    size_t had = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t t = q->order[i];
        if (q->keys[t].away || state_of(q->in, t)->spun)
            continue;
        sum += turn_of(q->in, t);
        had++;
    }
    return had ? sum / (double)had : 0;
}

/* Make the keys of the first n threads of order, those that may run on another type than the slowest. Returns their mean
 * fast time, seconds. */
static double make_keys(struct queue *q, size_t n)
{
    double least = -1, sum = 0;
    for (size_t i = 0; i < n; i++)
        q->keys[q->order[i]] = key_of(q->in, q->order[i]);
    const double mean = mean_turn(q, n);
    for (size_t i = 0; i < n; i++) {
        struct key *k = &q->keys[q->order[i]];
        if (!k->away && state_of(q->in, q->order[i])->spun)
            k->fast_time += mean;
        if (!k->away && (least < 0 || k->fast_time < least))
            least = k->fast_time;
    }
    for (size_t i = 0; i < n; i++) {
        struct key *k = &q->keys[q->order[i]];
        if (k->away)
            k->fast_time = ASYM_MAX(least, k->fast_time);
        sum += k->fast_time;
    }
    return n ? sum / (double)n : 0;
}

static const struct asym_reason its_turn = {
    .text = "its turn: had %.2f s on fast CPUs, the mean is %.2f s",
    .sentence = "has its turn on the fast CPUs: it had %.2f s there, and the mean is %.2f s"};
static const struct asym_reason had_turn = {
    .text = "had its turn: %.2f s on fast CPUs, the mean is %.2f s",
    .sentence = "has had its turn: it spent %.2f s on fast CPUs, and the mean is %.2f s",
    .rotates = true};

static const struct asym_reason *reason_of(const struct asym_spread *sp, size_t t)
{
    const struct asym_machine *m = sp->in->machine;
    unsigned reach = asym_spread_reach(sp, t);
    for (int type = 0; type < m->cpus[sp->ret[t].cpu].type; type++)
        if (asym_mask_meets(&m->types[type].cpus, sp->in->threads[t].allowed))
            return sp->in->threads[t].spinning ? &asym_spread_spinning : &had_turn;
    if (!(reach & ASYM_REACH_FAST))
        return &asym_spread_no_fast;
    return reach & ASYM_REACH_SLOW ? &its_turn : &asym_spread_only_fast;
}

/* Returns the CPUs that are not of the slowest type. */
static struct asym_mask faster_cpus(const struct asym_machine *m)
{
    return asym_mask_minus(&m->usable, &m->types[m->n_types - 1].cpus);
}

/* A thread that may run on CPUs of the slowest type only is marked as missing, and its fast time does not change. */
static void remember(struct queue *q, const struct asym_spread *sp)
{
    const struct asym_mask faster = faster_cpus(sp->in->machine);
    const struct asym_policy_input *in = q->in;
    struct state *state = in->state;
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = state_of(in, t);
        const bool able = asym_mask_meets(&faster, in->threads[t].allowed);
        s->counts = counts_of(sp, sp->ret[t].cpu);
        s->holds = sp->holds[t];
        s->spun = in->threads[t].spinning;
        s->last = able ? in->now : 0;
        s->fast_time = able ? q->keys[t].fast_time : s->fast_time;
    }
    state->last = in->now;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct queue q;
    take_memory(in, &q);
    asym_spread_init(&sp, in, ret);
    const int r = asym_spread_begin(&sp, q.order);
    if (r <= 0)
        return r;
    const struct asym_mask faster = faster_cpus(in->machine);
    size_t n = asym_spread_able(&sp, q.order, in->n_threads, &faster);
    double mean = make_keys(&q, n);
    asym_sort_index(q.order, n, q.scratch, by_fast_time, &q);
    asym_spread_by_rank(&sp, q.order, n, in->n_threads);
    remember(&q, &sp);
    for (size_t t = 0; t < in->n_threads; t++) {
        ret[t].reason = reason_of(&sp, t);
        ret[t].figure[0] = q.keys[t].fast_time;
        ret[t].figure[1] = mean;
    }
    return 0;
}

const struct asym_policy asym_policy_rr = {
    .name = "rr",
    .summary = "fast and slow CPUs are shared equally among all threads",
    .source = "Saez 2010, 2.3 (after Becchi & Crowley)",
    .pin = ASYM_PIN_TYPE,
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .plan = plan,
};
