/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stock scheduler: it selects the running thread of each CPU, and the CPU of a thread that wakes. */
#include "base/macro.h"
#include "base/mask.h"
#include "sim/sim-internal.h"

/* Load balancing by the number of threads, or by the number of threads per speed if the scheduler knows the speeds. */

/* The first thread of the queue that may run on cpu: like Linux, the one that has not run for longest, whose cache is cold. */
static uint32_t movable(const struct asym_sim *s, uint32_t from, uint32_t cpu)
{
    /* Most waiting threads of a CPU have the same mask, so the last refused mask saves most tests. */
    uint32_t refused = SIM_NONE;
    if (!asym_mask_has(&s->pullers[from], (int)cpu))
        return SIM_NONE;
    for (uint32_t t = s->cpus[from].head; t != SIM_NONE; t = s->threads[t].next) {
        if (s->threads[t].mask == refused)
            continue;
        if (asym_mask_has(asym_mask_table_at(&s->masks, s->threads[t].mask), (int)cpu))
            return t;
        refused = s->threads[t].mask;
    }
    /* Where many threads wait, a queue is seldom empty: without this each search would walk it again. */
    asym_mask_clear(&s->pullers[from], cpu);
    return SIM_NONE;
}

/* A search for the most loaded CPU from which cpu may pull. */
struct pull {
    uint32_t cpu, from, thread; /* from: SIM_NONE: none yet */
    double most;                /* the load of from */
};

/* Searches the CPUs of a level from first to end - 1. */
static void search(const struct asym_sim *s, struct pull *p, const struct asym_mask *level, uint32_t first,
                   uint32_t end)
{
    uint64_t from_first = ~UINT64_C(0) << first % 64;
    for (uint32_t word = first / 64; word * 64 < end; word++, from_first = ~UINT64_C(0)) {
        for (uint64_t bits = level->w[word] & from_first; bits; bits &= bits - 1) {
            const uint32_t from = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (from >= end)
                return;
            const uint32_t thread = s->loads[from] > p->most ? movable(s, from, p->cpu) : SIM_NONE;
            if (thread == SIM_NONE)
                continue;
            *p = (struct pull){.cpu = p->cpu, .from = from, .thread = thread, .most = s->loads[from]};
        }
    }
}

/*
 * Searches the CPUs at exactly that distance with a thread that cpu may pull, so that cpu becomes less loaded than they were.
 * Returns the most loaded one, and that thread; on a tie the first in order after cpu. SIM_NONE: none.
 */
static uint32_t busiest(struct asym_sim *s, uint32_t cpu, enum sim_reach reach, uint32_t *ret_thread)
{
    struct pull p = {.cpu = cpu, .from = SIM_NONE, .most = sim_load(s, cpu, 1) * (1 + 1e-9)};
    uint32_t first, end, near = cpu, near_end = cpu + 1;
    while (s->top_level > 0 && asym_mask_empty(&s->levels[s->top_level]))
        s->top_level--;
    if (s->top_level < SIM_LAST_LEVEL && s->top_level <= p.most)
        return SIM_NONE;
    if (reach > SIM_REACH_LLC)
        sim_span(s, cpu, reach - 1, &near, &near_end);
    sim_span(s, cpu, reach, &first, &end);
    for (uint32_t n = s->top_level; p.from == SIM_NONE && (n == SIM_LAST_LEVEL || n > p.most); n--) {
        search(s, &p, &s->levels[n], near_end, end);
        search(s, &p, &s->levels[n], first, near);
    }
    if (p.from != SIM_NONE)
        *ret_thread = p.thread;
    return p.from;
}

bool sim_pull(struct asym_sim *s, uint32_t cpu)
{
    uint32_t thread = SIM_NONE;
    for (int reach = SIM_REACH_LLC; reach < SIM_N_REACHES && s->n_waiting > 0; reach++) {
        if (busiest(s, cpu, (enum sim_reach)reach, &thread) == SIM_NONE)
            continue;
        s->totals.events++;
        sim_move(s, thread, cpu);
        return true;
    }
    return false;
}

/* Linux's capacity_greater: a difference in speed of 5 % or less is no reason to move a running thread. */
#define CAPACITY_MARGIN (1078.0 / 1024)

/* Active balancing: an idle CPU takes over the running thread of the slowest CPU that is slower. */
static void take_over(struct asym_sim *s, uint32_t cpu)
{
    uint32_t best = SIM_NONE;
    double slowest = s->machine->cpus[cpu].speed / CAPACITY_MARGIN;
    for (uint32_t i = 1; i < s->n_cpus; i++) {
        const uint32_t from = (cpu + i) % s->n_cpus, thread = s->cpus[from].running;
        if (thread == SIM_NONE || s->machine->cpus[from].speed >= slowest ||
            !asym_mask_has(asym_mask_table_at(&s->masks, s->threads[thread].mask), (int)cpu))
            continue;
        best = thread;
        slowest = s->machine->cpus[from].speed;
    }
    if (best != SIM_NONE)
        sim_move(s, best, cpu);
}

/* Returns whether a sibling of this CPU runs a thread, too. */
static bool shares_core(const struct asym_sim *s, uint32_t cpu)
{
    const struct sim_core *core = &s->cores[s->cpus[cpu].core];
    for (uint32_t c = core->first; c < core->first + core->n; c++)
        if (c != cpu && s->cpus[c].running != SIM_NONE)
            return true;
    return false;
}

/* Active balancing of SMT: a CPU whose core is idle takes over one of two threads that share a core; the nearest first. */
static void take_from_siblings(struct asym_sim *s, uint32_t cpu)
{
    uint32_t best = SIM_NONE, nearest = SIM_N_REACHES;
    if (s->scenario->machine.most_smt < 2 || sim_count(s, cpu) > 0 || !sim_core_is_idle(s, cpu))
        return;
    for (uint32_t i = 1; i < s->n_cpus; i++) {
        const uint32_t from = (cpu + i) % s->n_cpus, thread = s->cpus[from].running;
        if (thread == SIM_NONE || sim_distance(s, cpu, from) >= nearest || !shares_core(s, from) ||
            !asym_mask_has(asym_mask_table_at(&s->masks, s->threads[thread].mask), (int)cpu))
            continue;
        best = thread;
        nearest = sim_distance(s, cpu, from);
    }
    if (best != SIM_NONE)
        sim_move(s, best, cpu);
}

static void balance_by_load(struct asym_sim *s, uint32_t cpu)
{
    while (sim_pull(s, cpu))
        ;
    if (s->scenario->scheduler.capacity == ASYM_SIM_CAPACITY_ACTIVE && sim_count(s, cpu) == 0)
        take_over(s, cpu);
}

static void balance_by_count(struct asym_sim *s, uint32_t cpu)
{
    uint32_t thread = SIM_NONE;
    for (int reach = SIM_REACH_LLC; reach < SIM_N_REACHES && s->n_waiting > 0; reach++) {
        const uint32_t here = sim_count(s, cpu), from = busiest(s, cpu, (enum sim_reach)reach, &thread);
        if (from == SIM_NONE)
            continue;
        /* Moving half of the difference makes the counts equal. */
        for (uint32_t n = (sim_count(s, from) - here) / 2; n > 0 && thread != SIM_NONE; n--) {
            sim_move(s, thread, cpu);
            thread = movable(s, from, cpu);
        }
    }
    take_from_siblings(s, cpu);
}

void sim_balance(struct asym_sim *s, uint32_t cpu)
{
    (s->by_speed ? balance_by_load : balance_by_count)(s, cpu);
}

/* Lets idle CPUs try to pull again at the next tick. */
static void kick(struct asym_sim *s)
{
    const uint64_t tick = s->scenario->scheduler.tick;
    if (s->kick_at != SIM_NEVER || s->n_waiting == 0 || asym_mask_empty(&s->idle))
        return;
    s->kick_at = (s->now / tick + 1) * tick;
    sim_heap_set(&s->heap, sim_slot_kick(s), s->kick_at);
}

void sim_kicked(struct asym_sim *s)
{
    const struct asym_mask idle = s->idle;
    s->kick_at = SIM_NEVER;
    if (s->n_waiting == 0)
        return;
    ASYM_MASK_FOREACH (c, &idle)
        if (s->cpus[c].running == SIM_NONE)
            sim_pend(s, (uint32_t)c, false);
}

static uint32_t place(struct asym_sim *s, uint32_t thread)
{
    const struct sim_thread *t = &s->threads[thread];
    const struct asym_mask *allowed = asym_mask_table_at(&s->masks, t->mask);
    if (t->cpu < 0)
        return sim_place_new(s, thread);
    if (!asym_mask_has(allowed, t->cpu))
        return sim_emptiest(s, allowed);
    if (asym_mask_has(&s->idle, t->cpu) && sim_core_is_idle(s, (uint32_t)t->cpu))
        return (uint32_t)t->cpu;
    const int near = sim_idle_near(s, (uint32_t)t->cpu, allowed);
    return near >= 0 ? (uint32_t)near : (uint32_t)t->cpu;
}

void sim_wake(struct asym_sim *s, uint32_t thread)
{
    struct sim_thread *t = &s->threads[thread];
    const uint32_t cpu = place(s, thread);
    struct sim_cpu *c = &s->cpus[cpu];
    s->totals.events++;
    sim_account(s, cpu);
    sim_settle_on(s, thread, cpu);
    /* A thread that slept gets ahead by at most a slice; a new thread gets no credit. */
    const double credit = t->state == SIM_NEW ? 0 : (double)s->scenario->scheduler.slice;
    t->vruntime = ASYM_MAX(t->vruntime, c->min_vruntime - credit);
    if (asym_mask_has(&s->idle, (int)cpu)) {
        sim_run_on(s, cpu, thread);
        sim_recount(s, cpu);
        return;
    }
    sim_queue_add(s, cpu, thread);
    sim_recount(s, cpu);
    const struct sim_thread *other = c->running != SIM_NONE ? &s->threads[c->running] : NULL;
    const double margin = (double)s->scenario->scheduler.wake_margin * t->per_ns;
    sim_pend(s, cpu, !other || other->vruntime - t->vruntime > margin);
    kick(s);
}

void sim_obey(struct asym_sim *s, uint32_t thread)
{
    const struct sim_thread *t = &s->threads[thread];
    const struct asym_mask *allowed = asym_mask_table_at(&s->masks, t->mask);
    if (t->state != SIM_RUNNING && t->state != SIM_QUEUED)
        return;
    if (!asym_mask_has(allowed, t->cpu))
        sim_move(s, thread, sim_emptiest(s, allowed));
    kick(s);
}

/* Selects the running thread. */
static void choose(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    if (c->running != SIM_NONE) {
        const uint32_t was = c->running;
        if (!c->preempt || c->head == SIM_NONE || s->threads[c->head].vruntime >= s->threads[was].vruntime)
            return;
        sim_take_off(s, cpu);
        sim_queue_add(s, cpu, was);
    }
    if (c->head == SIM_NONE && !sim_pull(s, cpu)) {
        if (!asym_mask_has(&s->idle, (int)cpu)) {
            c->idle_since = s->now;
            sim_rerate(s, cpu); /* its siblings become faster */
        }
        asym_mask_set(&s->idle, cpu);
        return;
    }
    const uint32_t thread = c->head;
    sim_queue_remove(s, thread);
    sim_run_on(s, cpu, thread);
}

void sim_settle(struct asym_sim *s)
{
    for (uint32_t i = 0; i < s->n_pending; i++) {
        struct sim_cpu *c = &s->cpus[s->pending[i]];
        sim_account(s, s->pending[i]);
        choose(s, s->pending[i]);
        c->preempt = c->pending = c->late = false;
        sim_schedule(s, s->pending[i]);
    }
    s->n_pending = 0;
}
