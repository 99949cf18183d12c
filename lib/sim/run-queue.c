/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A list in order of virtual runtime. A thread that has just used its slice belongs near the end, and a thread that has slept
 * near the beginning, so the insertion searches from both ends. With some tens of threads per CPU this is less work than a
 * tree, and balancing removes a thread from the middle in constant time.
 */
#include "base/mask.h"
#include "sim/sim-internal.h"

static void link_between(struct asym_sim *s, struct sim_cpu *c, uint32_t thread, uint32_t prev, uint32_t next)
{
    s->threads[thread].prev = prev;
    s->threads[thread].next = next;
    *(prev == SIM_NONE ? &c->head : &s->threads[prev].next) = thread;
    *(next == SIM_NONE ? &c->tail : &s->threads[next].prev) = thread;
}

void sim_queue_open(struct asym_sim *s, const struct sim_thread *t)
{
    struct sim_cpu *c = &s->cpus[t->cpu];
    const struct asym_mask *mask = sim_masks_at(s->masks, t->mask);
    c->pullers = c->n_queued > 1 ? asym_mask_or(&c->pullers, mask) : *mask;
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
    sim_queue_open(s, t);
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
