/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The identity of simulated threads, and the events of a trace. */
#include "sim/sim-internal.h"

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
