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
    else if (!(r->gain[t] > 0))
        a->reason = unknown;
    else
        a->reason = asym_mask_has(&r->sp->in->machine->fast, a->cpu) ? &gains : &gains_less;
}

const struct asym_option asym_boost_options[] = {
    ASYM_OPTION(
        struct asym_boost_params, NICE, sp_boost, .def = "-5", .min = -20, .max = 19,
        .help =
            "While all CPUs are busy, asymd adds this to the nice value of a thread that shares a fast CPU because it "
            "sleeps much, and is in a serial phase or belongs to a serial program; the source changes no nice "
            "value."),
    {.key = NULL},
};

/* Less than one CPU is left. */
static bool is_busy(const struct asym_policy_input *in)
{
    double duties = 0;
    for (size_t t = 0; t < in->n_threads; t++)
        duties += in->threads[t].duty;
    return duties > (double)asym_mask_count(&in->machine->usable) - 1;
}

static bool is_serial(const struct asym_policy_input *in, const struct asym_policy_thread *thread)
{
    return thread->class == ASYM_CLASS_SP || thread->master || in->apps[thread->app].phase == ASYM_PHASE_SERIAL;
}

void asym_boost_light(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const struct asym_boost_params *params = in->params;
    if (!is_busy(in))
        return;
    for (size_t t = 0; t < in->n_threads; t++)
        if (in->threads[t].light && ret[t].cpu >= 0 && asym_mask_has(&in->machine->fast, ret[t].cpu) &&
            is_serial(in, &in->threads[t]))
            ret[t].nice_delta = (int8_t)params->sp_boost;
}

/* A pull must gain this part of a thread, so that the current split stays if another is as good. */
#define MARGIN 0.125

/* Returns the share of a CPU, in threads, that is as near to n as to n + 1: their harmonic mean. */
static double between(double n)
{
    return 2 * n * (n + 1) / (2 * n + 1);
}

/* Idle CPUs come before all others; among them the fastest comes first. */
static double enter(double load, double weight, double speed)
{
    (void)weight;
    return load < 1 ? -speed : between(load) / speed;
}

static double leave(double load, double weight, double speed, enum asym_nearness near)
{
    (void)weight;
    (void)near;
    return load < 2 ? -speed : (between(load - 1) - MARGIN) / speed;
}

const struct asym_balance_rule asym_proportion_rule = {.enter = enter, .leave = leave};

double asym_proportion_total(const struct asym_machine *m, const struct asym_mask *cpus)
{
    double sum = 0;
    ASYM_MASK_FOREACH (c, cpus)
        sum += asym_balance_speed(m, c);
    return sum;
}

static const struct asym_reason own_cpu = {
    .text = "a CPU to itself: no CPU idles before another has two threads",
    .sentence = "has a CPU to itself, because no CPU gets two threads while another is idle"};
static const struct asym_reason by_speed = {
    .text = "every CPU is busy: %.0f threads share this one; its speed entitles it to %.1f",
    .sentence = "shares its CPU, because every CPU is busy: %.0f threads are on it, and its speed entitles it to %.1f"};

void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total)
{
    const struct asym_machine *m = b->sp->in->machine;
    struct asym_assignment *a = &b->sp->ret[t];
    if (asym_machine_is_asymmetric(m) && !(asym_spread_reach(b->sp, t) & ASYM_REACH_FAST)) {
        a->reason = &asym_spread_no_fast;
    } else if (b->sp->load[a->cpu] < 2) {
        a->reason = &own_cpu;
    } else {
        a->reason = &by_speed;
        a->figure[0] = b->sp->load[a->cpu];
        a->figure[1] = total > 0 ? (double)n * asym_balance_speed(m, a->cpu) / total : 0;
    }
}
