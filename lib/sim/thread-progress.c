/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The progress of running threads: speed, misses, SMT siblings. */
#include <math.h>

#include "base/macro.h"
#include "sim/sim-internal.h"

/* A spin loop with its pause instruction issues about this many instructions per cycle, whatever the width. */
#define SPIN_IPC 1.0

void sim_account(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    const uint64_t passed = s->now - c->since;
    c->since = s->now;
    if (passed == 0 || c->running == SIM_NONE)
        return;
    struct sim_thread *t = &s->threads[c->running];
    const double dt = (double)passed, stalled = ASYM_MIN(dt, t->debt), useful = dt - stalled;
    t->debt -= stalled;
    t->left -= useful * c->rate;
    t->ran += passed;
    t->vruntime += dt * t->per_ns;
    t->cycles += dt * c->hz;
    t->instructions += useful * c->issue;
    if (t->spinning) {
        t->spun += passed;
    } else {
        t->work += useful * c->rate;
        t->misses += useful * c->missing;
    }
    double least = t->vruntime;
    if (c->head != SIM_NONE)
        least = ASYM_MIN(least, s->threads[c->head].vruntime);
    c->min_vruntime = ASYM_MAX(c->min_vruntime, least);
}

/* Returns the working set in KiB of the thread that runs on cpu. */
static double wants_kib(const struct asym_sim *s, uint32_t cpu)
{
    const uint32_t thread = s->cpus[cpu].running;
    return thread == SIM_NONE || s->threads[thread].spinning ? 0 : s->threads[thread].memory->working_set;
}

/* Returns the KiB that each thread may keep at most, so that together they fill the LLC: small working sets stay complete. */
static double find_level(const struct asym_sim *s, const struct sim_llc *l)
{
    double level = 0, kept = 0;
    uint32_t n = l->n;
    for (uint32_t rest = l->n; rest > 0;) {
        level = (s->scenario->machine.llc_kib - kept) / rest;
        kept = 0;
        rest = 0;
        for (uint32_t i = 0; i < l->n; i++) {
            const double kib = wants_kib(s, l->first + i);
            kept += kib <= level ? kib : 0;
            rest += kib > level;
        }
        if (rest == n)
            break;
        n = rest;
    }
    return level;
}

void sim_weigh(struct asym_sim *s, uint32_t cpu, uint32_t thread, int sign)
{
    struct sim_llc *l = &s->llcs[s->cpus[cpu].llc];
    const unsigned size = s->scenario->machine.llc_kib;
    const uint64_t kib = s->threads[thread].spinning ? 0 : (uint64_t)s->threads[thread].memory->working_set;
    if (size == 0 || kib == 0)
        return;
    l->used_kib = sign > 0 ? l->used_kib + kib : l->used_kib - kib;
    const bool was_tight = !isinf(l->level), tight = l->used_kib > size;
    if (!was_tight && !tight)
        return;
    l->level = tight ? find_level(s, l) : (double)INFINITY;
    for (uint32_t c = l->first; c < l->first + l->n; c++)
        if (c != cpu && s->cpus[c].running != SIM_NONE)
            sim_rerate(s, c);
}

static double misses_per_instruction(const struct asym_sim_memory *m, double level)
{
    const double lost = m->working_set > level ? 1 - level / m->working_set : 0;
    return (m->mpki + ASYM_MAX(m->apki - m->mpki, 0) * lost) / 1000;
}

/* Returns the instructions per cycle that the thread would issue alone. */
static double demand(const struct asym_sim *s, const struct sim_cpu *c, const struct sim_thread *t, double share,
                     double *ret_per_instruction)
{
    const struct asym_sim_machine *m = &s->scenario->machine;
    *ret_per_instruction = 0;
    if (t->spinning)
        return SPIN_IPC;
    const bool remote = t->node >= 0 && t->node != (int32_t)c->node;
    const double latency = (double)m->miss_ns * (remote ? m->remote : 1);
    *ret_per_instruction = misses_per_instruction(t->memory, s->llcs[c->llc].level);
    return 1 / (1 / (t->memory->ipc * share) + *ret_per_instruction * latency * c->hz);
}

static double fetch_weight(const struct asym_sim *s, const struct sim_thread *t)
{
    if (s->scenario->machine.fetch == ASYM_SIM_FETCH_EVEN)
        return 1;
    /* Snavely 2002, 2: weights 19 - p; p = 19 gets only the slots that no other thread demands. */
    return ASYM_MAX(19 - ASYM_MAX((double)t->nice, 0), 1e-6);
}

/* Gives each thread its demand or its share of the rest by weight, whichever is less; repeats until no slot is wasted. */
static void share_issue(const double *wants, const double *weights, uint32_t n, double width, double *ret)
{
    double left = width, weight = 0;
    bool done[ASYM_MAX_SIBLINGS] = {false};
    for (uint32_t i = 0; i < n; i++)
        weight += weights[i];
    for (uint32_t round = 0; round < n; round++) {
        const double per_weight = left / weight;
        bool any = false;
        for (uint32_t i = 0; i < n; i++) {
            if (done[i] || wants[i] > per_weight * weights[i])
                continue;
            ret[i] = wants[i];
            left -= wants[i];
            weight -= weights[i];
            done[i] = any = true;
        }
        if (!any)
            break;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!done[i])
            ret[i] = left * weights[i] / weight;
}

/* Takes from each thread what it got of the others' unused slots, in part. */
static void lose_unused(const double *wants, const double *weights, uint32_t n, double width, double lost, double *gets)
{
    double weight = 0;
    for (uint32_t i = 0; i < n; i++)
        weight += weights[i];
    for (uint32_t i = 0; i < n; i++)
        gets[i] = (1 - lost) * gets[i] + lost * ASYM_MIN(wants[i], width * weights[i] / weight);
}

static void set_rate(struct sim_cpu *c, const struct sim_thread *t, double ipc, double per_instruction)
{
    c->issue = ipc * c->hz;
    c->rate = t->spinning ? 1 : c->issue;
    c->missing = c->issue * per_instruction;
}

static void rate_core(struct asym_sim *s, const struct sim_core *core)
{
    const struct asym_sim_machine *m = &s->scenario->machine;
    double wants[ASYM_MAX_SIBLINGS], weights[ASYM_MAX_SIBLINGS], gets[ASYM_MAX_SIBLINGS], per[ASYM_MAX_SIBLINGS];
    uint32_t on[ASYM_MAX_SIBLINGS], n = 0;
    for (uint32_t i = 0; i < core->n && n < ASYM_MAX_SIBLINGS; i++)
        if (s->cpus[core->first + i].running != SIM_NONE)
            on[n++] = core->first + i;
    const double share = ASYM_MAX(1 - m->smt_loss * ((double)n - 1), 0.1);
    for (uint32_t i = 0; i < n; i++) {
        const struct sim_thread *t = &s->threads[s->cpus[on[i]].running];
        sim_account(s, on[i]);
        wants[i] = demand(s, &s->cpus[on[i]], t, share, &per[i]);
        weights[i] = fetch_weight(s, t);
    }
    share_issue(wants, weights, n, m->max_ipc, gets);
    if (m->fetch == ASYM_SIM_FETCH_PRIORITY && m->fetch_lost > 0)
        lose_unused(wants, weights, n, m->max_ipc, m->fetch_lost, gets);
    for (uint32_t i = 0; i < n; i++) {
        struct sim_cpu *c = &s->cpus[on[i]];
        set_rate(c, &s->threads[c->running], gets[i], per[i]);
        sim_schedule(s, on[i]);
    }
}

void sim_rerate(struct asym_sim *s, uint32_t cpu)
{
    struct sim_cpu *c = &s->cpus[cpu];
    if (s->scenario->machine.most_smt > 1) {
        rate_core(s, &s->cores[c->core]);
        return;
    }
    if (c->running == SIM_NONE)
        return;
    double per_instruction;
    const struct sim_thread *t = &s->threads[c->running];
    sim_account(s, cpu);
    const double ipc = demand(s, c, t, 1, &per_instruction);
    set_rate(c, t, ipc, per_instruction);
    sim_schedule(s, cpu);
}

/* The CPUs' ticks are spread over the period, as Linux spreads them with skew_tick. */
static uint64_t next_tick(const struct asym_sim *s, uint32_t cpu, uint64_t after)
{
    const uint64_t tick = s->scenario->scheduler.tick, phase = s->cpus[cpu].tick_phase;
    return after < phase ? phase : phase + ((after - phase) / tick + 1) * tick;
}

void sim_schedule(struct asym_sim *s, uint32_t cpu)
{
    const struct sim_cpu *c = &s->cpus[cpu];
    if (c->late)
        return;
    if (c->running == SIM_NONE) {
        sim_heap_set(&s->heap, cpu, SIM_NEVER);
        return;
    }
    const struct sim_thread *t = &s->threads[c->running];
    const double lasts = t->debt + ASYM_MAX(t->left, 0) / c->rate;
    uint64_t when = lasts < 1e18 ? s->now + sim_round_up(lasts) : SIM_NEVER;
    if (c->n_queued > 0) {
        const uint64_t used = ASYM_MAX(s->now, c->slice_from + s->scenario->scheduler.slice - 1);
        if (when > used)
            when = ASYM_MIN(when, next_tick(s, cpu, used));
    }
    sim_heap_set(&s->heap, cpu, when);
}

void sim_profile(const struct asym_sim *s, const struct asym_sim_program *program, struct asym_profile *ret)
{
    const struct asym_sim_machine *m = &s->scenario->machine;
    for (unsigned k = 0; k < s->machine->n_types; k++) {
        double work = 0, time = 0, misses = 0;
        for (unsigned i = 0; i < program->n_steps; i++) {
            const struct asym_sim_step *step = &program->steps[i];
            const struct asym_sim_memory *mem = &s->scenario->memories[step->memory];
            if ((step->kind != ASYM_SIM_SERIAL && step->kind != ASYM_SIM_PARALLEL) || !(step->work > 0))
                continue;
            const double hz = m->frequency * s->slowest * s->machine->types[k].speed * s->tick_share;
            const double per = misses_per_instruction(mem, (double)INFINITY);
            work += step->work;
            time += step->work * (1 / (mem->ipc * hz) + per * (double)m->miss_ns);
            misses += step->work * per;
        }
        ret->ips[k] = time > 0 ? work / time * 1e9 : 0;
        ret->mpki[k] = work > 0 ? misses / work * 1000 : -1;
    }
}
