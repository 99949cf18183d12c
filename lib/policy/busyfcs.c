/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fast CPU is never idle before a slow one; nothing else distinguishes threads (Saez 2010, 2.3, after Balakrishnan).
 * The sibling of a fast CPU that is at work comes after the first CPU of a slow core: it adds less than that.
 */
#include <asym/policy.h>

#include <errno.h>

#include "base/mask.h"
#include "policy/spread.h"

static enum asym_reason reason_of(const struct asym_spread *sp, size_t t)
{
    if (!(asym_spread_reach(sp, t) & ASYM_REACH_FAST))
        return ASYM_WHY_NO_FAST;
    return asym_mask_has(&sp->in->machine->fast, sp->ret[t].cpu) ? ASYM_WHY_FAST_BUSY_FIRST : ASYM_WHY_FAST_ALL_BUSY;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    const uint32_t *all = asym_spread_all(in);
    if (asym_spread_init(&sp, in, ret) < 0 || !all)
        return -ENOBUFS;
    if (!asym_machine_is_asymmetric(in->machine)) {
        asym_spread_alike(&sp, all, in->n_threads);
        return 0;
    }
    asym_spread_even(&sp, all, in->n_threads, &in->machine->usable);
    asym_spread_mend(&sp);
    for (size_t i = 0; i < in->n_threads; i++)
        ret[i].reason = reason_of(&sp, i);
    return 0;
}

extern const struct asym_policy asym_policy_busyfcs;
const struct asym_policy asym_policy_busyfcs = {
    .name = "busyfcs",
    .summary = "a fast CPU is never idle before a slow one",
    .source = "Saez 2010, 2.3 (after Balakrishnan)",
    .pin = ASYM_PIN_TYPE,
    .plan = plan,
};
