/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/smt/smt.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/mask.h"

const char *const asym_smt_weights_names[] = {"nice", "source", NULL};

static void take_memory(struct asym_smt *s, struct asym_assignment *ret)
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
    asym_spread_init(&s->sp, &s->seated, ret);
}

/* Prefer the old seat of each thread. If the thread may no longer use it, its preferred CPU stays as it is. */
static void prefer_seats(struct asym_smt *s)
{
    for (size_t t = 0; t < s->in->n_threads; t++) {
        const int32_t base = asym_smt_seat_of(s, t)->base - 1;
        if (asym_mask_has(s->threads[t].allowed, base))
            s->threads[t].preferred_cpu = base;
    }
}

int asym_smt_init(struct asym_smt *s, const struct asym_policy_input *in, struct asym_assignment *ret)
{
    s->in = in;
    s->seated = *in;
    take_memory(s, ret);
    if (asym_arena_is_short(in->arena))
        return -ENOBUFS;
    memcpy(s->threads, in->threads, in->n_threads * sizeof *s->threads);
    s->seated.threads = s->threads;
    prefer_seats(s);
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
    for (size_t t = 0; t < s->in->n_threads; t++)
        s->sp.ret[t] = (struct asym_assignment){.cpu = -1};
    asym_spread_even(&s->sp, s->all, s->in->n_threads, &m->usable);
    asym_spread_fill_seats(&s->sp);
    for (size_t t = 0; t < s->in->n_threads; t++)
        s->seat[t] = s->sp.ret[t].cpu;
    count_cores(s);
}

double asym_smt_share(const struct asym_smt *s, uint32_t t)
{
    const struct asym_smt_core *core = asym_smt_core_of(s, t);
    const double weight = asym_smt_weight((enum asym_smt_weights)s->params->weights, s->threads[t].nice);
    return asym_smt_frac(weight, core->weights, core->n);
}

/* Returns P, the number of threads that run on the core side by side. */
static double beside(const struct asym_smt *s, uint32_t t)
{
    const struct asym_smt_core *core = asym_smt_core_of(s, t);
    return ASYM_MIN(core->n, core->contexts);
}

/* lib/policy/smt/smt.h explains why some threads are not measured. */
static bool is_measured(const struct asym_smt *s, uint32_t t)
{
    const struct asym_smt_core *core = asym_smt_core_of(s, t);
    return core->n <= 4 * core->contexts || asym_smt_share(s, t) * 2 * beside(s, t) >= 1;
}

/* Returns the length that the window should have. While threads are measured alone, each core is held half of the time. */
static double wanted(const struct asym_smt *s, uint32_t t, const uint32_t *n_measured)
{
    const double p = beside(s, t);
    if (p < 2 || s->stage.until <= s->stage.from || s->stage.kind == ASYM_SMT_TOGETHER)
        return 0;
    if (s->stage.kind == ASYM_SMT_ALONE)
        return is_measured(s, t) ? 0.5 / n_measured[s->in->machine->cpus[s->seat[t]].core] : 0;
    /* Where several of a core catch up, the first one does until it is behind no more. */
    if (!s->no_windows && s->behind && s->behind(s, t))
        return 1;
    const double share = ASYM_MIN(asym_smt_share(s, t), s->threads[t].runnable);
    return s->no_windows ? 0 : 1 - asym_smt_cofrac(share, s->x ? s->x(s, t, p) : 1 / p);
}

/* While threads are measured alone, a core with one thread takes the same room, so that a second one moves no other window. */
static void reserve(const struct asym_smt *s)
{
    for (size_t c = 0; c < s->in->machine->n_cores && s->stage.kind == ASYM_SMT_ALONE; c++)
        s->length[c] = s->cores[c].contexts < 2 ? 0 : 0.5;
}

/*
 * Lay the windows, once in each rotation: otherwise a thread that comes or goes would shift the windows of all others. The
 * windows of a core follow one another, and the cores are laid end to end.
 */
static void lay_windows(struct asym_smt *s)
{
    const struct asym_machine *m = s->in->machine;
    /* extra: how many threads of each core are measured. */
    memset(s->sp.extra, 0, m->n_cores * sizeof *s->sp.extra);
    for (uint32_t t = 0; t < s->in->n_threads; t++)
        s->sp.extra[m->cpus[s->seat[t]].core] += is_measured(s, t);
    memset(s->length, 0, m->n_cores * sizeof *s->length);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_seat *seat = asym_smt_seat_of(s, t);
        seat->laid = s->stage.from + 1;
        seat->length = wanted(s, t, s->sp.extra);
        s->length[m->cpus[s->seat[t]].core] += seat->length;
    }
    reserve(s);
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

/* Mark the threads that hold their core now, before close_stuck checks that the others can leave. Returns how many. */
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

/* If a thread may run nowhere else, it stays, and so do all threads of its core. This only adds room for other guests. */
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

/* A sibling that is kept clear counts as taken, so that no guest is sent there. */
static void mark_held(struct asym_smt *s)
{
    const struct asym_machine *m = s->in->machine;
    ASYM_MASK_FOREACH (c, &m->usable) {
        const int32_t alone = s->cores[m->cpus[c].core].alone;
        if (alone >= 0 && s->seat[alone] != c)
            s->sp.load[c]++;
    }
}

/* A guest that is already on a CPU outside stays there. */
static void send_guests(struct asym_smt *s)
{
    const struct asym_mask outside = cpus_not_held(s);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        const int32_t alone = asym_smt_core_of(s, t)->alone, now_at = s->in->threads[t].preferred_cpu;
        if (alone < 0)
            continue;
        if (alone == (int32_t)t) {
            s->sp.ret[t].exclusive = true;
            continue;
        }
        s->guests[s->n_guests++] = t;
        s->sp.load[s->seat[t]]--;
        s->sp.ret[t].cpu = -1;
        if (asym_mask_has(&outside, now_at))
            s->threads[t].preferred_cpu = now_at;
    }
    mark_held(s);
    asym_spread_even(&s->sp, s->guests, s->n_guests, &outside);
    asym_spread_fill_seats(&s->sp);
}

const struct asym_reason asym_smt_own_core = {
    .text = "a core to itself, except for short visits of others",
    .sentence = "has a core to itself, except for short visits of other threads"};
const struct asym_reason asym_smt_measured_alone = {
    .text = "alone on its core for %.2f s more: it is measured",
    .sentence = "is alone on its core for %.2f s more, because asymd measures it",
    .rotates = true,
    .holds_core = true};
const struct asym_reason asym_smt_measured = {
    .text = "measured beside the others of its core for %.2f s more",
    .sentence = "is measured beside the other threads of its core for %.2f s more"};

static const struct asym_reason no_sibling = {
    .text = "no other CPU of its core is usable: threads are only spread",
    .sentence = "has a core without another usable CPU, so the policy only spreads the threads"};
static const struct asym_reason shared = {
    .text = "shares its core: its share is %.0f %%, alone for %.0f %% of the time",
    .sentence = "shares its core: its share is %.0f %%, and it is alone there for %.0f %% of the time"};
static const struct asym_reason crowded = {
    .text = "shares its core: its share is %.0f %%, but another thread cannot leave it",
    .sentence = "shares its core: its share is %.0f %%, but another thread cannot leave this core"};
static const struct asym_reason solo = {
    .text = "alone on its core for %.2f s more: its share is %.0f %%",
    .sentence = "is alone on its core for %.2f s more, because its share is %.0f %%",
    .rotates = true,
    .holds_core = true};
static const struct asym_reason guest = {
    .text = "off its core for %.2f s more: another thread is alone there",
    .sentence = "stays off its core for %.2f s more, because another thread is alone there"};
static const struct asym_reason sample = {
    .text = "the threads of its core are measured one by one for %.2f s more",
    .sentence = "waits while asymd measures the threads of its core one by one, for %.2f s more"};
static const struct asym_reason fetch = {.text = "shares its core: the fetch unit gives it a share of %.0f %%",
                                         .sentence = "shares its core, whose fetch unit gives it a share of %.0f %%"};

static double seconds_left(const struct asym_smt *s, double share)
{
    return share * (double)(s->stage.until - s->stage.from) / (double)ASYM_SEC;
}

/* Set reason and figures of a thread whose core is held, by itself or by another thread. */
static void explain_held(const struct asym_smt *s, uint32_t t, struct asym_assignment *a)
{
    const int32_t alone = asym_smt_core_of(s, t)->alone;
    a->figure[0] = seconds_left(s, left_of(s, asym_smt_seat_of(s, (size_t)alone)));
    a->reason = &guest;
    if (alone != (int32_t)t)
        return;
    a->reason = s->stage.kind == ASYM_SMT_RUN ? &solo : &asym_smt_measured_alone;
    a->figure[1] = asym_smt_share(s, t) * 100;
}

static const struct asym_reason *reason_of(const struct asym_smt *s, const struct asym_smt_core *core)
{
    if (core->contexts < 2)
        return &no_sibling;
    if (core->n < 2)
        return &asym_smt_own_core;
    if (s->stage.kind == ASYM_SMT_ALONE)
        return &sample;
    if (s->stage.kind == ASYM_SMT_TOGETHER)
        return &asym_smt_measured;
    if (s->no_windows)
        return &fetch;
    return core->due ? &crowded : &shared;
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
    a->figure[0] = asym_smt_share(s, t) * 100;
    a->figure[1] = seat->laid == s->stage.from + 1 ? seat->length * 100 : 0;
    if (a->reason == &sample || a->reason == &asym_smt_measured)
        a->figure[0] = seconds_left(s, 1 - asym_smt_at(&s->stage, s->in->now));
}

/*
 * A thread that begins while threads are measured alone gets a window, too: the stage is long, and the next one is far away. The
 * windows of other cores stay, because each core takes half of the time, however many threads it has: see reserve().
 */
static bool are_laid(const struct asym_smt *s)
{
    size_t laid = 0;
    for (size_t t = 0; t < s->in->n_threads; t++)
        laid += asym_smt_seat_of(s, t)->laid == s->stage.from + 1;
    return s->stage.kind == ASYM_SMT_ALONE ? laid == s->in->n_threads : laid > 0;
}

void asym_smt_finish(struct asym_smt *s, const int32_t *preferred_cpu)
{
    if (!are_laid(s))
        lay_windows(s);
    if (open_windows(s) > 0) {
        close_stuck(s);
        send_guests(s);
    }
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_seat *seat = asym_smt_seat_of(s, t);
        explain(s, t, &s->sp.ret[t]);
        seat->base = (preferred_cpu ? preferred_cpu[t] : s->seat[t]) + 1;
        seat->given = s->sp.ret[t].cpu;
        seat->planned = s->in->now;
    }
}
