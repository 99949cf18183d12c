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

/* Credit the last turn to those in list, who may run on fast CPUs; returns the mean. */
static double take_stock(const struct asym_policy_input *in, const uint32_t *list, size_t n)
{
    struct state *state = in->state;
    double least = -1, sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct thread_state *s = state_of(in, list[i]);
        if (s->last == 0 || s->last != state->last)
            continue;
        if (s->was_fast)
            s->fast_time += (double)in->interval / (double)ASYM_SEC * in->threads[list[i]].runnable;
        if (least < 0 || s->fast_time < least)
            least = s->fast_time;
    }
    for (size_t i = 0; i < n; i++) {
        struct thread_state *s = state_of(in, list[i]);
        if (s->last == 0 || s->last != state->last)
            s->fast_time = ASYM_MAX(least, s->fast_time);
        s->last = in->now;
        sum += s->fast_time;
    }
    state->last = in->now;
    return n ? sum / (double)n : 0;
}

static enum asym_reason reason_of(const struct asym_policy_input *in, const struct asym_policy_thread *t, int32_t cpu)
{
    if (!asym_mask_meets(t->may, &in->machine->fast))
        return ASYM_WHY_NO_FAST;
    if (!asym_mask_has(&in->machine->fast, cpu))
        return ASYM_WHY_HAD_FAST_TIME;
    return asym_mask_meets(t->may, &in->machine->slow) ? ASYM_WHY_LEAST_FAST_TIME : ASYM_WHY_ONLY_FAST;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    uint32_t *order = asym_spread_all(in);
    uint32_t *scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *scratch);
    if (asym_spread_init(&sp, in, ret) < 0 || !order || !scratch)
        return -ENOBUFS;
    if (!asym_machine_is_asymmetric(in->machine)) {
        asym_spread_alike(&sp, order, in->n_threads);
        return 0;
    }
    struct asym_mask fast = in->machine->fast;
    size_t n = asym_spread_able(&sp, order, in->n_threads, &fast);
    double mean = take_stock(in, order, n);
    asym_sort_index(order, n, scratch, by_fast_time, in);
    asym_spread_give(&sp, order, n, &fast);
    for (size_t t = 0; t < in->n_threads; t++)
        state_of(in, t)->held = ret[t].cpu >= 0;
    struct asym_mask rest = asym_mask_or(&in->machine->slow, &fast);
    asym_spread_even(&sp, order, in->n_threads, &rest);
    asym_spread_mend(&sp);
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = state_of(in, t);
        s->was_fast = asym_mask_has(&in->machine->fast, ret[t].cpu);
        ret[t].reason = reason_of(in, &in->threads[t], ret[t].cpu);
        ret[t].figure[0] = s->fast_time;
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
