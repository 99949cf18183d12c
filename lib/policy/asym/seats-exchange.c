/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that is the only runnable one of its program takes the CPU of another thread of it (Morad 2008, 6). That one sleeps: it
 * pays only if the phase ends before the next plan. Where the threads of the program share all CPUs, it takes one that no busy
 * thread of others may use. All else that the last plan said stays: claims, boosts, and the CPUs and masks of all others.
 */
#include "policy/asym/seats-internal.h"

#include "base/mask.h"

static const struct asym_reason alone = {
    .text = "the only thread of its program that runs: a faster CPU of the program",
    .sentence = "is the only thread of its program that runs, so it has a faster CPU that the others do not use",
    .several = "the only threads of their programs that run: faster CPUs of the programs"};
static const struct asym_reason lends = {
    .text = "sleeps while another thread of its program runs alone: that one's CPU",
    .sentence = "slept when another thread of its program began to run alone, so that one has its faster CPU until the "
                "next plan",
    .several = "sleep while other threads of their programs run alone: the CPUs of those"};

/* A thread that is alone so many times as long as the one that is alone now keeps its seat. */
#define MUCH_MORE 4

/* Returns the speed that thread t has, or would have, in the seat of thread u. */
static double speed_in(const struct asym_seats *q, size_t t, size_t u)
{
    const int cpu = q->ret[u].cpu;
    return asym_seats_sigma(q, t, q->speed[cpu], asym_seats_is_remote(q, t, cpu)) * asym_seats_of(q, u)->smt;
}

/* A thread that slept when the last plan was made has none, and one of a crowd may be on any CPU. */
static bool has_seat(const struct asym_seats *q, size_t t)
{
    return q->ret[t].cpu >= 0 && q->ret[t].width != ASYM_PIN_ALL;
}

static double speed_now(const struct asym_seats *q, size_t t)
{
    if (has_seat(q, t))
        return speed_in(q, t, t);
    const struct asym_mask cpus = asym_mask_and(q->in->threads[t].allowed, &q->in->machine->usable);
    double sum = 0;
    ASYM_MASK_FOREACH (c, &cpus)
        sum += asym_seats_sigma(q, t, q->speed[c], asym_seats_is_remote(q, t, c));
    return sum / ASYM_MAX(asym_mask_count(&cpus), 1U);
}

/*
 * Returns the least share of the time in which the thread was alone: while it was not, at least two were runnable, and each was
 * waited for during half of the time at most.
 */
static double alone_share(const struct asym_seats_thread *s)
{
    return ASYM_MAX(2 * s->critical - s->needed, 0);
}

/* The main thread of a frame loop is: a worker is alone for a moment at the end of each frame. */
static bool is_next_alone(const struct asym_seats_thread *r, const struct asym_seats_thread *s)
{
    return s->critical > 0 && alone_share(r) > MUCH_MORE * alone_share(s); /* 0: it has not been measured yet */
}

/* A thread that has more than its seat keeps that: a claim or a boost. */
static bool has_more(const struct asym_seats *q, size_t t)
{
    return q->ret[t].nice_delta != 0 || asym_seats_of(q, t)->claims != 0;
}

/* One that is the next to be alone keeps its seat, too. */
static bool may_exchange(const struct asym_seats *q, size_t t, size_t u)
{
    const struct asym_assignment *a = &q->ret[t], *b = &q->ret[u];
    return has_seat(q, u) && !has_more(q, t) && !has_more(q, u) &&
           !is_next_alone(asym_seats_of(q, u), asym_seats_of(q, t)) &&
           asym_mask_has(q->in->threads[t].allowed, b->cpu) &&
           (a->cpu < 0 || asym_mask_has(q->in->threads[u].allowed, a->cpu));
}

/* Returns the thread of its application with the fastest seat that t may have, of several the one that does least; t: none. */
static size_t find_seat(const struct asym_seats *q, size_t t)
{
    const struct asym_policy_app *app = &q->in->apps[q->in->threads[t].app];
    double most = speed_now(q, t) * (1 + 1e-6);
    size_t best = t;
    for (size_t u = app->first_thread; u < app->first_thread + app->n_threads; u++) {
        if (!may_exchange(q, t, u))
            continue;
        const double speed = speed_in(q, t, u);
        const bool is_idler = best != t && asym_seats_of(q, u)->pace < asym_seats_of(q, best)->pace;
        if (speed < most || (speed <= most && !is_idler))
            continue;
        most = speed;
        best = u;
    }
    return best;
}

/* The progress until the next measurement is by the mean speed. */
static void leave_seat(struct asym_seats *q, size_t t)
{
    struct asym_seats_thread *s = asym_seats_of(q, t);
    const bool is_first = s->sat_at <= s->last;
    const double time = (double)(q->in->now - (is_first ? s->last : s->sat_at));
    s->left = (is_first ? 0 : s->left) + asym_seats_speed_given(q, t) * time;
    s->sat_at = q->in->now;
}

/* The width belongs to the seat: a thread without one may use all CPUs. */
static void take_seat(struct asym_assignment *a, struct asym_seats_thread *s, const struct asym_assignment *from,
                      const struct asym_seats_thread *had)
{
    a->cpu = from->cpu;
    a->width = from->width;
    s->given = had->given;
    s->kind = had->kind;
    s->smt = had->smt;
    s->roams = had->roams;
}

/* Where t has no seat, u keeps its CPU as one of all: it sleeps. */
static void exchange(struct asym_seats *q, size_t t, size_t u)
{
    struct asym_assignment *a = &q->ret[t], *b = &q->ret[u];
    struct asym_seats_thread *s = asym_seats_of(q, t), *r = asym_seats_of(q, u);
    const struct asym_assignment had = *a;
    const struct asym_seats_thread was = *s;
    leave_seat(q, u);
    if (had.cpu >= 0)
        leave_seat(q, t);
    take_seat(a, s, b, r);
    if (had.cpu >= 0)
        take_seat(b, r, &had, &was);
    else
        b->width = ASYM_PIN_ALL;
    a->counted = true;
    a->reason = &alone;
    b->reason = &lends;
}

/* The CPUs that a thread may have beside what the last plan gave to all. */
struct rest {
    struct asym_mask cpus; /* no thread has its seat there, or on a sibling */
    size_t n_wide;         /* busy threads that have wide masks */
};

static bool is_busy_wide(const struct asym_seats *q, size_t u)
{
    return (q->ret[u].cpu < 0 || q->ret[u].width != ASYM_PIN_CPU) && asym_seats_of(q, u)->duty >= q->p->narrow;
}

static struct rest find_rest(const struct asym_seats *q)
{
    const struct asym_machine *m = q->in->machine;
    const struct asym_seats_state *state = q->in->state;
    struct rest rest = {.cpus = asym_mask_minus(&m->usable, q->in->spare)};
    if (q->in->unsteered >= q->p->narrow || q->in->now < state->strangers_until)
        return (struct rest){.n_wide = 0};
    for (size_t u = 0; u < q->in->n_threads; u++) {
        const int cpu = q->ret[u].width == ASYM_PIN_CPU ? q->ret[u].cpu : -1;
        rest.n_wide += is_busy_wide(q, u);
        if (cpu < 0)
            continue;
        asym_mask_clear(&rest.cpus, (unsigned)cpu);
        for (int s = m->cpus[cpu].sibling; s != cpu; s = m->cpus[s].sibling)
            asym_mask_clear(&rest.cpus, (unsigned)s);
    }
    return rest;
}

/* Returns whether no busy thread of another program may use the rest. */
static bool is_own(const struct asym_seats *q, const struct rest *rest, size_t t)
{
    const struct asym_policy_app *app = &q->in->apps[q->in->threads[t].app];
    size_t n = 0;
    for (size_t u = app->first_thread; u < app->first_thread + app->n_threads; u++)
        n += is_busy_wide(q, u);
    return n == rest->n_wide;
}

/*
 * Where the threads of a program outnumber the CPUs they have wide masks, and all but one sleep. The kernel chooses among the CPUs
 * of the fastest type.
 */
static void sit_apart(struct asym_seats *q, size_t t, const struct rest *rest)
{
    const struct asym_mask cpus = asym_mask_and(&rest->cpus, q->in->threads[t].allowed);
    struct asym_seats_thread *s = asym_seats_of(q, t);
    double most = speed_now(q, t) * (1 + 1e-6);
    int best = -1;
    ASYM_MASK_FOREACH (c, &cpus) {
        const double speed = asym_seats_sigma(q, t, q->speed[c], asym_seats_is_remote(q, t, c));
        if (speed < most || (speed <= most && c != q->in->threads[t].preferred_cpu))
            continue;
        most = speed;
        best = c;
    }
    if (best < 0)
        return;
    if (q->ret[t].cpu >= 0)
        leave_seat(q, t);
    q->ret[t] = (struct asym_assignment){.cpu = best, .width = ASYM_PIN_TYPE, .counted = true, .reason = &alone};
    s->given = (int16_t)best;
    s->kind = 0;
    s->smt = 1;
}

/* The last plan left all threads to the kernel. */
static bool is_left_to_kernel(const struct asym_seats *q)
{
    const struct asym_seats_state *state = q->in->state;
    return asym_machine_kernel_knows(q->in->machine) && q->in->now >= state->needs_help_until;
}

/* In rounds that are too short for turns an exchange gains nothing, either. */
static bool gains(const struct asym_seats *q, size_t t)
{
    return q->in->threads[t].alone && !q->in->threads[t].spinning &&
           q->in->now >= asym_seats_of(q, t)->rounds.rests_until;
}

void asym_seats_exchange(struct asym_seats *q)
{
    struct rest rest;
    bool has_rest = false;
    for (size_t t = is_left_to_kernel(q) ? q->in->n_threads : 0; t < q->in->n_threads; t++) {
        if (!gains(q, t))
            continue;
        if (q->ret[t].cpu < 0)
            asym_seats_of(q, t)->claims = 0; /* of an earlier plan */
        const size_t u = find_seat(q, t);
        if (u != t)
            exchange(q, t, u);
        if (u != t || has_seat(q, t) || has_more(q, t))
            continue;
        if (!has_rest)
            rest = find_rest(q);
        has_rest = true;
        if (is_own(q, &rest, t))
            sit_apart(q, t, &rest);
    }
}
