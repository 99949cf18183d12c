/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts threads on CPUs and queues, and takes them off: the callers decide which. Also their identity, and the events of a trace. */
#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "sim/sim-internal.h"

/*
 * A list in order of virtual runtime. A thread that has just used its slice belongs near the end, and a thread that has slept
 * near the beginning, so the insertion searches from both ends. With some tens of threads per CPU this is less work than a
 * tree, and balancing removes a thread from the middle in constant time.
 */

static void link_between(struct asym_sim *s, struct sim_cpu *c, uint32_t thread, uint32_t prev, uint32_t next)
{
    s->threads[thread].prev = prev;
    s->threads[thread].next = next;
    *(prev == SIM_NONE ? &c->head : &s->threads[prev].next) = thread;
    *(next == SIM_NONE ? &c->tail : &s->threads[next].prev) = thread;
}

/* Notes that the CPUs of the thread's mask may pull it from the queue of its CPU. */
static void queue_open(struct asym_sim *s, const struct sim_thread *t)
{
    struct asym_mask *pullers = &s->pullers[t->cpu];
    const uint32_t beside = t->prev != SIM_NONE ? t->prev : t->next;
    const struct asym_mask *mask = asym_mask_table_at(&s->masks, t->mask);
    /* Most neighbours have the same mask. */
    if (beside == SIM_NONE || s->threads[beside].mask != t->mask)
        *pullers = beside == SIM_NONE ? *mask : asym_mask_or(pullers, mask);
}

void sim_queue_add(struct asym_sim *s, uint32_t cpu, uint32_t thread)
{
    struct sim_cpu *c = &s->cpus[cpu];
    struct sim_thread *t = &s->threads[thread];
    uint32_t front = c->head, back = c->tail;
    /* A thread queues behind those with equal virtual runtime. Both ends step inwards until one has passed the place. */
    while (back != SIM_NONE && s->threads[back].vruntime > t->vruntime && front != SIM_NONE &&
           s->threads[front].vruntime <= t->vruntime) {
        back = s->threads[back].prev;
        front = s->threads[front].next;
    }
    if (back == SIM_NONE || s->threads[back].vruntime <= t->vruntime)
        link_between(s, c, thread, back, back == SIM_NONE ? c->head : s->threads[back].next);
    else
        link_between(s, c, thread, front == SIM_NONE ? c->tail : s->threads[front].prev, front);
    sim_set_state(s, thread, SIM_QUEUED);
    t->queued_at = s->now;
    c->n_queued++;
    s->n_waiting++;
    queue_open(s, t);
}

void sim_queue_remove(struct asym_sim *s, uint32_t thread)
{
    struct sim_thread *t = &s->threads[thread];
    struct sim_cpu *c = &s->cpus[t->cpu];
    *(t->prev == SIM_NONE ? &c->head : &s->threads[t->prev].next) = t->next;
    *(t->next == SIM_NONE ? &c->tail : &s->threads[t->next].prev) = t->prev;
    t->waited += s->now - t->queued_at;
    c->n_queued--;
    s->n_waiting--;
}

/* The lowest tid: 1 is init. */
#define FIRST_TID 1000

/* A restarted process gets new tids, as on a live machine. The tid modulo n_threads still gives the thread. */
static int32_t tid_of(const struct asym_sim *s, uint32_t thread)
{
    const uint64_t lives = s->procs[s->threads[thread].proc].generation;
    const uint64_t cycle = ((uint64_t)INT32_MAX - FIRST_TID) / s->n_threads;
    return (int32_t)(FIRST_TID + (lives % cycle) * s->n_threads + thread);
}

struct asym_taskid sim_id_of(const struct asym_sim *s, uint32_t thread)
{
    const struct sim_proc *p = &s->procs[s->threads[thread].proc];
    return (struct asym_taskid){
        .tid = tid_of(s, thread),
        .tgid = tid_of(s, p->first),
        .start = SIM_EPOCH / 10000 + p->born / 10000000 + p->generation,
    };
}

uint32_t sim_find_thread(const struct asym_sim *s, const struct asym_taskid *id)
{
    if (id->tid < FIRST_TID || s->n_threads == 0)
        return SIM_NONE;
    const uint32_t thread = (uint32_t)(id->tid - FIRST_TID) % s->n_threads;
    const struct asym_taskid now = sim_id_of(s, thread);
    const bool same = now.tid == id->tid && now.tgid == id->tgid && now.start == id->start;
    return same && s->procs[s->threads[thread].proc].alive ? thread : SIM_NONE;
}

void sim_trace_thread(const struct asym_sim *s, enum asym_sim_event_kind kind, uint32_t thread,
                      const struct asym_action *action)
{
    const struct sim_thread *t = &s->threads[thread];
    const struct sim_proc *p = &s->procs[t->proc];
    const struct asym_sim_event event = {
        .kind = kind,
        .at = s->now,
        .cpu = t->cpu,
        .id = sim_id_of(s, thread),
        .program = s->scenario->programs[p->program].name,
        .instance = p->instance,
        .rank = thread - p->first,
        .spinning = t->spinning,
        .action = action,
    };
    s->tracer.event(s->tracer.ctx, &event);
}

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

/* So many masks are stored before those go that no thread has: a sweep frees half of them, so it seldom comes. */
static size_t most_masks(const struct asym_sim *s)
{
    return 2 * ((size_t)s->n_threads + 1);
}

int sim_masks_init(struct asym_sim *s)
{
    const int r = asym_mask_table_reserve(&s->masks, most_masks(s));
    if (r >= 0)
        asym_mask_table_id(&s->masks, &s->machine->usable);
    return r;
}

uint32_t sim_mask_id(struct asym_sim *s, const struct asym_mask *mask)
{
    if (s->masks.index.n == most_masks(s)) {
        asym_mask_table_mark(&s->masks, SIM_ALL_CPUS);
        for (uint32_t i = 0; i < s->n_threads; i++)
            asym_mask_table_mark(&s->masks, s->threads[i].mask);
        asym_mask_table_sweep(&s->masks);
    }
    return asym_mask_table_id(&s->masks, mask);
}

void sim_set_mask(struct asym_sim *s, uint32_t thread, const struct asym_mask *mask)
{
    struct sim_thread *t = &s->threads[thread];
    t->mask = sim_mask_id(s, mask);
    if (t->state == SIM_QUEUED)
        queue_open(s, t);
}

void sim_recount(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    const double load = sim_load(s, cpu, 0);
    const uint32_t level = (uint32_t)ASYM_MIN(sim_round_up(load), (uint64_t)SIM_LAST_LEVEL);
    asym_mask_clear(&s->levels[c->level], cpu);
    asym_mask_set(&s->levels[level], cpu);
    s->top_level = ASYM_MAX(s->top_level, level);
    c->level = level;
    s->loads[cpu] = load;
}

void sim_pend(struct asym_sim *s, uint32_t cpu, bool preempt)
{
    struct sim_cpu *c = &s->cpus[cpu];
    c->preempt |= preempt;
    if (!c->pending)
        s->pending[s->n_pending++] = cpu;
    c->pending = c->late = true;
}

enum sim_reach sim_distance(const struct asym_sim *s, uint32_t a, uint32_t b)
{
    if (s->cpus[a].llc == s->cpus[b].llc)
        return SIM_REACH_LLC;
    return s->cpus[a].node == s->cpus[b].node ? SIM_REACH_NODE : SIM_REACH_ALL;
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
        const enum sim_reach d = sim_distance(s, (uint32_t)t->cpu, cpu);
        const double cost[] = {(double)sc->migrate_llc, (double)sc->migrate_across, (double)sc->migrate_node};
        t->debt += cost[d] + (d > SIM_REACH_LLC && !t->spinning ? sc->refill * t->memory->working_set : 0);
        s->totals.migrations++;
    }
    t->cpu = (int32_t)cpu;
}

void sim_run_on(struct asym_sim *s, uint32_t cpu, uint32_t thread)
{
    struct sim_cpu *c = &s->cpus[cpu];
    struct sim_thread *t = &s->threads[thread];
    sim_account(s, cpu);
    sim_settle_on(s, thread, cpu);
    if (c->last != thread)
        t->debt += (double)s->scenario->scheduler.switch_cost;
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
