/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fast CPU is never idle before a slow one; nothing else distinguishes threads (Saez 2010, 2.3, after Balakrishnan).
 * The idle sibling of a busy fast CPU comes after an idle slow core, because it adds less.
 */
#include <asym/policy.h>

#include "base/mask.h"
#include "policy/placement/spread.h"

static const struct asym_reason fast_first = {
    .text = "fast CPUs are filled first", .sentence = "has a fast CPU, because this policy fills the fast CPUs first"};
static const struct asym_reason fast_busy = {.text = "every fast CPU is busy",
                                             .sentence = "has a slow CPU, because every fast CPU is busy"};

static const struct asym_reason *reason_of(const struct asym_spread *sp, size_t t)
{
    if (!(asym_spread_reach(sp, t) & ASYM_REACH_FAST))
        return &asym_spread_no_fast;
    return asym_mask_has(&sp->in->machine->fast, sp->ret[t].cpu) ? &fast_first : &fast_busy;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    const uint32_t *all = asym_spread_all(in);
    asym_spread_init(&sp, in, ret);
    const int r = asym_spread_begin(&sp, all);
    if (r <= 0)
        return r;
    asym_spread_even(&sp, all, in->n_threads, &in->machine->usable);
    asym_spread_fill_seats(&sp);
    for (size_t i = 0; i < in->n_threads; i++)
        ret[i].reason = reason_of(&sp, i);
    return 0;
}

const struct asym_policy asym_policy_busyfcs = {
    .name = "busyfcs",
    .summary = "a fast CPU is never idle before a slow one",
    .source = "Saez 2010, 2.3 (after Balakrishnan)",
    .pin = ASYM_PIN_TYPE,
    .plan = plan,
};
