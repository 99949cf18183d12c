/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stock scheduler: it selects the running thread of each CPU, and the CPU of a thread that wakes. */
#include "base/macro.h"
#include "base/mask.h"
#include "sim/sim-internal.h"

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
    sim_kick(s);
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
        if (!asym_mask_has(&s->idle, (int)cpu))
            c->idle_since = s->now;
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
