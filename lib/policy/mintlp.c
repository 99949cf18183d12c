/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applications in increasing order of their runnable count fill the fast CPUs; the rest run on slow ones. No fairness
 * (Saez 2010, 2.1). Counts are compared as whole threads, and a tie goes to who is on a fast CPU already: a mean of 3.98
 * beside one of 4.02 is no reason to migrate. First among those stands who held a fast CPU to itself: a thread that may run
 * nowhere else shares one, and would otherwise pass for its holder in the next plan.
 */
#include <asym/policy.h>

#include <errno.h>

#include "base/arena.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/spread.h"

struct thread_state {
    bool held; /* a fast CPU to itself */
};

static struct thread_state *state_of(const struct asym_policy_input *in, size_t t)
{
    return in->threads[t].state;
}

static int by_parallelism(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_policy_input *in = ctx;
    const struct asym_policy_thread *x = &in->threads[a], *y = &in->threads[b];
    const struct asym_policy_app *p = &in->apps[x->app], *q = &in->apps[y->app];
    if (x->spinning != y->spinning)
        return x->spinning - y->spinning;
    long n = (long)(p->runnable + 0.5), k = (long)(q->runnable + 0.5);
    if (n != k)
        return n < k ? -1 : 1;
    if (state_of(in, a)->held != state_of(in, b)->held)
        return state_of(in, b)->held - state_of(in, a)->held;
    bool fast = asym_mask_has(&in->machine->fast, x->home), other = asym_mask_has(&in->machine->fast, y->home);
    return other - fast;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    uint32_t *order = asym_arena_take(in->arena, in->n_threads + 1, sizeof *order);
    uint32_t *scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *scratch);
    if (asym_spread_init(&sp, in, ret) < 0 || !order || !scratch)
        return -ENOBUFS;
    for (size_t i = 0; i < in->n_threads; i++)
        order[i] = (uint32_t)i;
    asym_sort_index(order, in->n_threads, scratch, by_parallelism, in);
    struct asym_mask fast = in->machine->fast;
    /* Where all CPUs are alike there is nothing to choose: a CPU each, then evenly. */
    asym_spread_give(&sp, order, in->n_threads, &fast);
    for (size_t i = 0; i < in->n_threads; i++)
        state_of(in, i)->held = ret[i].cpu >= 0;
    struct asym_mask rest = asym_mask_or(&in->machine->slow, &fast);
    if (asym_mask_empty(&rest))
        rest = in->machine->usable;
    asym_spread_even(&sp, order, in->n_threads, &rest);
    asym_spread_mend(&sp);
    for (size_t i = 0; i < in->n_threads; i++) {
        ret[i].reason = asym_mask_has(&in->machine->fast, ret[i].cpu) ? ASYM_WHY_LOW_TLP : ASYM_WHY_HIGH_TLP;
        ret[i].figure[0] = in->apps[in->threads[i].app].runnable;
    }
    return 0;
}

extern const struct asym_policy asym_policy_mintlp;
const struct asym_policy asym_policy_mintlp = {
    .name = "mintlp",
    .summary = "fast CPUs to the applications with the fewest runnable threads",
    .source = "Saez 2010, 2.1",
    .pin = ASYM_PIN_TYPE,
    .task_state_size = sizeof(struct thread_state),
    .plan = plan,
};
