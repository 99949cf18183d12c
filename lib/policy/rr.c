/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fast and slow CPUs are shared equally among all threads: at each turn the fast CPUs go to the threads that have had the
 * least fast time (Saez 2010, 2.3, after Becchi & Crowley). A turn is one plan, that is one swap period.
 *
 * Fast time is the time between two plans that a thread was given a fast CPU and wanted to run. Who was away since the last
 * plan, or is new, starts with the least that those have who were not: it neither waits nor has time owed to it, which would
 * keep the others out.
 */
#include <asym/policy.h>

#include <errno.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/spread.h"

struct state {
    asym_usec last; /* plan */
};

struct thread_state {
    double fast_time; /* seconds */
    asym_usec last;   /* plan that it was in */
    bool was_fast;
    bool held; /* a fast CPU to itself, which those that may run nowhere else do not */
};

/* What is compared of a thread, gathered once: threads are many and their states far apart. */
struct key {
    double fast_time;
    bool away, off_fast, not_held;
};

struct queue {
    const struct asym_policy_input *in;
    struct key *keys; /* of each thread */
    uint32_t *order, *scratch;
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

static int take_memory(const struct asym_policy_input *in, struct queue *q)
{
    q->in = in;
    q->keys = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->keys);
    q->order = asym_spread_all(in);
    q->scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->scratch);
    return q->keys && q->order && q->scratch ? 0 : -ENOBUFS;
}

/* Less fast time first; as long as nobody differs, who is there stays. */
static int by_fast_time(uint32_t a, uint32_t b, const void *ctx)
{
    const struct queue *q = ctx;
    const struct key *x = &q->keys[a], *y = &q->keys[b];
    if (x->fast_time < y->fast_time)
        return -1;
    if (x->fast_time > y->fast_time)
        return 1;
    return x->not_held != y->not_held ? x->not_held - y->not_held : x->off_fast - y->off_fast;
}

/* Credit the last turn. */
static struct key key_of(const struct asym_policy_input *in, uint32_t t)
{
    const struct state *state = in->state;
    const struct thread_state *s = state_of(in, t);
    struct key k = {.fast_time = s->fast_time, .not_held = !s->held};
    k.away = s->last == 0 || s->last != state->last;
    k.off_fast = !asym_mask_has(&in->machine->fast, in->threads[t].home);
    if (!k.away && s->was_fast)
        k.fast_time += (double)in->interval / (double)ASYM_SEC * in->threads[t].runnable;
    return k;
}

/* The keys of the first n of order, who may run on fast CPUs; returns the mean of their fast time. */
static double take_stock(struct queue *q, size_t n)
{
    double least = -1, sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct key *k = &q->keys[q->order[i]];
        *k = key_of(q->in, q->order[i]);
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

static enum asym_reason reason_of(const struct asym_spread *sp, size_t t)
{
    unsigned reach = asym_spread_reach(sp, t);
    if (!(reach & ASYM_REACH_FAST))
        return ASYM_WHY_NO_FAST;
    if (!asym_mask_has(&sp->in->machine->fast, sp->ret[t].cpu))
        return ASYM_WHY_HAD_FAST_TIME;
    return reach & ASYM_REACH_SLOW ? ASYM_WHY_LEAST_FAST_TIME : ASYM_WHY_ONLY_FAST;
}

/* held: it was given its CPU to itself. The time of one that may run on no fast CPU stays as it is: none. */
static void remember(struct queue *q, const struct asym_spread *sp)
{
    const struct asym_policy_input *in = q->in;
    struct state *state = in->state;
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = state_of(in, t);
        bool able = asym_spread_reach(sp, t) & ASYM_REACH_FAST;
        s->was_fast = asym_mask_has(&in->machine->fast, sp->ret[t].cpu);
        s->held = !q->keys[t].not_held;
        s->last = able ? in->now : 0;
        s->fast_time = able ? q->keys[t].fast_time : s->fast_time;
    }
    state->last = in->now;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct queue q;
    int r = take_memory(in, &q);
    if (asym_spread_init(&sp, in, ret) < 0 || r < 0)
        return -ENOBUFS;
    if (!asym_machine_is_asymmetric(in->machine)) {
        asym_spread_alike(&sp, q.order, in->n_threads);
        return 0;
    }
    struct asym_mask fast = in->machine->fast;
    size_t n = asym_spread_able(&sp, q.order, in->n_threads, &fast);
    double mean = take_stock(&q, n);
    asym_sort_index(q.order, n, q.scratch, by_fast_time, &q);
    asym_spread_give(&sp, q.order, n, &fast);
    for (size_t t = 0; t < in->n_threads; t++)
        q.keys[t].not_held = ret[t].cpu < 0;
    struct asym_mask rest = asym_mask_or(&in->machine->slow, &fast);
    asym_spread_even(&sp, q.order, in->n_threads, &rest);
    asym_spread_mend(&sp);
    remember(&q, &sp);
    for (size_t t = 0; t < in->n_threads; t++) {
        ret[t].reason = reason_of(&sp, t);
        ret[t].figure[0] = q.keys[t].fast_time;
        ret[t].figure[1] = mean;
    }
    return 0;
}

extern const struct asym_policy asym_policy_rr;
const struct asym_policy asym_policy_rr = {
    .name = "rr",
    .summary = "fast and slow CPUs are shared equally among all threads",
    .source = "Saez 2010, 2.3 (after Becchi & Crowley)",
    .pin = ASYM_PIN_TYPE,
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .plan = plan,
};
