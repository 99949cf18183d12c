/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts threads on CPUs and queues, and takes them off. The callers decide which. */
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

void sim_recount(struct asym_sim *s, uint32_t cpu)
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

void sim_settle_on(struct asym_sim *s, uint32_t thread, uint32_t cpu)
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

void sim_run_on(struct asym_sim *s, uint32_t cpu, uint32_t thread)
{
    struct sim_cpu *c = &s->cpus[cpu];
    struct sim_thread *t = &s->threads[thread];
    sim_account(s, cpu);
    sim_settle_on(s, thread, cpu);
    if (c->last != thread) {
        t->debt += (double)s->scenario->scheduler.switch_cost;
        s->totals.switches++;
    }
    c->running = c->last = thread;
    c->slice_from = s->now;
    sim_set_state(s, thread, SIM_RUNNING);
    t->turns++;
    t->has_run = true;
    if (t->node < 0)
        t->node = (int32_t)c->node;
    asym_mask_clear(&s->idle, cpu);
    sim_weigh(s, cpu, thread, 1);
    sim_rerate(s, cpu);
    if (s->tracer.event)
        sim_trace_thread(s, ASYM_SIM_RUNS, thread, NULL);
}

void sim_take_off(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    const uint32_t thread = c->running;
    sim_account(s, cpu);
    if (s->tracer.event)
        sim_trace_thread(s, ASYM_SIM_STOPS, thread, NULL);
    c->running = SIM_NONE;
    sim_weigh(s, cpu, thread, -1);
    if (s->scenario->machine.most_smt > 1)
        sim_rerate(s, cpu);
}

void sim_stop(struct asym_sim *s, uint32_t thread, enum sim_state state)
{
    struct sim_thread *t = &s->threads[thread];
    if (t->state == SIM_RUNNING) {
        sim_take_off(s, (uint32_t)t->cpu);
        sim_pend(s, (uint32_t)t->cpu, false);
    } else if (t->state == SIM_QUEUED) {
        sim_queue_remove(s, thread);
    }
    if (t->cpu >= 0)
        sim_recount(s, (uint32_t)t->cpu);
    sim_set_state(s, thread, state);
}

void sim_move(struct asym_sim *s, uint32_t thread, uint32_t cpu)
{
    sim_account(s, cpu);
    sim_stop(s, thread, SIM_ASLEEP);
    sim_settle_on(s, thread, cpu);
    sim_queue_add(s, cpu, thread);
    sim_recount(s, cpu);
    sim_pend(s, cpu, true);
}
