/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/ranked.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread.h"

/* Gains are compared in hundredths, so that noise moves no thread. No core is 100 times as fast as another. */
#define GAIN_UNITS 100
#define GAIN_MOST  10000

/* A key: the least gain goes last; on a tie a thread that had no seat by its rank, then the one on the slower core type. */
enum { KEY_SEAT_SHIFT = 6, KEY_GAIN_SHIFT = 14 };
_Static_assert(ASYM_MAX_TYPES < 1 << KEY_SEAT_SHIFT, "the core type is the lowest part of the key");

void asym_ranked_init(struct asym_ranked *r, struct asym_spread *sp)
{
    struct asym_arena *arena = sp->in->arena;
    const size_t n = sp->in->n_threads + 1;
    *r = (struct asym_ranked){
        .sp = sp,
        .gain = asym_arena_take(arena, n, sizeof *r->gain),
        .holds = asym_arena_take(arena, n, sizeof *r->holds),
        .keys = asym_arena_take(arena, n, sizeof *r->keys),
        .order = asym_spread_all(sp->in),
        .scratch = asym_arena_take(arena, n, sizeof *r->scratch),
    };
}

static uint32_t key_of(const struct asym_ranked *r, size_t t)
{
    const struct asym_policy_input *in = r->sp->in;
    const uint32_t gain = (uint32_t)(ASYM_MIN(r->gain[t] * GAIN_UNITS, (float)GAIN_MOST) + 0.5f);
    const int32_t cpu = in->threads[t].preferred_cpu;
    return (GAIN_MOST - ASYM_MIN(gain, (uint32_t)GAIN_MOST)) << KEY_GAIN_SHIFT |
           (uint32_t)asym_spread_place(r->holds[t]) << KEY_SEAT_SHIFT |
           (cpu >= 0 ? (uint32_t)in->machine->cpus[cpu].type : ASYM_MAX_TYPES);
}

static int by_key(uint32_t a, uint32_t b, const void *ctx)
{
    const uint32_t *keys = ctx;
    return keys[a] < keys[b] ? -1 : keys[a] > keys[b];
}

void asym_ranked_place(struct asym_ranked *r)
{
    struct asym_spread *sp = r->sp;
    const size_t n = sp->in->n_threads;
    for (size_t t = 0; t < n; t++) {
        r->keys[t] = key_of(r, t);
        r->holds[t] = sp->ret[t].cpu >= 0 ? r->holds[t] : 0;
    }
    asym_sort_index(r->order, n, r->scratch, by_key, r->keys);
    asym_spread_by_rank(sp, r->order, n, n);
    for (size_t t = 0; t < n; t++)
        r->holds[t] = sp->holds[t] > 0 ? sp->holds[t] : r->holds[t];
}

static const struct asym_reason gains = {.text = "%.2f times as fast on a fast CPU: holds one",
                                         .sentence = "is %.2f times as fast on a fast CPU, so it holds one"};
static const struct asym_reason gains_less = {
    .text = "%.2f times as fast on a fast CPU: others gain more",
    .sentence = "is %.2f times as fast on a fast CPU, but other threads gain more"};

void asym_ranked_explain(const struct asym_ranked *r, size_t t, const struct asym_reason *unknown)
{
    struct asym_assignment *a = &r->sp->ret[t];
    const unsigned reach = asym_spread_reach(r->sp, t);
    a->figure[0] = (double)r->gain[t];
    if (!(reach & ASYM_REACH_FAST))
        a->reason = &asym_spread_no_fast;
    else if (!(reach & ASYM_REACH_SLOW))
        a->reason = &asym_spread_only_fast;
    else if (r->sp->in->threads[t].spinning)
        a->reason = &asym_spread_spinning;
    else if (!(r->gain[t] > 0))
        a->reason = unknown;
    else
        a->reason = asym_mask_has(&r->sp->in->machine->fast, a->cpu) ? &gains : &gains_less;
}
