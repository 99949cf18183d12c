/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parallelism-aware (Saez 2010, 2.1). Fast CPUs go to SP threads, the one that waits longest first; then to MP threads,
 * which share what is left round robin, a turn per plan, that is per swap period; then to HP threads. What finds no fast
 * CPU runs on slow ones. A master (RTX) ranks with SP, a spinning thread last: with HP, as it claims nothing. Among these who
 * has a fast CPU keeps it: at a barrier every thread is the spinning one in its turn, and would change places each time.
 *
 * SP and MP threads hold their CPU by class: a claim, which no other thread shares, except one that may run nowhere else.
 * A thread that may run on no fast CPU takes part in none of this: it neither waits nor makes others wait. A fast CPU that
 * is held is not idle; one that nobody holds is filled before a slow CPU gets its second thread, whatever the class.
 *
 * Where all CPUs are alike there is nothing to claim, and threads are only spread.
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
    uint64_t turns;    /* it has had, or would have had when it was away */
    asym_usec turn_at; /* of its last one */
    asym_usec seen_at; /* plan in which it last wanted a turn */
};

/* Lists of threads by rank. Those that may run on a fast CPU that is free to them stand in front. */
struct ranks {
    uint32_t *sp, *mp, *rest, *scratch;
    size_t n_sp, n_mp, n_rest;
    struct key *keys; /* of each thread */
};

/* What is compared of an MP thread, gathered once: threads are many and their states far apart. */
struct key {
    uint64_t turns;
    asym_usec turn_at;
    bool away, not_in_turn;
};

/* When this turn began: an early plan is of the turn that is on. */
static asym_usec turn_of(const struct asym_policy_input *in)
{
    return in->now - in->in_turn;
}

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
    const struct ranks *r = ctx;
    const struct key *x = &r->keys[a], *y = &r->keys[b];
    if (x->not_in_turn != y->not_in_turn)
        return x->not_in_turn - y->not_in_turn;
    if (x->turns != y->turns)
        return x->turns < y->turns ? -1 : 1;
    return x->turn_at < y->turn_at ? -1 : x->turn_at > y->turn_at;
}

static void rank(const struct asym_policy_input *in, struct ranks *r)
{
    for (uint32_t t = 0; t < in->n_threads; t++) {
        const struct asym_policy_thread *thread = &in->threads[t];
        if (thread->spinning)
            r->rest[r->n_rest++] = t;
        else if (thread->master || thread->class == ASYM_CLASS_SP)
            r->sp[r->n_sp++] = t;
        else if (thread->class == ASYM_CLASS_MP)
            r->mp[r->n_mp++] = t;
        else
            r->rest[r->n_rest++] = t;
    }
}

static struct key key_of(const struct asym_policy_input *in, uint32_t t)
{
    const struct state *state = in->state;
    const struct thread_state *s = state_of(in, t);
    return (struct key){
        .turns = s->turns,
        .turn_at = s->turn_at,
        .away = s->seen_at == 0 || s->seen_at != state->turn_at,
        .not_in_turn = state->turn_at != turn_of(in) || s->turn_at != turn_of(in),
    };
}

/*
 * Who is new, or was away since the last plan, has had as many turns as who had the fewest of those that were not: it
 * neither waits for all others nor has turns owed to it, which would keep them out.
 */
static void welcome(const struct asym_policy_input *in, struct ranks *r, size_t n)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        struct key *k = &r->keys[r->mp[i]];
        *k = key_of(in, r->mp[i]);
        state_of(in, r->mp[i])->seen_at = turn_of(in);
        if (!k->away)
            least = ASYM_MIN(least, k->turns);
    }
    for (size_t i = 0; i < n && least != UINT64_MAX; i++) {
        struct key *k = &r->keys[r->mp[i]];
        if (k->away && k->turns < least)
            state_of(in, r->mp[i])->turns = k->turns = least;
    }
}

/* A thread that its CPUs leave no choice is told so rather than what its class would have wanted. */
static void explain(struct asym_spread *sp, uint32_t t, enum asym_reason reason, size_t wanting, size_t room)
{
    struct asym_assignment *a = &sp->ret[t];
    unsigned reach = asym_spread_reach(sp, t);
    a->claim = a->cpu >= 0;
    a->reason = reason;
    if (a->cpu < 0 && reach == ASYM_REACH_FAST)
        a->reason = ASYM_WHY_ONLY_FAST;
    else if (reach == ASYM_REACH_SLOW)
        a->reason = ASYM_WHY_NO_FAST;
    a->figure[0] = (double)wanting;
    a->figure[1] = (double)room;
}

static void give_to_sp(struct asym_spread *sp, struct ranks *r, struct asym_mask *open)
{
    const struct params *params = sp->in->params;
    size_t room = asym_mask_count(open), n = asym_spread_able(sp, r->sp, r->n_sp, open);
    asym_sort_index(r->sp, n, r->scratch, by_waiting, sp->in);
    asym_spread_give_serial(sp, r->sp, n, open);
    for (size_t i = 0; i < r->n_sp; i++) {
        struct asym_assignment *a = &sp->ret[r->sp[i]];
        if (a->cpu >= 0)
            a->nice_delta = (int8_t)params->sp_boost;
        const enum asym_reason holds = sp->in->threads[r->sp[i]].master ? ASYM_WHY_MASTER : ASYM_WHY_SP;
        explain(sp, r->sp[i], a->cpu >= 0 ? holds : ASYM_WHY_SP_NO_ROOM, n, room);
    }
}

static void give_to_mp(struct asym_spread *sp, struct ranks *r, struct asym_mask *open)
{
    struct state *s = sp->in->state;
    bool new_turn = s->turn_at != turn_of(sp->in);
    size_t room = asym_mask_count(open), n = asym_spread_able(sp, r->mp, r->n_mp, open);
    bool shared = n > room;
    welcome(sp->in, r, n);
    if (shared)
        asym_sort_index(r->mp, n, r->scratch, by_turn, r);
    asym_spread_give(sp, r->mp, n, open);
    for (size_t i = 0; i < r->n_mp; i++) {
        struct thread_state *t = state_of(sp->in, r->mp[i]);
        if (sp->ret[r->mp[i]].cpu >= 0) {
            explain(sp, r->mp[i], shared ? ASYM_WHY_MP_TURN : ASYM_WHY_MP, n, room);
            t->turns += new_turn;
            t->turn_at = turn_of(sp->in);
        } else {
            explain(sp, r->mp[i], ASYM_WHY_MP_WAITS, ASYM_MAX(n, r->n_mp), room);
        }
    }
    s->turn_at = turn_of(sp->in);
}

static enum asym_reason reason_of_rest(const struct asym_spread *sp, uint32_t t)
{
    if (sp->in->threads[t].spinning)
        return ASYM_WHY_SPINNING;
    if (!asym_mask_has(&sp->in->machine->fast, sp->ret[t].cpu))
        return ASYM_WHY_HP;
    return asym_spread_reach(sp, t) == ASYM_REACH_FAST ? ASYM_WHY_ONLY_FAST : ASYM_WHY_HP_SPARE;
}

static void spread_rest(struct asym_spread *sp, const struct ranks *r, const struct asym_mask *open)
{
    struct asym_mask cpus = asym_mask_or(&sp->in->machine->slow, open);
    asym_spread_even(sp, r->sp, r->n_sp, &cpus);
    asym_spread_even(sp, r->mp, r->n_mp, &cpus);
    asym_spread_even(sp, r->rest, r->n_rest, &cpus);
    asym_spread_mend(sp);
    for (size_t i = 0; i < r->n_rest; i++)
        sp->ret[r->rest[i]].reason = reason_of_rest(sp, r->rest[i]);
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct ranks r = {0};
    uint32_t **lists[] = {&r.sp, &r.mp, &r.rest, &r.scratch};
    for (size_t i = 0; i < ASYM_LENGTH(lists); i++)
        *lists[i] = asym_arena_take(in->arena, in->n_threads + 1, sizeof(uint32_t));
    r.keys = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r.keys);
    if (asym_spread_init(&sp, in, ret) < 0 || !r.keys || !r.sp || !r.mp || !r.rest || !r.scratch)
        return -ENOBUFS;
    rank(in, &r);
    if (!asym_machine_is_asymmetric(in->machine)) {
        asym_spread_alike(&sp, r.sp, r.n_sp);
        asym_spread_alike(&sp, r.mp, r.n_mp);
        asym_spread_alike(&sp, r.rest, r.n_rest);
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
    .reacts = true,
    .params_size = sizeof(struct params),
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .options = options,
    .plan = plan,
};
