/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applications fill the fast seats, a core for each thread, in increasing order of their runnable count; the rest run
 * on slow CPUs. The policy is not fair (Saez 2010, 2.1). It compares counts as whole threads: a mean of 3.98 beside one
 * of 4.02 is no reason to migrate. On a tie the application that came first in the last plan comes first again; in the
 * first plan, the one that already has the most threads on fast CPUs comes first. Spinning threads (RTX) come last.
 * While all CPUs are busy, light threads of serial programs and phases get sp_boost, as under pa.
 */
#include <asym/policy.h>

#include <stdbool.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread.h"

struct thread_state {
    uint32_t place; /* place of its application in the last plan, from 1; 0: it was not in that plan */
    uint8_t holds;  /* as in struct asym_spread, of the last plan */
};

/* An application in the queue for fast CPUs. */
struct entry {
    long runnable;
    uint32_t place, n_fast;
    bool has_alone;
};

struct queue {
    const struct asym_policy_input *in;
    struct entry *entries;
    uint64_t *keys; /* per thread; the least key goes first */
    uint32_t *apps, *threads, *scratch;
};

/* Fields of a key. Thread states lie far apart in memory, so the keys are gathered once. */
enum { KEY_NOT_ON_FAST = 1 << 0, KEY_SEAT_SHIFT = 1, KEY_PLACE_SHIFT = 9, KEY_WAITS_SHIFT = 40 };

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

static void take_memory(const struct asym_policy_input *in, struct queue *q)
{
    q->in = in;
    q->entries = asym_arena_take(in->arena, in->n_apps + 1, sizeof *q->entries);
    q->keys = asym_arena_take(in->arena, in->n_threads + 1, sizeof *q->keys);
    q->apps = asym_arena_take(in->arena, in->n_apps + 1, sizeof *q->apps);
    q->threads = asym_spread_all(in);
    q->scratch = asym_arena_take(in->arena, ASYM_MAX(in->n_apps, in->n_threads) + 1, sizeof *q->scratch);
}

static void describe(struct queue *q, uint32_t a)
{
    const struct asym_policy_app *app = &q->in->apps[a];
    struct entry *e = &q->entries[a];
    e->runnable = (long)(app->runnable + 0.5);
    e->place = UINT32_MAX;
    for (uint32_t t = app->first_thread; t < app->first_thread + app->n_threads; t++) {
        const struct thread_state *s = state_of(q->in, t);
        bool on_fast = asym_mask_has(&q->in->machine->fast, q->in->threads[t].preferred_cpu);
        q->keys[t] = (on_fast ? 0 : KEY_NOT_ON_FAST) | (uint64_t)asym_spread_place(s->holds) << KEY_SEAT_SHIFT;
        e->n_fast += on_fast;
        e->has_alone |= q->in->threads[t].alone;
        if (s->place > 0)
            e->place = ASYM_MIN(e->place, s->place);
    }
}

static int by_parallelism(uint32_t a, uint32_t b, const void *ctx)
{
    const struct queue *q = ctx;
    const struct entry *x = &q->entries[a], *y = &q->entries[b];
    if (x->runnable != y->runnable)
        return x->runnable < y->runnable ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->n_fast > y->n_fast ? -1 : x->n_fast < y->n_fast;
}

static int by_key(uint32_t a, uint32_t b, const void *ctx)
{
    const struct queue *q = ctx;
    return q->keys[a] < q->keys[b] ? -1 : q->keys[a] > q->keys[b];
}

/* All others of a program wait while one runs alone. (asym_spread places a thread that spins after all that work.) */
static bool waits(const struct queue *q, uint32_t t)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    return q->entries[thread->app].has_alone && !thread->alone;
}

/* Sort the applications; within each, put the threads that already hold a fast CPU first. */
static void line_up(struct queue *q)
{
    for (uint32_t a = 0; a < q->in->n_apps; a++) {
        q->apps[a] = a;
        describe(q, a);
    }
    asym_sort_index(q->apps, q->in->n_apps, q->scratch, by_parallelism, q);
    for (uint32_t i = 0; i < q->in->n_apps; i++) {
        const struct asym_policy_app *app = &q->in->apps[q->apps[i]];
        q->entries[q->apps[i]].place = i + 1;
        for (uint32_t t = app->first_thread; t < app->first_thread + app->n_threads; t++)
            q->keys[t] |= (uint64_t)(i + 1) << KEY_PLACE_SHIFT | (uint64_t)waits(q, t) << KEY_WAITS_SHIFT;
    }
    asym_sort_index(q->threads, q->in->n_threads, q->scratch, by_key, q);
}

static const struct asym_reason few_threads = {
    .text = "its program has few runnable threads: %.1f",
    .sentence = "belongs to a program with %.1f runnable threads, and the programs with the fewest get the fast CPUs"};
static const struct asym_reason more_threads = {
    .text = "programs with fewer runnable threads than %.1f hold the fast CPUs",
    .sentence = "has a slow CPU, because programs with fewer runnable threads than its %.1f hold the fast CPUs"};

static const struct asym_reason *reason_of(const struct asym_spread *sp, size_t t)
{
    unsigned reach = asym_spread_reach(sp, t);
    if (!(reach & ASYM_REACH_FAST))
        return &asym_spread_no_fast;
    if (sp->in->threads[t].spinning)
        return &asym_spread_spinning;
    if (!asym_mask_has(&sp->in->machine->fast, sp->ret[t].cpu))
        return &more_threads;
    return reach & ASYM_REACH_SLOW ? &few_threads : &asym_spread_only_fast;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct queue q;
    take_memory(in, &q);
    asym_spread_init(&sp, in, ret);
    const int r = asym_spread_begin(&sp, q.threads);
    if (r <= 0)
        return r;
    line_up(&q);
    struct asym_mask fast = in->machine->fast;
    asym_spread_give(&sp, q.threads, asym_spread_able(&sp, q.threads, in->n_threads, &fast), false, &fast);
    asym_spread_give_siblings(&sp, q.threads, in->n_threads, &fast);
    for (size_t t = 0; t < in->n_threads; t++)
        *state_of(in, t) = (struct thread_state){.place = q.entries[in->threads[t].app].place, .holds = sp.holds[t]};
    asym_spread_rest(&sp, q.threads, in->n_threads, &fast);
    for (size_t t = 0; t < in->n_threads; t++) {
        ret[t].reason = reason_of(&sp, t);
        ret[t].figure[0] = in->apps[in->threads[t].app].runnable;
    }
    asym_boost_light(in, ret);
    return 0;
}

const struct asym_policy asym_policy_mintlp = {
    .name = "mintlp",
    .summary = "the applications with the fewest runnable threads get the fast CPUs",
    .source = "Saez 2010, 2.1",
    .pin = ASYM_PIN_TYPE,
    .reacts = true,
    .serves_alone = true,
    .params_size = sizeof(struct asym_boost_params),
    .task_state_size = sizeof(struct thread_state),
    .options = asym_boost_options,
    .plan = plan,
};
