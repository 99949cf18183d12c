/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parallelism-aware (Saez 2010, 2.1). Fast CPUs go first to threads in a serial phase (SP), the one that waits longest
 * first. They go next to threads of mildly parallel programs (MP), which share the remaining ones round robin, one turn per
 * plan, that is per swap period. They go last to threads of highly parallel programs (HP). A thread that gets no fast CPU
 * runs on a slow one. A master (RTX) ranks with SP. A spinning thread ranks last, with HP, and holds no CPU exclusively.
 * Among the threads of this last rank a thread on a fast CPU keeps it: at a barrier each thread spins at some time, and
 * would otherwise change places each time.
 *
 * SP and MP threads hold their CPU exclusively: no other thread shares it, unless that thread may run nowhere else. They
 * have a fast core each; its second hardware thread goes to the threads that get no fast seat, when all slow cores are
 * busy. A light thread, which sleeps too much for that, leaves its CPU to the others; light MP threads share a fast CPU, and
 * take part in turns with their part of it. While all CPUs are busy, light threads of serial programs and phases get
 * sp_boost, so that they have their CPU when they wake. A thread that may run on no fast CPU takes no part in this: it
 * does not wait, and no thread waits for it. A fast CPU that is held is not idle. A fast CPU that no thread holds gets
 * a thread before a slow CPU gets its second, whatever the class.
 *
 * If all CPUs are alike, no thread holds a CPU exclusively, and the threads are only spread.
 */
#include <asym/policy.h>

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "policy/placement/spread.h"

struct state {
    asym_usec turn_at; /* when the current turn of the MP threads began */
};

struct thread_state {
    uint64_t turns;    /* turns it has had; after an absence at least as many as the other threads */
    asym_usec turn_at; /* when its last turn began */
    asym_usec seen_at; /* when the last turn began that it asked for */
};

/* Lists of threads by rank. Threads that may run on one of the free fast CPUs stand in front. */
struct ranks {
    uint32_t *sp, *mp, *rest, *scratch;
    size_t n_sp, n_mp, n_rest;
    struct asym_mask shared; /* fast CPUs of light threads */
    struct key *keys;        /* per thread */
};

/* The lot of an MP thread in this plan: a fast CPU, a share of one, or its turn later. */
enum lot { LOT_HEAVY, LOT_LIGHT, LOT_WAITS, N_LOTS };

/* The sort key of an MP thread. Thread states lie far apart in memory, so the keys are gathered once. */
struct key {
    uint64_t turns;
    asym_usec turn_at;
    bool away, not_in_turn;
    enum lot lot;
};

/* Returns when the current turn began. An early plan belongs to the turn that is already running. */
static asym_usec turn_of(const struct asym_policy_input *in)
{
    return in->now - in->since_swap;
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

/* A thread in the current turn keeps its CPU for that turn. Next comes the thread with the fewest turns; on a tie, the one
 * whose last turn is longest ago. */
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
 * A thread that the last plan did not have gets the lowest number of turns of the threads that it had, unless it has more.
 * So it waits no longer than the others, and gets no credit for turns that it missed.
 */
static void include_absent(const struct asym_policy_input *in, struct ranks *r, size_t n)
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

static const struct asym_reason serial_phase = {
    .text = "serial phase: on a fast CPU for up to %g s",
    .sentence = "is in a serial phase, so it has a fast CPU for up to %g s"};
static const struct asym_reason master = {
    .text = "master thread, as its program says: on a fast CPU",
    .sentence = "does the serial work of its program, as that has reported, so it has a fast CPU"};
static const struct asym_reason serial_waits = {
    .text = "serial phase: waits (%.0f threads want a fast CPU, %.0f can have one)",
    .sentence = "is in a serial phase and waits: %.0f threads in serial phases want a fast CPU, and %.0f can have one"};
static const struct asym_reason serial_light = {
    .text = "serial phase, but sleeps %.0f %% of the time: shares a fast CPU",
    .sentence = "is in a serial phase, but sleeps %.0f %% of the time, so it shares a fast CPU"};
static const struct asym_reason light = {
    .text = "few threads, sleeps %.0f %% of the time: shares a fast CPU",
    .sentence =
        "belongs to a program with few runnable threads and sleeps %.0f %% of the time, so it shares a fast CPU"};
static const struct asym_reason light_turn = {
    .text = "few threads, sleeps %.0f %% of the time: its turn to share a fast CPU",
    .sentence =
        "belongs to a program with few runnable threads and sleeps %.0f %% of the time, and has its turn to share a "
        "fast CPU",
    .rotates = true};
static const struct asym_reason few_threads = {
    .text = "few threads: a fast CPU each",
    .sentence = "belongs to a program with few runnable threads, so it has a fast CPU to itself"};
static const struct asym_reason its_turn = {
    .text = "few threads: its turn on a fast CPU (%.0f threads take turns, %.0f at a time)",
    .sentence = "has its turn on a fast CPU: %.0f threads of programs with few threads take turns, %.0f at a time",
    .rotates = true};
static const struct asym_reason not_its_turn = {
    .text = "few threads: waits for its turn on a fast CPU (%.0f threads take turns, %.0f at a time)",
    .sentence =
        "waits for its turn on a fast CPU: %.0f threads of programs with few threads take turns, %.0f at a time"};
static const struct asym_reason parallel = {
    .text = "highly parallel: %.1f runnable threads, more than %.0f",
    .sentence = "belongs to a highly parallel program, which has %.1f runnable threads, more than the limit of %.0f"};
static const struct asym_reason background = {
    .text = "background: its nice value leaves the fast CPUs to others",
    .sentence = "belongs to a program with high nice values, so it leaves the fast CPUs to others"};
static const struct asym_reason by_rule = {.text = "its rule counts it as highly parallel",
                                           .sentence = "belongs to a program that a rule counts as highly parallel"};
static const struct asym_reason spare_cpu = {
    .text = "parallel: a spare fast CPU",
    .sentence = "belongs to a parallel program, and has a fast CPU that no other thread needs"};
static const struct asym_reason spare_in_background = {
    .text = "background: a spare fast CPU",
    .sentence = "belongs to a program with high nice values, and has a fast CPU that no other thread needs"};

/* If the mask leaves one choice, report that as the reason instead of the reason of its class. */
static void explain(struct asym_spread *sp, uint32_t t, const struct asym_reason *reason, size_t wanting, size_t room)
{
    struct asym_assignment *a = &sp->ret[t];
    unsigned reach = asym_spread_reach(sp, t);
    a->exclusive = a->cpu >= 0;
    if (a->exclusive)
        asym_mask_set(&sp->reserved, (unsigned)a->cpu);
    a->reason = reason;
    if (a->cpu < 0 && reach == ASYM_REACH_FAST)
        a->reason = &asym_spread_only_fast;
    else if (reach == ASYM_REACH_SLOW)
        a->reason = &asym_spread_no_fast;
    a->figure[0] = (double)wanting;
    a->figure[1] = (double)room;
}

/* Say why a light thread shares its fast CPU. */
static void let_share(struct asym_spread *sp, struct ranks *r, uint32_t t, const struct asym_reason *reason)
{
    const struct asym_policy_thread *thread = &sp->in->threads[t];
    struct asym_assignment *a = &sp->ret[t];
    if (a->cpu < 0 || !thread->light || !asym_mask_has(&sp->in->machine->fast, a->cpu))
        return;
    a->exclusive = false;
    a->reason = reason;
    a->figure[0] = 100 * (1 - thread->duty);
    asym_mask_set(&r->shared, (unsigned)a->cpu);
    sp->holds[t] = (uint8_t)(1 + asym_machine_row(sp->in->machine, a->cpu, false));
}

static void give_to_sp(struct asym_spread *sp, struct ranks *r, struct asym_mask *open)
{
    size_t room = asym_spread_room(sp, open, false), n = asym_spread_able(sp, r->sp, r->n_sp, open);
    asym_sort_index(r->sp, n, r->scratch, by_waiting, sp->in);
    asym_spread_give_serial(sp, r->sp, n, false, open);
    for (size_t i = 0; i < r->n_sp; i++) {
        struct asym_assignment *a = &sp->ret[r->sp[i]];
        const struct asym_reason *holds = sp->in->threads[r->sp[i]].master ? &master : &serial_phase;
        explain(sp, r->sp[i], a->cpu >= 0 ? holds : &serial_waits, n, room);
        const asym_usec age = sp->in->now - sp->in->threads[r->sp[i]].class_since;
        if (a->reason == &serial_phase)
            a->figure[0] = asym_reason_seconds(sp->in->amp_boost - ASYM_MIN(age, sp->in->amp_boost));
        let_share(sp, r, r->sp[i], &serial_light);
    }
}

static int by_lot(uint32_t a, uint32_t b, const void *ctx)
{
    const struct ranks *r = ctx;
    return (int)r->keys[a].lot - (int)r->keys[b].lot;
}

/* Two threads share a CPU if it has time for both, but no more: those of one program mostly run at the same time. */
static double need_of(const struct asym_policy_thread *thread)
{
    return thread->light && thread->duty <= 0.5 ? 0.5 : 1;
}

/*
 * Put the first n MP threads into the order of enum lot. In the order of turns, each gets a fast CPU if what it needs
 * is left. Without light ones all n count as heavy: as many as there is room for get a CPU each. Returns false if
 * there is room for all.
 */
static bool draw_lots(const struct asym_spread *sp, struct ranks *r, size_t n, size_t room, size_t ret_n[N_LOTS])
{
    double need = 0, left = (double)room;
    bool any_light = false;
    for (size_t i = 0; i < n; i++) {
        const struct asym_policy_thread *thread = &sp->in->threads[r->mp[i]];
        any_light |= thread->light;
        need += need_of(thread);
    }
    const bool shared = need > left;
    if (shared)
        asym_sort_index(r->mp, n, r->scratch, by_turn, r);
    for (size_t i = 0; i < n; i++) {
        const struct asym_policy_thread *thread = &sp->in->threads[r->mp[i]];
        const double needs = need_of(thread);
        const bool fits = needs <= left || !any_light;
        left -= fits ? needs : 0;
        r->keys[r->mp[i]].lot = !fits ? LOT_WAITS : thread->light ? LOT_LIGHT : LOT_HEAVY;
        ret_n[r->keys[r->mp[i]].lot]++;
    }
    if (any_light)
        asym_sort_index(r->mp, n, r->scratch, by_lot, r);
    return shared;
}

static void give_to_mp(struct asym_spread *sp, struct ranks *r, struct asym_mask *open)
{
    struct state *s = sp->in->state;
    bool new_turn = s->turn_at != turn_of(sp->in);
    size_t room = asym_spread_room(sp, open, false), n = asym_spread_able(sp, r->mp, r->n_mp, open), lots[N_LOTS] = {0};
    include_absent(sp->in, r, n);
    const bool shared = draw_lots(sp, r, n, room, lots);
    uint32_t *lights = r->mp + lots[LOT_HEAVY];
    asym_spread_give(sp, r->mp, lots[LOT_HEAVY], false, open);
    const struct asym_mask cores = asym_spread_seats(sp, open, false);
    asym_spread_even(sp, lights, asym_spread_able(sp, lights, lots[LOT_LIGHT], &cores), &cores);
    for (size_t i = 0; i < r->n_mp; i++) {
        struct thread_state *t = state_of(sp->in, r->mp[i]);
        if (sp->ret[r->mp[i]].cpu >= 0) {
            explain(sp, r->mp[i], shared ? &its_turn : &few_threads, n, room);
            t->turns += new_turn;
            t->turn_at = turn_of(sp->in);
        } else {
            explain(sp, r->mp[i], &not_its_turn, ASYM_MAX(n, r->n_mp), room);
        }
        let_share(sp, r, r->mp[i], shared ? &light_turn : &light);
    }
    s->turn_at = turn_of(sp->in);
}

static const struct asym_reason *reason_of_rest(const struct asym_spread *sp, uint32_t t)
{
    if (sp->in->threads[t].spinning)
        return &asym_spread_spinning;
    const enum asym_class_source by = sp->in->apps[sp->in->threads[t].app].class_by;
    if (!asym_mask_has(&sp->in->machine->fast, sp->ret[t].cpu))
        return by == ASYM_CLASS_BY_NICE ? &background : by == ASYM_CLASS_BY_RULE ? &by_rule : &parallel;
    if (asym_spread_reach(sp, t) == ASYM_REACH_FAST)
        return &asym_spread_only_fast;
    return by == ASYM_CLASS_BY_NICE ? &spare_in_background : &spare_cpu;
}

static void spread_rest(struct asym_spread *sp, const struct ranks *r, const struct asym_mask *open)
{
    struct asym_mask cpus = asym_mask_or(&sp->in->machine->slow, open);
    cpus = asym_mask_or(&cpus, &r->shared);
    asym_spread_even(sp, r->sp, r->n_sp, &cpus);
    asym_spread_even(sp, r->mp, r->n_mp, &cpus);
    asym_spread_even(sp, r->rest, r->n_rest, &cpus);
    asym_spread_fill_seats(sp);
    for (size_t i = 0; i < r->n_rest; i++) {
        struct asym_assignment *a = &sp->ret[r->rest[i]];
        a->reason = reason_of_rest(sp, r->rest[i]);
        a->figure[0] = sp->in->apps[sp->in->threads[r->rest[i]].app].runnable;
        a->figure[1] = sp->in->hp_threshold;
    }
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct ranks r = {0};
    uint32_t **lists[] = {&r.sp, &r.mp, &r.rest, &r.scratch};
    for (size_t i = 0; i < ASYM_LENGTH(lists); i++)
        *lists[i] = asym_arena_take(in->arena, in->n_threads + 1, sizeof(uint32_t));
    r.keys = asym_arena_take(in->arena, in->n_threads + 1, sizeof *r.keys);
    asym_spread_init(&sp, in, ret);
    if (asym_arena_is_short(in->arena))
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
    asym_boost_light(in, ret);
    return 0;
}

const struct asym_policy asym_policy_pa = {
    .name = "pa",
    .summary = "serial phases come first, then mildly parallel programs; highly parallel ones run on slow CPUs",
    .source = "Saez 2010, 2.1",
    .pin = ASYM_PIN_TYPE,
    .reacts = true,
    .serves_alone = true,
    .params_size = sizeof(struct asym_boost_params),
    .state_size = sizeof(struct state),
    .task_state_size = sizeof(struct thread_state),
    .options = asym_boost_options,
    .plan = plan,
};
