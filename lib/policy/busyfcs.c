/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fast CPU is never idle before a slow one; nothing else distinguishes threads (Saez 2010, 2.3, after Balakrishnan). */
#include <asym/policy.h>

#include <errno.h>

#include "base/arena.h"
#include "base/mask.h"
#include "policy/spread.h"

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    uint32_t *all = asym_arena_take(in->arena, in->n_threads + 1, sizeof *all);
    if (asym_spread_init(&sp, in, ret) < 0 || !all)
        return -ENOBUFS;
    for (size_t i = 0; i < in->n_threads; i++)
        all[i] = (uint32_t)i;
    asym_spread_even(&sp, all, in->n_threads, &in->machine->usable);
    asym_spread_mend(&sp);
    for (size_t i = 0; i < in->n_threads; i++)
        ret[i].reason = asym_mask_has(&in->machine->fast, ret[i].cpu) ? ASYM_WHY_FAST_BUSY_FIRST
                                                                      : ASYM_WHY_FAST_ALL_BUSY;
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
