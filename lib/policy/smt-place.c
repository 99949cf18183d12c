/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/smt-place.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"

const char *const asym_smt_weights_names[] = {"nice", "source", NULL};

/* A take that fails does not end it: the arena then knows what all of them would have wanted. */
static int take_memory(struct asym_smt *s, struct asym_assignment *ret)
{
    struct asym_arena *arena = s->in->arena;
    const size_t n = s->in->n_threads, cores = s->in->machine->n_cores;
    s->threads = asym_arena_take(arena, n + 1, sizeof *s->threads);
    s->cores = asym_arena_take(arena, cores + 1, sizeof *s->cores);
    s->seat = asym_arena_take(arena, n + 1, sizeof *s->seat);
    s->length = asym_arena_take(arena, cores + 1, sizeof *s->length);
    s->begin = asym_arena_take(arena, cores + 1, sizeof *s->begin);
    s->guests = asym_arena_take(arena, n + 1, sizeof *s->guests);
    s->all = asym_spread_all(s->in);
    int r = asym_spread_init(&s->sp, &s->view, ret);
    return s->threads && s->cores && s->seat && s->length && s->begin && s->guests && s->all ? r : -ENOBUFS;
}

/* A seat that it may no longer have is given up for where it is. */
static void go_home(struct asym_smt *s)
{
    for (size_t t = 0; t < s->in->n_threads; t++) {
        const int32_t base = asym_smt_seat_of(s, t)->base - 1;
        if (asym_mask_has(s->threads[t].may, base))
            s->threads[t].home = base;
    }
}

int asym_smt_init(struct asym_smt *s, const struct asym_policy_input *in, struct asym_assignment *ret)
{
    s->in = in;
    s->view = *in;
    int r = take_memory(s, ret);
    if (r < 0)
        return r;
    memcpy(s->threads, in->threads, in->n_threads * sizeof *s->threads);
    s->view.threads = s->threads;
    go_home(s);
    asym_smt_seat_all(s);
    return 0;
}

static void count_cores(struct asym_smt *s)
{
    const struct asym_machine *m = s->in->machine;
    memset(s->cores, 0, m->n_cores * sizeof *s->cores);
    ASYM_MASK_FOREACH (c, &m->usable) {
        s->cores[m->cpus[c].core].contexts++;
        s->cores[m->cpus[c].core].alone = -1;
    }
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_core *core = asym_smt_core_of(s, t);
        core->n++;
        core->weights += asym_smt_weight((enum asym_smt_weights)s->params->weights, s->threads[t].nice);
    }
}

void asym_smt_seat_all(struct asym_smt *s)
{
    const struct asym_machine *m = s->in->machine;
    memset(s->sp.load, 0, m->n_cpus * sizeof *s->sp.load);
    memset(s->sp.core_load, 0, m->n_cores * sizeof *s->sp.core_load);
    for (size_t t = 0; t < s->in->n_threads; t++)
        s->sp.ret[t] = (struct asym_assignment){.cpu = -1};
    asym_spread_even(&s->sp, s->all, s->in->n_threads, &m->usable);
    asym_spread_mend(&s->sp);
    for (size_t t = 0; t < s->in->n_threads; t++)
        s->seat[t] = s->sp.ret[t].cpu;
    count_cores(s);
}

/* What part of the core it sits on it is entitled to. */
static double share_of(const struct asym_smt *s, uint32_t t)
{
    const struct asym_smt_core *core = asym_smt_core_of(s, t);
    const double weight = asym_smt_weight((enum asym_smt_weights)s->params->weights, s->threads[t].nice);
    return asym_smt_frac(weight, core->weights, core->n);
}

/* P: how many run there side by side. */
static double beside(const struct asym_smt *s, uint32_t t)
{
    const struct asym_smt_core *core = asym_smt_core_of(s, t);
    return ASYM_MIN(core->n, core->contexts);
}

/* lib/policy/smt-measure.h says why not all. */
static bool is_measured(const struct asym_smt *s, uint32_t t)
{
    const struct asym_smt_core *core = asym_smt_core_of(s, t);
    return core->n <= 4 * core->contexts || share_of(s, t) * 2 * beside(s, t) >= 1;
}

/* How long its window would have to be. Measuring alone, each core is held for half of the time. */
static double wanted(const struct asym_smt *s, uint32_t t, const uint32_t *n_measured)
{
    const double p = beside(s, t);
    if (p < 2 || s->stage.until <= s->stage.from || s->stage.kind == ASYM_SMT_TOGETHER)
        return 0;
    if (s->stage.kind == ASYM_SMT_ALONE)
        return is_measured(s, t) ? 0.5 / n_measured[s->in->machine->cpus[s->seat[t]].core] : 0;
    const double share = ASYM_MIN(share_of(s, t), s->threads[t].runnable);
    return s->no_windows ? 0 : 1 - asym_smt_cofrac(share, s->x ? s->x(s, t, p) : 1 / p);
}

static void count_measured(struct asym_smt *s, uint32_t *ret_n)
{
    memset(ret_n, 0, s->in->machine->n_cores * sizeof *ret_n);
    for (uint32_t t = 0; t < s->in->n_threads; t++)
        ret_n[s->in->machine->cpus[s->seat[t]].core] += is_measured(s, t);
}

/*
 * Once in each stage, or those who come and go would shift everybody's windows. The windows of a core follow one another,
 * and the cores' are laid end to end.
 */
static void lay_windows(struct asym_smt *s)
{
    const struct asym_machine *m = s->in->machine;
    count_measured(s, s->sp.extra);
    memset(s->length, 0, m->n_cores * sizeof *s->length);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_seat *seat = asym_smt_seat_of(s, t);
        seat->laid = s->stage.from + 1;
        seat->length = wanted(s, t, s->sp.extra);
        s->length[m->cpus[s->seat[t]].core] += seat->length;
    }
    const double shift = asym_smt_shift(&s->stage);
    const double factor = asym_smt_lay(s->length, m->n_cores, m->n_cores / 2, shift, s->begin);
    for (size_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_seat *seat = asym_smt_seat_of(s, t);
        double *begin = &s->begin[m->cpus[s->seat[t]].core];
        seat->length *= factor;
        seat->begin = *begin >= 1 ? *begin - 1 : *begin;
        *begin += seat->length;
    }
}

static double left_of(const struct asym_smt *s, const struct asym_smt_seat *seat)
{
    if (seat->laid != s->stage.from + 1)
        return 0;
    return asym_smt_left(seat->begin, seat->length, asym_smt_at(&s->stage, s->in->now));
}

/* Which threads hold their core now, before it is known whether the others can go. Returns how many. */
static size_t open_windows(struct asym_smt *s)
{
    size_t n = 0;
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_core *core = asym_smt_core_of(s, t);
        if (core->n < 2 || core->contexts < 2 || core->alone >= 0 || !(left_of(s, asym_smt_seat_of(s, t)) > 0))
            continue;
        core->alone = (int32_t)t;
        core->due = true;
        n++;
    }
    return n;
}

static struct asym_mask cpus_not_held(const struct asym_smt *s)
{
    const struct asym_machine *m = s->in->machine;
    struct asym_mask free = m->usable;
    ASYM_MASK_FOREACH (c, &m->usable)
        if (s->cores[m->cpus[c].core].alone >= 0)
            asym_mask_clear(&free, (unsigned)c);
    return free;
}

/* Who has nowhere else to go stays, and so do all of its core. That leaves the others only more room. */
static void close_stuck(struct asym_smt *s)
{
    const struct asym_mask outside = cpus_not_held(s);
    struct asym_spread *sp = &s->sp;
    for (uint32_t i = 0; i < sp->n_sets; i++)
        sp->set_mark[i] = asym_mask_meets(sp->sets[i], &outside);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_core *core = asym_smt_core_of(s, t);
        core->stuck |= core->alone >= 0 && core->alone != (int32_t)t && !sp->set_mark[sp->set_of[t]];
    }
    for (size_t c = 0; c < s->in->machine->n_cores; c++)
        if (s->cores[c].stuck)
            s->cores[c].alone = -1;
}

/* A sibling that is kept clear counts as taken, so that nobody is sent there. */
static void hold(struct asym_smt *s)
{
    const struct asym_machine *m = s->in->machine;
    ASYM_MASK_FOREACH (c, &m->usable) {
        const int32_t alone = s->cores[m->cpus[c].core].alone;
        if (alone >= 0 && s->seat[alone] != c)
            s->sp.load[c]++;
    }
}

/* A guest that is somewhere already stays there. */
static void send_guests(struct asym_smt *s)
{
    const struct asym_mask outside = cpus_not_held(s);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        const int32_t alone = asym_smt_core_of(s, t)->alone, now_at = s->in->threads[t].home;
        if (alone < 0)
            continue;
        if (alone == (int32_t)t) {
            s->sp.ret[t].claim = true;
            continue;
        }
        s->guests[s->n_guests++] = t;
        s->sp.load[s->seat[t]]--;
        s->sp.core_load[s->in->machine->cpus[s->seat[t]].core]--;
        s->sp.ret[t].cpu = -1;
        if (asym_mask_has(&outside, now_at))
            s->threads[t].home = now_at;
    }
    hold(s);
    asym_spread_even(&s->sp, s->guests, s->n_guests, &outside);
    asym_spread_mend(&s->sp);
}

static double seconds_left(const struct asym_smt *s, double share)
{
    return share * (double)(s->stage.until - s->stage.from) / (double)ASYM_SEC;
}

/* Reason and figures of a thread whose core is held: by itself, or by another. */
static void explain_held(const struct asym_smt *s, uint32_t t, struct asym_assignment *a)
{
    const int32_t alone = asym_smt_core_of(s, t)->alone;
    a->figure[0] = seconds_left(s, left_of(s, asym_smt_seat_of(s, (size_t)alone)));
    a->reason = ASYM_WHY_SMT_GUEST;
    if (alone != (int32_t)t)
        return;
    a->reason = s->stage.kind == ASYM_SMT_RUN ? ASYM_WHY_SMT_SOLO : ASYM_WHY_SMT_MEASURED_ALONE;
    a->figure[1] = share_of(s, t) * 100;
}

static enum asym_reason reason_of(const struct asym_smt *s, const struct asym_smt_core *core)
{
    if (core->contexts < 2)
        return ASYM_WHY_SMT_NO_SIBLING;
    if (core->n < 2)
        return ASYM_WHY_SMT_OWN_CORE;
    if (s->stage.kind == ASYM_SMT_ALONE)
        return ASYM_WHY_SMT_SAMPLE;
    if (s->stage.kind == ASYM_SMT_TOGETHER)
        return ASYM_WHY_SMT_MEASURED;
    if (s->no_windows)
        return ASYM_WHY_SMT_FETCH;
    return core->due ? ASYM_WHY_SMT_CROWDED : ASYM_WHY_SMT_SHARED;
}

static void explain(const struct asym_smt *s, uint32_t t, struct asym_assignment *a)
{
    const struct asym_smt_core *core = asym_smt_core_of(s, t);
    const struct asym_smt_seat *seat = asym_smt_seat_of(s, t);
    if (core->alone >= 0) {
        explain_held(s, t, a);
        return;
    }
    a->reason = reason_of(s, core);
    a->figure[0] = share_of(s, t) * 100;
    a->figure[1] = seat->laid == s->stage.from + 1 ? seat->length * 100 : 0;
    if (a->reason == ASYM_WHY_SMT_SAMPLE || a->reason == ASYM_WHY_SMT_MEASURED)
        a->figure[0] = seconds_left(s, 1 - asym_smt_at(&s->stage, s->in->now));
}

void asym_smt_finish(struct asym_smt *s, const int32_t *home)
{
    bool laid = false;
    for (size_t t = 0; t < s->in->n_threads && !laid; t++)
        laid = asym_smt_seat_of(s, t)->laid == s->stage.from + 1;
    if (!laid)
        lay_windows(s);
    if (open_windows(s) > 0) {
        close_stuck(s);
        send_guests(s);
    }
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_seat *seat = asym_smt_seat_of(s, t);
        explain(s, t, &s->sp.ret[t]);
        seat->base = (home ? home[t] : s->seat[t]) + 1;
        seat->given = s->sp.ret[t].cpu;
        seat->planned = s->in->now;
    }
}
