/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stock scheduler: it selects the running thread of each CPU, and the CPU of a thread that wakes. */
#include <math.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "sim/sim-internal.h"

void sim_set_nice(struct asym_sim *s, uint32_t thread, int nice)
{
    struct sim_thread *t = &s->threads[thread];
    if (t->state == SIM_RUNNING)
        sim_account(s, (uint32_t)t->cpu);
    t->nice = (int8_t)nice;
    t->per_ns = (double)asym_nice_weight(0) / asym_nice_weight(nice);
    if (t->state == SIM_RUNNING && s->scenario->machine.fetch == ASYM_SIM_FETCH_PRIORITY)
        sim_rerate(s, (uint32_t)t->cpu);
}

void sim_set_mask(struct asym_sim *s, uint32_t thread, const struct asym_mask *mask)
{
    struct sim_thread *t = &s->threads[thread];
    const uint32_t id = sim_masks_get(s->masks, mask);
    const uint32_t old = t->mask;
    if (t->state == SIM_QUEUED)
        sim_queue_count(s, t, -1);
    t->mask = id;
    t->roams = sim_masks_roams(s->masks, id);
    if (t->state == SIM_QUEUED)
        sim_queue_count(s, t, 1);
    sim_masks_put(s->masks, old);
}

/* Updates the CPU's level. To be called after each change of its number of threads, before a search by level. */
static void recount(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    const uint32_t level = ASYM_MIN(sim_count(s, cpu), (uint32_t)SIM_LAST_LEVEL);
    if (level == c->level)
        return;
    asym_mask_clear(&s->levels[c->level], cpu);
    asym_mask_set(&s->levels[level], cpu);
    s->at_level[c->level]--;
    s->at_level[level]++;
    c->level = level;
    s->top_level = ASYM_MAX(s->top_level, level);
    while (s->at_level[s->top_level] == 0)
        s->top_level--;
}

void sim_pend(struct asym_sim *s, uint32_t cpu, bool preempt)
{
    struct sim_cpu *c = &s->cpus[cpu];
    c->preempt |= preempt;
    if (!c->pending)
        s->pending[s->n_pending++] = cpu;
    c->pending = c->late = true;
}

/* Returns 0 within an LLC, 1 across LLCs, 2 across nodes. */
static unsigned distance(const struct asym_sim *s, uint32_t a, uint32_t b)
{
    if (s->cpus[a].llc == s->cpus[b].llc)
        return 0;
    return s->cpus[a].node == s->cpus[b].node ? 1 : 2;
}

/* Moves a thread that is on no queue to cpu: it pays for the migration, and its virtual runtime becomes relative to cpu's. */
static void settle_on(struct asym_sim *s, uint32_t thread, uint32_t cpu)
{
    const struct asym_sim_scheduler *sc = &s->scenario->scheduler;
    struct sim_thread *t = &s->threads[thread];
    if (t->cpu == (int32_t)cpu)
        return;
    if (t->cpu >= 0)
        t->vruntime -= s->cpus[t->cpu].min_vruntime;
    t->vruntime += s->cpus[cpu].min_vruntime;
    if (t->has_run) {
        const unsigned d = distance(s, (uint32_t)t->cpu, cpu);
        const double cost[] = {(double)sc->migrate_llc, (double)sc->migrate_across, (double)sc->migrate_node};
        t->debt += cost[d] + (d > 0 && !t->spinning ? sc->refill * t->memory->working_set : 0);
        s->totals.migrations[d]++;
    }
    t->cpu = (int32_t)cpu;
}

static void run_on(struct asym_sim *s, uint32_t cpu, uint32_t thread)
{
    struct sim_cpu *c = &s->cpus[cpu];
    struct sim_thread *t = &s->threads[thread];
    sim_account(s, cpu);
    settle_on(s, thread, cpu);
    if (c->last != thread) {
        t->debt += (double)s->scenario->scheduler.switch_cost;
        s->totals.switches++;
    }
    c->running = c->last = thread;
    c->slice_from = s->now;
    t->state = SIM_RUNNING;
    t->has_run = true;
    if (t->node < 0)
        t->node = (int32_t)c->node;
    asym_mask_clear(&s->idle, cpu);
    sim_weigh(s, cpu, thread, 1);
    sim_rerate(s, cpu);
    if (s->tracer.event)
        sim_trace_thread(s, ASYM_SIM_RUNS, thread, NULL);
}

/* The caller marks the CPU for sim_settle, or chooses its next thread. */
static void take_off(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    const uint32_t thread = c->running;
    sim_account(s, cpu);
    if (s->tracer.event)
        sim_trace_thread(s, ASYM_SIM_STOPS, thread, NULL);
    c->running = SIM_NONE;
    sim_weigh(s, cpu, thread, -1);
    if (s->scenario->machine.smt > 1)
        sim_rerate(s, cpu);
}

/* Returns the n-th CPU of a set, from 0; -1: the set has fewer. */
static int nth(const struct asym_mask *set, unsigned n)
{
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++) {
        const unsigned here = (unsigned)__builtin_popcountll(set->w[i]);
        if (n >= here) {
            n -= here;
            continue;
        }
        uint64_t w = set->w[i];
        while (n-- > 0)
            w &= w - 1;
        return (int)(i * 64 + (unsigned)__builtin_ctzll(w));
    }
    return -1;
}

int sim_any_of(struct asym_sim *s, const struct asym_mask *set)
{
    const unsigned n = asym_mask_count(set);
    return n > 0 ? nth(set, sim_rng_below(&s->rng, n)) : -1;
}

bool sim_core_is_idle(const struct asym_sim *s, uint32_t cpu)
{
    const struct sim_core *core = &s->cores[s->cpus[cpu].core];
    for (uint32_t i = 0; i < core->n; i++)
        if (s->cpus[s->by_core[core->first + i]].running != SIM_NONE)
            return false;
    return true;
}

static uint32_t least_loaded(struct asym_sim *s, const struct asym_mask *allowed)
{
    struct asym_mask least = {0};
    double most = (double)INFINITY;
    ASYM_MASK_FOREACH (c, allowed) {
        const double load = sim_load(s, (uint32_t)c, 0);
        if (load > most)
            continue;
        if (load < most)
            least = (struct asym_mask){0};
        most = load;
        asym_mask_set(&least, (unsigned)c);
    }
    return (uint32_t)sim_any_of(s, &least);
}

uint32_t sim_emptiest(struct asym_sim *s, const struct asym_mask *allowed)
{
    struct asym_mask least = asym_mask_and(allowed, &s->idle);
    uint32_t fewest = UINT32_MAX;
    if (!asym_mask_empty(&least))
        return (uint32_t)sim_any_of(s, &least);
    if (s->scenario->scheduler.capacity != ASYM_SIM_CAPACITY_IGNORED)
        return least_loaded(s, allowed);
    for (uint32_t level = 0; level < SIM_LAST_LEVEL; level++) {
        if (s->at_level[level] == 0)
            continue;
        least = asym_mask_and(allowed, &s->levels[level]);
        if (!asym_mask_empty(&least))
            return (uint32_t)sim_any_of(s, &least);
    }
    /* All CPUs of allowed are at the last level: compare their counts. */
    ASYM_MASK_FOREACH (c, allowed) {
        const uint32_t n = sim_count(s, (uint32_t)c);
        if (n > fewest)
            continue;
        if (n < fewest)
            least = (struct asym_mask){0};
        fewest = n;
        asym_mask_set(&least, (unsigned)c);
    }
    return (uint32_t)sim_any_of(s, &least);
}

/* Returns the lowest CPU in both sets from first to end - 1; -1: none. */
static int next_of_both(const struct asym_mask *a, const struct asym_mask *b, uint32_t first, uint32_t end)
{
    uint64_t from_first = ~UINT64_C(0) << first % 64;
    for (uint32_t word = first / 64; word * 64 < end; word++, from_first = ~UINT64_C(0)) {
        const uint64_t bits = a->w[word] & b->w[word] & from_first;
        const uint32_t cpu = word * 64 + (bits ? (uint32_t)__builtin_ctzll(bits) : 0);
        if (bits)
            return cpu < end ? (int)cpu : -1;
    }
    return -1;
}

/* Searches first to end - 1 for a CPU whose core is idle; else keeps the first idle CPU, unless *found has one. */
static bool find_idle(const struct asym_sim *s, const struct asym_mask *allowed, uint32_t first, uint32_t end,
                      int *found)
{
    for (int c = next_of_both(&s->idle, allowed, first, end); c >= 0;
         c = next_of_both(&s->idle, allowed, (uint32_t)c + 1, end)) {
        const bool whole = sim_core_is_idle(s, (uint32_t)c);
        if (whole || *found < 0)
            *found = c;
        if (whole)
            return true;
    }
    return false;
}

/* The start of the search depends on cpu, so that neighbours do not all take the same CPU. */
int sim_idle_near(const struct asym_sim *s, uint32_t cpu, const struct asym_mask *allowed)
{
    const struct sim_llc *l = &s->llcs[s->cpus[cpu].llc];
    const uint32_t from = l->first + cpu % l->n;
    int found = -1;
    if (!find_idle(s, allowed, from, l->first + l->n, &found))
        find_idle(s, allowed, l->first, from, &found);
    return found;
}

static uint32_t place(struct asym_sim *s, uint32_t thread)
{
    const struct sim_thread *t = &s->threads[thread];
    const struct asym_mask *allowed = sim_masks_at(s->masks, t->mask);
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
    s->totals.wakeups++;
    s->totals.events++;
    sim_account(s, cpu);
    settle_on(s, thread, cpu);
    /* A thread that slept gets ahead by at most a slice; a new thread gets no credit. */
    const double credit = t->state == SIM_NEW ? 0 : (double)s->scenario->scheduler.slice;
    t->vruntime = ASYM_MAX(t->vruntime, c->min_vruntime - credit);
    if (asym_mask_has(&s->idle, (int)cpu)) {
        run_on(s, cpu, thread);
        recount(s, cpu);
        return;
    }
    sim_queue_add(s, cpu, thread);
    recount(s, cpu);
    const struct sim_thread *other = c->running != SIM_NONE ? &s->threads[c->running] : NULL;
    const double margin = (double)s->scenario->scheduler.wake_margin * t->per_ns;
    sim_pend(s, cpu, !other || other->vruntime - t->vruntime > margin);
    sim_kick(s);
}

void sim_stop(struct asym_sim *s, uint32_t thread, enum sim_state state)
{
    struct sim_thread *t = &s->threads[thread];
    if (t->state == SIM_RUNNING) {
        take_off(s, (uint32_t)t->cpu);
        sim_pend(s, (uint32_t)t->cpu, false);
    } else if (t->state == SIM_QUEUED) {
        sim_queue_remove(s, thread);
    }
    if (t->cpu >= 0)
        recount(s, (uint32_t)t->cpu);
    t->state = (uint8_t)state;
}

void sim_move(struct asym_sim *s, uint32_t thread, uint32_t cpu)
{
    sim_account(s, cpu);
    sim_stop(s, thread, SIM_ASLEEP);
    settle_on(s, thread, cpu);
    sim_queue_add(s, cpu, thread);
    recount(s, cpu);
    sim_pend(s, cpu, true);
}

void sim_obey(struct asym_sim *s, uint32_t thread)
{
    const struct sim_thread *t = &s->threads[thread];
    const struct asym_mask *allowed = sim_masks_at(s->masks, t->mask);
    if (t->state != SIM_RUNNING && t->state != SIM_QUEUED)
        return;
    if (!asym_mask_has(allowed, t->cpu))
        sim_move(s, thread, sim_emptiest(s, allowed));
    sim_kick(s);
}

/* Selects the running thread. The number of threads stays: sim_move has counted a thread that is pulled. */
static void choose(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    if (c->running != SIM_NONE) {
        const uint32_t was = c->running;
        if (!c->preempt || c->head == SIM_NONE || s->threads[c->head].vruntime >= s->threads[was].vruntime)
            return;
        take_off(s, cpu);
        sim_queue_add(s, cpu, was);
    }
    if (c->head == SIM_NONE && !sim_pull(s, cpu)) {
        if (!asym_mask_has(&s->idle, (int)cpu))
            c->idle_since = s->now;
        asym_mask_set(&s->idle, cpu);
        return;
    }
    const uint32_t thread = c->head;
    sim_queue_remove(s, thread);
    run_on(s, cpu, thread);
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
