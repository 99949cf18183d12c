/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the events of the simulation in order of time. */
#include "base/macro.h"
#include "sim/sim-internal.h"

static void on_cpu(struct asym_sim *s, uint32_t cpu)
{
    const struct sim_cpu *c = &s->cpus[cpu];
    const uint32_t thread = c->running;
    sim_account(s, cpu);
    s->totals.events++;
    s->cpus[cpu].late = true;
    if (thread != SIM_NONE && !(s->threads[thread].debt >= 0.5) && s->threads[thread].left < 0.5)
        sim_segment_done(s, thread);
    sim_pend(s, cpu, s->now - c->slice_from >= s->scenario->scheduler.slice);
}

/* Programs that start at the same instant start together: the seed draws the order of all their threads. */
static bool arrival_follows(struct asym_sim *s)
{
    if (sim_heap_time(&s->heap) != s->now)
        return false;
    const uint32_t slot = sim_heap_slot(&s->heap);
    return slot >= sim_slot_arrival(s, 0) && slot < sim_slot_kick(s);
}

static void on_event(struct asym_sim *s, uint32_t slot)
{
    if (slot < s->n_cpus) {
        on_cpu(s, slot);
    } else if (slot < sim_slot_arrival(s, 0)) {
        sim_timer(s, slot - sim_slot_timer(s, 0));
    } else if (slot < sim_slot_kick(s)) {
        sim_arrival(s, slot - sim_slot_arrival(s, 0));
        if (arrival_follows(s))
            return;
    } else if (slot == sim_slot_kick(s)) {
        sim_kicked(s);
    } else {
        sim_phase_timer(s, slot - sim_slot_phase(s, 0));
        return;
    }
    sim_wake_newborn(s);
    sim_settle(s);
}

/* Balances the next CPU and sets the turn of the one after it. */
static void on_balance(struct asym_sim *s)
{
    const uint32_t cpu = s->next_balance;
    const uint64_t period_from = s->now - sim_balance_phase(s, cpu);
    const bool wraps = cpu + 1 == s->n_cpus;
    s->totals.events++;
    s->next_balance = wraps ? 0 : cpu + 1;
    s->balance_at = period_from + sim_balance_phase(s, s->next_balance) + (wraps ? s->scenario->scheduler.balance : 0);
    sim_balance(s, cpu);
    sim_settle(s);
}

/* Runs the next event if it is due by stop. Returns false if not. */
static bool advance(struct asym_sim *s, uint64_t stop)
{
    const uint64_t time = sim_heap_time(&s->heap);
    const bool balances = s->balance_at < time || (s->balance_at == time && sim_heap_slot(&s->heap) >= s->n_cpus);
    const uint64_t next = balances ? s->balance_at : time;
    if (next > stop)
        return false;
    s->now = next;
    if (balances)
        on_balance(s);
    else
        on_event(s, sim_heap_take(&s->heap));
    return true;
}

static bool all_done(const struct asym_sim *s)
{
    const int until = s->scenario->run.until;
    if (until == ASYM_SIM_UNTIL_TIME)
        return false;
    for (uint32_t i = 0; i < s->n_programs; i++) {
        const struct sim_program *p = &s->programs[i];
        if (!p->active)
            continue;
        if (until == ASYM_SIM_UNTIL_RUNS && p->tally.ended < s->scenario->run.runs * p->n_procs)
            return false;
        for (uint32_t k = 0; until == ASYM_SIM_UNTIL_DONE && k < p->n_procs; k++)
            if (s->procs[p->first_proc + k].alive || s->now < s->scenario->programs[i].start)
                return false;
    }
    return s->now > 0;
}

/* Reads the flag once in 1024 calls. */
static bool is_stopped(struct asym_sim *s)
{
    return s->stop && ++s->polled % 1024 == 0 && *s->stop;
}

bool asym_sim_until(struct asym_sim *s, uint64_t time)
{
    const uint64_t stop = ASYM_MIN(time, s->end);
    if (s->over)
        return false;
    for (uint32_t ended = s->n_ended; !s->over && !s->is_told && advance(s, stop); ended = s->n_ended)
        if ((s->n_ended != ended && all_done(s)) || is_stopped(s))
            s->over = true;
    if (!s->over && !s->is_told)
        s->now = stop;
    s->over |= s->now >= s->end;
    if (s->over) {
        /* Traces the stop of threads that still run at the end. */
        for (uint32_t c = 0; s->tracer.event && c < s->n_cpus; c++)
            if (s->cpus[c].running != SIM_NONE)
                sim_trace_thread(s, ASYM_SIM_STOPS, s->cpus[c].running, NULL);
    }
    return !s->over;
}
