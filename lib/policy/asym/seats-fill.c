/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 5 of asym: who sits where. The CPUs of one core type whose next seat is worth as much are a tier. The best tier is filled
 * first, by rank; then all seats are valued again, because each thread that sits changes the value of what is left of its core.
 */
#include "policy/asym/seats-internal.h"

#include <math.h>

#include "base/mask.h"
#include "policy/placement/spread.h"

/* Seats within this share of the best are of one tier. */
#define CLASS_FROM 0.98

/* Beside its mates a thread has no seat below this share of the CPU: so much has one of the crowd. */
#define SHARE_LEAST 0.5

/* A thread that loses this share of its speed far from its memory chooses before the others. */
#define REMOTE_HURTS 0.08

struct tier {
    struct asym_mask all, cpus; /* its CPUs; of these one of each idle core */
    struct asym_mask homes;     /* of these the CPUs that threads prefer for which it has a seat */
    double value;               /* of its seats */
    double speed, slow;         /* of its type; of the slowest, to which a gain is compared: 0 if that is its type */
    int type;
    uint8_t kind;
    bool beside, joins; /* a sibling is busy; a thread sits on the CPU already */
};

double asym_seats_beside(const struct asym_seats *q, int cpu)
{
    const struct asym_machine *m = q->in->machine;
    double busy = 0;
    for (int s = m->cpus[cpu].sibling; s != cpu; s = m->cpus[s].sibling)
        busy = ASYM_MAX(busy, ASYM_MIN(q->used[s], 1));
    return 1 - busy * (1 - m->smt_gain) / 2;
}

/*
 * Two threads of a core have s = (1 + gain) / 2 of its speed each. The second adds s, and takes 1 - s from the first, whose time is
 * worth more by the ratio of the densities.
 */
double asym_seats_value(const struct asym_seats *q, int cpu, double density)
{
    const struct asym_machine *m = q->in->machine;
    if (asym_mask_has(&q->closed, cpu) || q->used[cpu] > q->p->duty)
        return 0;
    const double each = (1 + m->smt_gain) / 2;
    double busy = 0, top = 0;
    for (int s = m->cpus[cpu].sibling; s != cpu; s = m->cpus[s].sibling) {
        busy = ASYM_MAX(busy, ASYM_MIN(q->used[s], 1));
        top = ASYM_MAX(top, q->top[s]);
    }
    const double ratio = density > 0 ? ASYM_MAX(top / density, 1) : 1;
    return q->speed[cpu] * (1 - q->used[cpu]) * (1 - busy + busy * ASYM_MAX(each - ratio * (1 - each), 0));
}

void asym_seats_sit(struct asym_seats *q, uint32_t t, int cpu)
{
    asym_mask_set(&q->on[q->of[t].app], (unsigned)cpu);
    q->least[cpu] = q->n_on[cpu] == 0 ? q->density[t] : ASYM_MIN(q->least[cpu], q->density[t]);
    q->used[cpu] += (double)q->of[t].duty;
    q->top[cpu] = ASYM_MAX(q->top[cpu], q->density[t]);
    q->n_on[cpu]++;
    q->of[t].cpu = (int16_t)cpu;
}

/* Threads of one program mostly run at the same time: on one CPU they would wait for each other, unless they wait for a lock. */
static bool clashes(const struct asym_seats *q, uint32_t t, int cpu)
{
    const uint32_t app = q->of[t].app;
    return asym_mask_has(&q->on[app], cpu) && pow(1 - q->overlap[app], q->n_on[cpu]) < SHARE_LEAST;
}

static bool has_busy_sibling(const struct asym_seats *q, int cpu)
{
    const struct asym_cpu *cpus = q->in->machine->cpus;
    for (int s = cpus[cpu].sibling; s != cpu; s = cpus[s].sibling)
        if (q->n_on[s] > 0)
            return true;
    return false;
}

/*
 * Offer one seat of each idle core: the CPU of a thread that had it, else one that a thread prefers, else the first. A thread that
 * had another seat wants that one: where the one that had this seat made way for a thread without one (fill_idle), it does again.
 */
static void keep_one_of_each_core(const struct asym_seats *q, struct tier *tier)
{
    const struct asym_cpu *cpus = q->in->machine->cpus;
    struct asym_mask stays = {0}, seatless = {0}, homes = {0};
    const struct asym_mask *const passes[] = {&stays, &seatless, &homes, &tier->all};
    for (size_t i = 0; i < q->n_open; i++) {
        const struct asym_seats_brief *b = &q->of[q->open[i]];
        if (asym_mask_has(&tier->all, b->home))
            asym_mask_set(b->kind == tier->kind ? &stays : b->kind == 0 ? &seatless : &homes, (unsigned)b->home);
    }
    tier->cpus = (struct asym_mask){0};
    for (size_t pass = 0; pass < ASYM_LENGTH(passes); pass++) {
        ASYM_MASK_FOREACH (c, passes[pass]) {
            bool is_taken = asym_mask_has(&tier->cpus, c);
            for (int s = cpus[c].sibling; s != c; s = cpus[s].sibling)
                is_taken |= asym_mask_has(&tier->cpus, s);
            if (!is_taken)
                asym_mask_set(&tier->cpus, (unsigned)c);
        }
    }
}

/* next: the largest density of a thread without a seat. Returns false if no seat is left. */
static bool find_tier(const struct asym_seats *q, struct tier *tier, double next)
{
    const struct asym_machine *m = q->in->machine;
    int best = -1;
    *tier = (struct tier){0};
    ASYM_MASK_FOREACH (c, &m->usable) {
        const double value = asym_seats_value(q, c, next);
        /* On a tie an idle core is better: no other thread gets slower. */
        const bool is_core = best >= 0 && has_busy_sibling(q, best) && !has_busy_sibling(q, c);
        if (value <= tier->value * (is_core ? 1 - 1e-4 : 1 + 1e-4))
            continue;
        tier->value = value;
        best = c;
    }
    if (best < 0 || tier->value < ASYM_SEATS_LEAST)
        return false;
    tier->type = m->cpus[best].type;
    tier->beside = has_busy_sibling(q, best);
    tier->joins = q->n_on[best] > 0;
    tier->kind = (uint8_t)(1 + tier->type * 4 + tier->joins * 2 + tier->beside);
    tier->speed = m->types[tier->type].speed / q->fastest;
    /* Types that differ in kind only have the same speed. */
    tier->slow = m->types[tier->type].speed <= q->slowest ? 0 : q->slowest / q->fastest;
    ASYM_MASK_FOREACH (c, &m->types[tier->type].cpus)
        if (asym_seats_value(q, c, next) >= tier->value * CLASS_FROM && tier->joins == (q->n_on[c] > 0) &&
            tier->beside == has_busy_sibling(q, c))
            asym_mask_set(&tier->all, (unsigned)c);
    tier->cpus = tier->all;
    if (!tier->beside && !tier->joins && m->types[tier->type].siblings > 1)
        keep_one_of_each_core(q, tier);
    return true;
}

static bool is_far(const struct asym_seats *q, uint32_t t, const struct tier *tier)
{
    ASYM_MASK_FOREACH (c, &tier->cpus)
        if (!asym_seats_is_remote(q, t, c))
            return false;
    return true;
}

/* Returns whether it had such a seat in the last plan. One that made way for another thread (fill_idle) is on another core type. */
static bool holds_seat(const struct asym_seats *q, const struct asym_seats_brief *b, const struct tier *tier)
{
    return b->kind == tier->kind && !b->coupled && b->home >= 0 &&
           (asym_mask_has(&tier->all, b->home) || q->in->machine->cpus[b->home].type != tier->type);
}

/* While threads need less than the CPUs no other uses a seat whose program sleeps. far: those near its memory are for others. */
static double rank(const struct asym_seats *q, uint32_t t, const struct tier *tier, bool far)
{
    const struct asym_seats_brief *b = &q->of[t];
    const double there = b->plain ? tier->speed : asym_seats_sigma(q, t, tier->speed, far || is_far(q, t, tier));
    const double slow = b->plain || tier->slow <= 0 ? tier->slow : asym_seats_sigma(q, t, tier->slow, false);
    const double gain = there - slow;
    const double stays = holds_seat(q, b, tier) ? 1 + q->p->sticky * b->slowness : 1;
    const double used = q->full ? 1 : q->active[b->app];
    return q->density[t] * used * gain / (double)b->rate * stays * (1 + 2 * q->p->sticky * q->behind[t]);
}

static bool are_mates(const struct asym_seats *q, uint32_t t, uint32_t u)
{
    return q->of[t].app == q->of[u].app && q->in->threads[t].proc == q->in->threads[u].proc;
}

/*
 * The thread that leads its process, at i in open, gets the best rank of its process. One that did not sleep waited for none, as in
 * a long parallel phase: it keeps its rank. Threads of a process are side by side.
 */
static void put_first(struct asym_seats *q, size_t i)
{
    const uint32_t leader = q->open[i];
    uint32_t best = leader;
    for (size_t j = i; j > 0 && are_mates(q, leader, q->open[j - 1]); j--)
        best = q->key[q->open[j - 1]] > q->key[best] ? q->open[j - 1] : best;
    for (size_t j = i + 1; j < q->n_open && are_mates(q, leader, q->open[j]); j++)
        best = q->key[q->open[j]] > q->key[best] ? q->open[j] : best;
    if (q->in->threads[best].runnable < ASYM_SEATS_SLEPT_BELOW) {
        const double key = q->key[best];
        q->key[best] = q->key[leader];
        q->key[leader] = key;
    }
}

/*
 * Beside other processes the progress of all threads decides: two equal ones with a leader each would not take turns, be they
 * of two programs or of one job.
 */
static void put_leaders_first(struct asym_seats *q)
{
    for (size_t i = 0; i < q->n_open; i++)
        if (q->of[q->open[i]].leads && q->key[q->open[i]] > 0)
            put_first(q, i);
}

/* A node has as many seats near its memory as it has CPUs of the tier: to the threads of lower rank there all are far. */
static void rank_by_node(struct asym_seats *q, const struct tier *tier, size_t n)
{
    unsigned seats[ASYM_MAX_CPUS + 1] = {(unsigned)n}; /* the first: of threads whose node is not known */
    ASYM_MASK_FOREACH (c, &tier->cpus)
        seats[q->in->machine->cpus[c].node + 1]++;
    asym_seats_sort(q, q->list, n, n);
    for (size_t i = 0; i < n; i++) {
        unsigned *left = &seats[asym_seats_of(q, q->list[i])->node];
        if (*left > 0)
            --*left;
        else
            q->key[q->list[i]] = rank(q, q->list[i], tier, true);
    }
}

/* List the threads that want a seat of the tier: first, by rank, as many as there are. Returns how many want one. */
static size_t list_candidates(struct asym_seats *q, struct tier *tier)
{
    const bool is_any = tier->beside || tier->joins || tier->slow <= 0;
    const size_t room = asym_mask_count(&tier->cpus);
    const struct asym_mask *allowed = NULL; /* mostly that of the thread before */
    bool meets = false;
    size_t n = 0;
    for (size_t i = 0; i < q->n_open; i++) {
        const uint32_t t = q->open[i];
        if (q->of[t].allowed != allowed) {
            allowed = q->of[t].allowed;
            meets = asym_mask_meets(allowed, &tier->cpus);
        }
        q->key[t] = 0;
        if (!meets)
            continue;
        q->key[t] = rank(q, t, tier, false);
        if (q->key[t] > 0 || is_any)
            q->list[n++] = t;
    }
    if (q->in->machine->n_nodes > 1 && n > room)
        rank_by_node(q, tier, n);
    if (q->n_counting == 1)
        put_leaders_first(q);
    asym_seats_sort(q, q->list, n, room);
    tier->homes = (struct asym_mask){0};
    for (size_t i = 0; i < ASYM_MIN(n, room); i++)
        if (asym_mask_has(&tier->cpus, q->of[q->list[i]].home))
            asym_mask_set(&tier->homes, (unsigned)q->of[q->list[i]].home);
    return n;
}

static int find_nearest(const struct asym_seats *q, uint32_t t, const struct tier *tier)
{
    const struct asym_machine *m = q->in->machine;
    const struct asym_mask may = asym_mask_and(q->of[t].allowed, &tier->cpus);
    const int home = q->of[t].home;
    uint64_t least = UINT64_MAX;
    int best = -1;
    ASYM_MASK_FOREACH (c, &may) {
        if (clashes(q, t, c))
            continue;
        const uint64_t cost = (uint64_t)asym_seats_is_remote(q, t, c) << 40 |
                              (uint64_t)asym_mask_has(&tier->homes, c) << 32 |
                              (uint64_t)asym_nearness(m, home, c) << 16 | (uint64_t)m->cpus[c].smt_rank << 8 |
                              m->cpus[c].rank;
        if (cost >= least)
            continue;
        least = cost;
        best = c;
    }
    return best;
}

static bool is_hurt(const struct asym_seats *q, uint32_t t, const struct tier *tier)
{
    return asym_seats_sigma(q, t, tier->speed, true) <= (1 - REMOTE_HURTS) * asym_seats_sigma(q, t, tier->speed, false);
}

static void seat_on(struct asym_seats *q, struct tier *tier, uint32_t t, int cpu)
{
    asym_seats_sit(q, t, cpu);
    q->of[t].kind = tier->kind;
    asym_mask_clear(&tier->cpus, (unsigned)cpu);
    asym_mask_clear(&tier->homes, (unsigned)cpu);
}

/*
 * Seat the first n threads of list: first those whom distance hurts, near their memory; then the others, on the CPU that they
 * have or on the nearest that is not another's. In the order of rank a second plan repeats the first. Returns how many sit.
 */
static size_t seat(struct asym_seats *q, struct tier *tier, size_t n)
{
    size_t seated = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t t = q->list[i];
            if (q->of[t].cpu >= 0 || (pass == 0 && !is_hurt(q, t, tier)))
                continue;
            const int home = q->of[t].home;
            const bool stays = asym_mask_has(&tier->cpus, home) && !clashes(q, t, home) &&
                               (pass > 0 || !asym_seats_is_remote(q, t, home));
            const int cpu = stays ? home : find_nearest(q, t, tier);
            if (cpu < 0 || (pass == 0 && asym_seats_is_remote(q, t, cpu)))
                continue;
            seat_on(q, tier, t, cpu);
            seated++;
        }
    }
    return seated;
}

/* Drops from open those that sit. Returns the largest density of the others. */
static double drop_seated(struct asym_seats *q)
{
    double next = 0;
    size_t left = 0;
    for (size_t i = 0; i < q->n_open; i++) {
        const uint32_t t = q->open[i];
        if (q->of[t].cpu >= 0)
            continue;
        q->open[left++] = t;
        next = ASYM_MAX(next, q->density[t]);
    }
    q->n_open = left;
    return next;
}

/*
 * Returns how many of the n threads of list may sit: those that rank before strangers or sleep for less than half of the time, and
 * others if there is room for all.
 */
static size_t count_seats(const struct asym_seats *q, const struct tier *tier, size_t n, size_t strangers)
{
    const double key = q->in->unsteered_weight * (tier->speed - tier->slow);
    const size_t room = asym_mask_count(&tier->cpus);
    size_t seats = room - ASYM_MIN(room, strangers);
    while (seats < ASYM_MIN(n, room) &&
           (q->key[q->list[seats]] >= key || q->of[q->list[seats]].duty > ASYM_SEATS_SLEEPS_BELOW))
        seats++;
    return ASYM_MIN(seats, n);
}

void asym_seats_fill(struct asym_seats *q)
{
    struct tier tier;
    double next = 0;
    for (uint32_t t = 0; t < q->in->n_threads; t++) {
        if (!q->of[t].counts)
            continue;
        q->open[q->n_open++] = t;
        next = ASYM_MAX(next, q->density[t]);
    }
    /*
     * Those that asymd does not steer, such as new compilers of a build, have seats, too, if cores are left for all. The kernel may
     * move no running thread to a faster CPU: threads that sleep most of the time would keep them off the fast ones.
     */
    const struct asym_mask cpus = asym_machine_ordinary(q->in->machine);
    const struct asym_mask cores = asym_machine_cores(q->in->machine, &cpus);
    const size_t others = (size_t)q->in->unsteered;
    size_t strangers = q->n_open + others <= asym_mask_count(&cores) ? others : 0;
    q->full = q->needed > asym_mask_count(&cpus);
    for (; q->n_open > 0 && find_tier(q, &tier, next); next = drop_seated(q)) {
        const size_t n = list_candidates(q, &tier), room = asym_mask_count(&tier.cpus), had = strangers;
        size_t seated = seat(q, &tier, count_seats(q, &tier, n, strangers));
        for (; strangers > 0 && !asym_mask_empty(&tier.cpus); strangers--) {
            const int cpu = asym_mask_next(&tier.cpus, 0);
            asym_mask_clear(&tier.cpus, (unsigned)cpu);
            q->used[cpu] += 1;
            q->top[cpu] = ASYM_MAX(q->top[cpu], q->in->unsteered_weight);
        }
        if (strangers < had)
            continue;
        if (seated == 0 && n > room) { /* the first may not sit there, but a later one may */
            asym_seats_sort(q, q->list, n, n);
            seated = seat(q, &tier, n);
        }
        if (seated == 0)
            q->closed = asym_mask_or(&q->closed, &tier.cpus);
    }
}
