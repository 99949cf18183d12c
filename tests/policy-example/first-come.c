/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An example: a whole policy is one file like this one in lib/policy/, and one row in policies.def. The threads that started
 * first hold the fast CPUs, one each; the others share the rest. tests/CMakeLists.txt builds the programs with this file and
 * its row, and tests/policy_example.py looks for it in all that they say.
 */
#include <asym/policy.h>

#include <stddef.h>

#include "base/arena.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread.h"

struct params {
    int boost;
};

/* The reasons for the place of a thread: the texts take two figures, in order. */
static const struct asym_reason came_first = {.text = "started early (%.0f of %.0f): a fast CPU",
                                              .sentence = "is number %.0f of %.0f by its start, so it has a fast CPU"};
static const struct asym_reason came_late = {
    .text = "started late (%.0f of %.0f): earlier threads hold the fast CPUs",
    .sentence = "is number %.0f of %.0f by its start, and earlier threads hold the fast CPUs"};

static int by_start(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_policy_input *in = ctx;
    const struct asym_taskid *x = &in->threads[a].id, *y = &in->threads[b].id;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->tid - y->tid;
}

static void explain(const struct asym_spread *sp, const uint32_t *order)
{
    const struct params *params = sp->in->params;
    for (size_t i = 0; i < sp->in->n_threads; i++) {
        struct asym_assignment *a = &sp->ret[order[i]];
        const bool fast = asym_mask_has(&sp->in->machine->fast, a->cpu);
        a->nice_delta = (int8_t)(fast ? params->boost : 0);
        a->reason = fast ? &came_first : &came_late;
        a->figure[0] = (double)(i + 1);
        a->figure[1] = (double)sp->in->n_threads;
    }
}

/* Memory comes from the arena. Where that is too small (-ENOBUFS), the engine enlarges it and calls again. */
static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    uint32_t *order = asym_spread_all(in), *scratch = asym_arena_take(in->arena, in->n_threads + 1, sizeof *scratch);
    asym_spread_init(&sp, in, ret);
    const int r = asym_spread_begin(&sp, order);
    if (r <= 0)
        return r;
    asym_sort_index(order, in->n_threads, scratch, by_start, in);
    asym_spread_by_rank(&sp, order, in->n_threads, in->n_threads);
    explain(&sp, order);
    return 0;
}

static const struct asym_option options[] = {
    {
        .key = "boost",
        .type = ASYM_OPTION_NICE,
        .offset = offsetof(struct params, boost),
        .def = "0",
        .min = -20,
        .max = 19,
        .help = "Added to the nice value of a thread on a fast CPU.",
    },
    {.key = NULL},
};

const struct asym_policy asym_policy_first_come = {
    .name = "first-come",
    .summary = "fast CPUs to the threads that started first",
    .source = "an example",
    .pin = ASYM_PIN_CPU,
    .params_size = sizeof(struct params),
    .options = options,
    .plan = plan,
};
