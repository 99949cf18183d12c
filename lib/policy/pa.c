/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parallelism-aware (Saez 2010, 2.1). Fast CPUs go to SP threads, the one that waits longest first; then to MP threads,
 * which share what is left round robin, a turn per plan, that is per swap period; then to HP threads. What finds no fast
 * CPU runs on slow ones. SP and MP threads hold their CPU by class: a claim, which no other thread shares.
 *
 * A master (RTX) ranks with SP, a spinning thread last. Where all CPUs are alike there is nothing to claim, and threads are
 * only spread.
 */
#include <asym/policy.h>

#include <errno.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/spread.h"

struct params {
    int sp_boost;
};

struct state {
    asym_usec turn_at; /* when the current turn of the MP threads began */
};

struct thread_state {
    uint64_t turns;    /* it has had, or would have had when it was new */
    asym_usec turn_at; /* of its last one */
    bool known;
};

/* Lists of threads by rank, cut out of one array. */
struct ranks {
    uint32_t *sp, *mp, *rest, *scratch;
    size_t n_sp, n_mp, n_rest;
};

static struct thread_state *state_of(const struct asym_policy_input *in, uint32_t t)
{
    return in->threads[t].state;
}

static int by_waiting(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_policy_input *in = ctx;
    asym_usec x = in->threads[a].class_since, y = in->threads[b].class_since;
    return x < y ? -1 : x > y;
}

/* Who is in the current turn stays for its length; then who had the fewest turns, and of those the longest ago. */
static int by_turn(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_policy_input *in = ctx;
    const struct state *s = in->state;
    const struct thread_state *x = state_of(in, a), *y = state_of(in, b);
    bool mine = s->turn_at == in->now && x->turn_at == in->now, other = s->turn_at == in->now && y->turn_at == in->now;
    if (mine != other)
        return other - mine;
    if (x->turns != y->turns)
        return x->turns < y->turns ? -1 : 1;
    return x->turn_at < y->turn_at ? -1 : x->turn_at > y->turn_at;
}

static void rank(const struct asym_policy_input *in, struct ranks *r)
{
    for (uint32_t t = 0; t < in->n_threads; t++) {
        const struct asym_policy_thread *thread = &in->threads[t];
        if (thread->spinning || thread->class == ASYM_CLASS_HP || thread->class == ASYM_CLASS_NONE) {
            if (thread->master && !thread->spinning)
                r->sp[r->n_sp++] = t;
            else
                r->rest[r->n_rest++] = t;
        } else if (thread->class == ASYM_CLASS_SP || thread->master) {
            r->sp[r->n_sp++] = t;
        } else {
            r->mp[r->n_mp++] = t;
        }
    }
}

/* A newcomer has had as many turns as who had the fewest: it neither waits for all others nor keeps them out. */
static void welcome(const struct asym_policy_input *in, const struct ranks *r)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < r->n_mp; i++)
        if (state_of(in, r->mp[i])->known)
            least = ASYM_MIN(least, state_of(in, r->mp[i])->turns);
    for (size_t i = 0; i < r->n_mp; i++) {
        struct thread_state *s = state_of(in, r->mp[i]);
        if (!s->known && least != UINT64_MAX)
            s->turns = least;
        s->known = true;
    }
}

static void hold(const struct asym_policy_input *in, struct asym_assignment *a, enum asym_reason reason)
{
    const struct params *p = in->params;
    a->claim = true;
    a->reason = reason;
    if (reason == ASYM_WHY_SP)
        a->nice_delta = (int8_t)p->sp_boost;
}

static void give_to_sp(struct asym_spread *sp, struct ranks *r, struct asym_mask *open)
{
    size_t room = asym_mask_count(open);
    asym_sort_index(r->sp, r->n_sp, r->scratch, by_waiting, sp->in);
    asym_spread_give(sp, r->sp, r->n_sp, open);
    for (size_t i = 0; i < r->n_sp; i++) {
        struct asym_assignment *a = &sp->ret[r->sp[i]];
        if (a->cpu >= 0) {
            hold(sp->in, a, ASYM_WHY_SP);
            continue;
        }
        a->reason = ASYM_WHY_SP_NO_ROOM;
        a->figure[0] = (double)r->n_sp;
        a->figure[1] = (double)room;
    }
}

static void give_to_mp(struct asym_spread *sp, struct ranks *r, struct asym_mask *open)
{
    struct state *s = sp->in->state;
    bool new_turn = s->turn_at != sp->in->now;
    size_t room = asym_mask_count(open);
    bool shared = r->n_mp > room;
    welcome(sp->in, r);
    if (shared)
        asym_sort_index(r->mp, r->n_mp, r->scratch, by_turn, sp->in);
    asym_spread_give(sp, r->mp, r->n_mp, open);
    for (size_t i = 0; i < r->n_mp; i++) {
        struct asym_assignment *a = &sp->ret[r->mp[i]];
        struct thread_state *t = state_of(sp->in, r->mp[i]);
        if (a->cpu >= 0) {
            hold(sp->in, a, shared ? ASYM_WHY_MP_TURN : ASYM_WHY_MP);
            t->turns += new_turn;
            t->turn_at = sp->in->now;
        } else {
            a->reason = ASYM_WHY_MP_WAITS;
        }
        a->figure[0] = (double)r->n_mp;
        a->figure[1] = (double)room;
    }
    s->turn_at = sp->in->now;
}

static void spread_rest(struct asym_spread *sp, const struct ranks *r, const struct asym_mask *open)
{
    struct asym_mask cpus = asym_mask_or(&sp->in->machine->slow, open);
    asym_spread_even(sp, r->sp, r->n_sp, &cpus);
    asym_spread_even(sp, r->mp, r->n_mp, &cpus);
    asym_spread_even(sp, r->rest, r->n_rest, &cpus);
    asym_spread_mend(sp);
    for (size_t i = 0; i < r->n_rest; i++) {
        struct asym_assignment *a = &sp->ret[r->rest[i]];
        bool fast = asym_mask_has(&sp->in->machine->fast, a->cpu);
        a->reason = fast ? ASYM_WHY_HP_SPARE : ASYM_WHY_HP;
    }
}

static void only_spread(struct asym_spread *sp, const struct ranks *r)
{
    const uint32_t *lists[] = {r->sp, r->mp, r->rest};
    const size_t lengths[] = {r->n_sp, r->n_mp, r->n_rest};
    for (size_t k = 0; k < ASYM_LENGTH(lists); k++) {
        asym_spread_even(sp, lists[k], lengths[k], &sp->in->machine->usable);
        for (size_t i = 0; i < lengths[k]; i++)
            sp->ret[lists[k][i]].reason = ASYM_WHY_ALIKE;
    }
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct ranks r = {0};
    uint32_t **lists[] = {&r.sp, &r.mp, &r.rest, &r.scratch};
    for (size_t i = 0; i < ASYM_LENGTH(lists); i++)
        *lists[i] = asym_arena_take(in->arena, in->n_threads + 1, sizeof(uint32_t));
    if (asym_spread_init(&sp, in, ret) < 0 || !r.sp || !r.mp || !r.rest || !r.scratch)
        return -ENOBUFS;
    rank(in, &r);
    if (asym_mask_empty(&in->machine->slow)) {
        only_spread(&sp, &r);
        return 0;
    }
    struct asym_mask open = in->machine->fast;
    give_to_sp(&sp, &r, &open);
    give_to_mp(&sp, &r, &open);
    spread_rest(&sp, &r, &open);
    return 0;
}

static const struct asym_option options[] = {
    {
        .key = "sp_boost",
        .type = ASYM_OPTION_NICE,
        .offset = offsetof(struct params, sp_boost),
        .def = "0",
        .min = -20,
        .max = 19,
        .help = "Added to the nice value of an SP thread while it holds a fast CPU; the source has none.",
    },
    {.key = NULL},
};

extern const struct asym_policy asym_policy_pa;
const struct asym_policy asym_policy_pa = {
    .name = "pa",
    .summary = "sequential phases first, mildly parallel programs next, highly parallel ones on slow CPUs",
    .source = "Saez 2010, 2.1",
    .pin = ASYM_PIN_TYPE,
    .params_size = sizeof(struct params),
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .options = options,
    .plan = plan,
};
