/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/ranked.h"

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"

/* Gains in hundredths, so that what is no difference moves nobody; more than this is no core's doing. */
#define GAIN_UNITS 100
#define GAIN_MOST  10000

/* A key: little gain last, then who holds no fast CPU, then who is not on one. */
enum { KEY_OFF_FAST = 1 << 0, KEY_NOT_HELD = 1 << 1, KEY_GAIN_SHIFT = 2 };

int asym_ranked_init(struct asym_ranked *r, struct asym_spread *sp)
{
    struct asym_arena *arena = sp->in->arena;
    const size_t n = sp->in->n_threads + 1;
    *r = (struct asym_ranked){
        .sp = sp,
        .gain = asym_arena_take(arena, n, sizeof *r->gain),
        .held = asym_arena_take(arena, n, sizeof *r->held),
        .keys = asym_arena_take(arena, n, sizeof *r->keys),
        .order = asym_spread_all(sp->in),
        .scratch = asym_arena_take(arena, n, sizeof *r->scratch),
    };
    return r->gain && r->held && r->keys && r->order && r->scratch ? 0 : -ENOBUFS;
}

static uint32_t key_of(const struct asym_ranked *r, size_t t)
{
    const struct asym_policy_input *in = r->sp->in;
    const uint32_t gain = (uint32_t)(ASYM_MIN(r->gain[t] * GAIN_UNITS, (float)GAIN_MOST) + 0.5f);
    return (GAIN_MOST - ASYM_MIN(gain, (uint32_t)GAIN_MOST)) << KEY_GAIN_SHIFT | (r->held[t] ? 0 : KEY_NOT_HELD) |
           (asym_mask_has(&in->machine->fast, in->threads[t].home) ? 0 : KEY_OFF_FAST);
}

static int by_key(uint32_t a, uint32_t b, const void *ctx)
{
    const uint32_t *keys = ctx;
    return keys[a] < keys[b] ? -1 : keys[a] > keys[b];
}

void asym_ranked_place(struct asym_ranked *r, struct asym_mask *fast)
{
    struct asym_spread *sp = r->sp;
    const struct asym_machine *m = sp->in->machine;
    const size_t n = sp->in->n_threads;
    for (size_t t = 0; t < n; t++)
        r->keys[t] = key_of(r, t);
    asym_sort_index(r->order, n, r->scratch, by_key, r->keys);
    asym_spread_give(sp, r->order, asym_spread_able(sp, r->order, n, fast), fast);
    for (size_t t = 0; t < n; t++)
        r->held[t] = asym_mask_has(&m->fast, sp->ret[t].cpu);
    struct asym_mask rest = asym_mask_or(&m->slow, fast);
    asym_spread_even(sp, r->order, n, &rest);
    asym_spread_mend(sp);
}

void asym_ranked_explain(const struct asym_ranked *r, size_t t, enum asym_reason unknown)
{
    struct asym_assignment *a = &r->sp->ret[t];
    const unsigned reach = asym_spread_reach(r->sp, t);
    a->figure[0] = (double)r->gain[t];
    if (!(reach & ASYM_REACH_FAST))
        a->reason = ASYM_WHY_NO_FAST;
    else if (!(reach & ASYM_REACH_SLOW))
        a->reason = ASYM_WHY_ONLY_FAST;
    else if (!(r->gain[t] > 0))
        a->reason = unknown;
    else
        a->reason = asym_mask_has(&r->sp->in->machine->fast, a->cpu) ? ASYM_WHY_GAINS : ASYM_WHY_GAINS_LESS;
}
