/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fast and slow CPUs are shared equally among all threads: at each turn the fast CPUs go to the threads that have had the
 * least fast time (Saez 2010, 2.3, after Becchi & Crowley). A turn is one plan, that is one swap period.
 */
#include <asym/policy.h>

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/spread.h"

struct thread_state {
    double fast_time; /* seconds */
    bool known, was_fast;
    bool held; /* a fast CPU to itself, which those that may run nowhere else do not */
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

/* Less fast time first; as long as nobody differs, who is there stays. */
static int by_fast_time(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_policy_input *in = ctx;
    const struct thread_state *x = state_of(in, a), *y = state_of(in, b);
    if (x->fast_time < y->fast_time)
        return -1;
    if (x->fast_time > y->fast_time)
        return 1;
    if (x->held != y->held)
        return y->held - x->held;
    return asym_mask_has(&in->machine->fast, in->threads[b].home) -
           asym_mask_has(&in->machine->fast, in->threads[a].home);
}

/* Credit the last turn. A newcomer starts with the least that anybody has: it neither waits nor takes all. */
static double take_stock(const struct asym_policy_input *in)
{
    double least = -1, sum = 0;
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = state_of(in, t);
        if (s->known && s->was_fast)
            s->fast_time += (double)in->interval / (double)ASYM_SEC * in->threads[t].runnable;
        if (s->known && (least < 0 || s->fast_time < least))
            least = s->fast_time;
    }
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = state_of(in, t);
        if (!s->known)
            s->fast_time = ASYM_MAX(least, 0);
        s->known = true;
        sum += s->fast_time;
    }
    return in->n_threads ? sum / (double)in->n_threads : 0;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    uint32_t *order = asym_arena_take(in->arena, in->n_threads + 1, sizeof *order);
    uint32_t *scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *scratch);
    if (asym_spread_init(&sp, in, ret) < 0 || !order || !scratch)
        return -ENOBUFS;
    double mean = take_stock(in);
    for (size_t i = 0; i < in->n_threads; i++)
        order[i] = (uint32_t)i;
    asym_sort_index(order, in->n_threads, scratch, by_fast_time, in);
    struct asym_mask fast = in->machine->fast;
    asym_spread_give(&sp, order, in->n_threads, &fast);
    for (size_t i = 0; i < in->n_threads; i++)
        state_of(in, i)->held = ret[i].cpu >= 0;
    struct asym_mask rest = asym_mask_or(&in->machine->slow, &fast);
    if (asym_mask_empty(&rest))
        rest = in->machine->usable;
    asym_spread_even(&sp, order, in->n_threads, &rest);
    asym_spread_mend(&sp);
    for (size_t i = 0; i < in->n_threads; i++) {
        struct thread_state *s = state_of(in, i);
        s->was_fast = asym_mask_has(&in->machine->fast, ret[i].cpu);
        ret[i].reason = s->was_fast ? ASYM_WHY_LEAST_FAST_TIME : ASYM_WHY_HAD_FAST_TIME;
        ret[i].figure[0] = s->fast_time;
        ret[i].figure[1] = mean;
    }
    return 0;
}

extern const struct asym_policy asym_policy_rr;
const struct asym_policy asym_policy_rr = {
    .name = "rr",
    .summary = "fast and slow CPUs are shared equally among all threads",
    .source = "Saez 2010, 2.3 (after Becchi & Crowley)",
    .pin = ASYM_PIN_TYPE,
    .task_state_size = sizeof(struct thread_state),
    .plan = plan,
};
