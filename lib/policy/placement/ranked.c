/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/ranked.h"

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread-even.h"

/* Gains are compared in hundredths, so that noise moves no thread. No core is 100 times as fast as another. */
#define GAIN_UNITS 100
#define GAIN_MOST  10000

/* A key: the least gain goes last; on a tie a thread that had no seat by its rank, then the one on the slower core type. */
enum { KEY_SEAT_SHIFT = 6, KEY_GAIN_SHIFT = 14 };
_Static_assert(ASYM_MAX_TYPES < 1 << KEY_SEAT_SHIFT, "the core type is the lowest part of the key");

int asym_ranked_init(struct asym_ranked *r, struct asym_spread *sp)
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
    return r->gain && r->holds && r->keys && r->order && r->scratch ? 0 : -ENOBUFS;
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

static struct asym_mask idle_of(const struct asym_spread *sp, const struct asym_mask *cpus)
{
    struct asym_mask idle = *cpus;
    ASYM_MASK_FOREACH (c, cpus)
        if (sp->load[c] > 0)
            asym_mask_clear(&idle, (unsigned)c);
    return idle;
}

/* Lists the threads that are not placed yet, by rank, in scratch. Returns how many. */
static size_t list_left(const struct asym_ranked *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->sp->in->n_threads; i++)
        if (r->sp->ret[r->order[i]].cpu < 0)
            r->scratch[n++] = r->order[i];
    return n;
}

static void note_seats(struct asym_ranked *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (r->sp->ret[r->scratch[i]].cpu >= 0)
            r->holds[r->scratch[i]] = r->sp->holds[r->scratch[i]];
}

/*
 * Offer the row first to as many threads as it has seats, or a thread further down would keep its preferred CPU while a thread
 * that gains more gets none. Then offer what these threads may not run on to the others.
 */
static void give_row(struct asym_ranked *r, const struct asym_seat_row *row)
{
    struct asym_spread *sp = r->sp;
    struct asym_mask idle = idle_of(sp, &sp->in->machine->types[row->type].cpus);
    const size_t n = asym_spread_able(sp, r->scratch, list_left(r), &idle);
    const size_t room = asym_spread_room(sp, &idle, row->is_beside);
    asym_spread_give(sp, r->scratch, ASYM_MIN(n, room), row->is_beside, &idle);
    asym_spread_give(sp, r->scratch, n, row->is_beside, &idle);
    note_seats(r, n);
}

/* The cores of the slowest type, and what adds less, need no rank: they are what is left, unless there are too few for all. */
void asym_ranked_place(struct asym_ranked *r)
{
    struct asym_spread *sp = r->sp;
    const struct asym_machine *m = sp->in->machine;
    const size_t n = sp->in->n_threads;
    for (size_t t = 0; t < n; t++) {
        r->keys[t] = key_of(r, t);
        r->holds[t] = sp->ret[t].cpu >= 0 ? r->holds[t] : 0;
    }
    asym_sort_index(r->order, n, r->scratch, by_key, r->keys);
    for (unsigned i = 0; i < m->types[m->n_types - 1].row[0]; i++)
        give_row(r, &m->rows[i]);
    struct asym_mask free_fast = idle_of(sp, &m->fast);
    const size_t left = list_left(r);
    asym_spread_give_siblings(sp, r->scratch, left, &free_fast);
    note_seats(r, left);
    asym_spread_rest(sp, r->order, n, &free_fast);
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
    else if (!(r->gain[t] > 0))
        a->reason = unknown;
    else
        a->reason = asym_mask_has(&r->sp->in->machine->fast, a->cpu) ? &gains : &gains_less;
}
