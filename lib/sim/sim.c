/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sim/sim-internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* Fills in which of the scenario's counts each core belongs to, by core number. */
static void order_cores(const struct asym_sim_machine *m, unsigned *ret)
{
    unsigned left[ASYM_SIM_MAX_TYPES], n = 0, total = 0;
    memcpy(left, m->counts, sizeof left);
    for (unsigned k = 0; k < m->n_types; k++)
        total += m->counts[k];
    while (n < total) {
        for (unsigned k = 0; k < m->n_types; k++) {
            unsigned take = m->order == ASYM_SIM_INTERLEAVED ? left[k] > 0 : left[k];
            left[k] -= take;
            while (take-- > 0)
                ret[n++] = k;
        }
    }
}

static int build_machine(struct asym_sim *s)
{
    const struct asym_sim_machine *m = &s->scenario->machine;
    unsigned part[ASYM_MAX_CPUS], core = 0, first = 0;
    struct asym_machine *out = s->machine;
    order_cores(m, part);
    s->slowest = m->speeds[0];
    out->generation = 1;
    out->n_cpus = s->n_cpus;
    for (unsigned c = 0; c < s->n_cpus; c++) {
        if (c == first + m->smt[part[core]]) {
            first = c;
            core++;
        }
        const unsigned llc = m->llc > 0 ? core / m->llc : 0;
        const double speed = m->speeds[part[core]];
        asym_mask_set(&out->online, c);
        s->slowest = ASYM_MIN(s->slowest, speed);
        out->cpus[c] = (struct asym_cpu){
            .speed = speed,
            .core = (int16_t)core,
            .llc = (int16_t)llc,
            .node = (int16_t)(m->node > 0 ? llc / m->node : 0),
            .freq_domain = (int16_t)core,
            .origin = ASYM_ORIGIN_CONFIG,
        };
    }
    out->usable = out->online;
    out->fast_from = s->scenario->settings->machine.fast_from;
    out->smt_gain = s->scenario->settings->machine.smt_gain;
    return asym_machine_finish(out);
}

/* build_machine gives CPUs of a core and of an LLC neighbouring numbers. */
static void group_cpus(struct asym_sim *s)
{
    for (uint32_t c = s->n_cpus; c-- > 0;) {
        struct sim_core *core = &s->cores[s->machine->cpus[c].core];
        struct sim_llc *llc = &s->llcs[s->machine->cpus[c].llc];
        core->first = llc->first = c;
        core->n++;
        llc->n++;
        llc->level = (double)INFINITY;
    }
}

static void init_cpus(struct asym_sim *s)
{
    const struct asym_sim_scheduler *sc = &s->scenario->scheduler;
    s->tick_share = 1 - (double)sc->tick_cost / (double)sc->tick;
    for (uint32_t c = 0; c < s->n_cpus; c++) {
        const struct asym_cpu *cpu = &s->machine->cpus[c];
        s->cpus[c] = (struct sim_cpu){
            .running = SIM_NONE,
            .last = SIM_NONE,
            .head = SIM_NONE,
            .tail = SIM_NONE,
            .core = (uint32_t)cpu->core,
            .llc = (uint32_t)cpu->llc,
            .node = (uint32_t)cpu->node,
            .hz = s->scenario->machine.frequency * s->slowest * cpu->speed * s->tick_share,
            .rate = 1,
            .tick_phase = sc->tick * c / s->n_cpus,
        };
    }
    s->idle = s->levels[0] = s->machine->usable;
    s->balance_at = sim_balance_phase(s, 0);
}

/* Returns the number of instances of program i. If only one program is to run (only >= 0), it has one instance. */
static uint32_t instances(const struct asym_scenario *sc, uint32_t i, int only)
{
    if (only < 0)
        return sc->programs[i].count;
    return only == (int)i ? 1 : 0;
}

static int init_programs(struct asym_sim *s, int only, uint64_t seed)
{
    uint32_t proc = 0, thread = 0;
    for (uint32_t i = 0; i < s->n_programs; i++) {
        const struct asym_sim_program *program = &s->scenario->programs[i];
        struct sim_program *sp = &s->programs[i];
        sp->first_proc = proc;
        sp->n_procs = instances(s->scenario, i, only);
        sp->active = sp->n_procs > 0;
        sp->rng = sim_rng_stream(seed, (uint64_t)i << 32 | UINT32_MAX);
        sim_profile(s, program, &sp->profile);
        snprintf(sp->comm, sizeof sp->comm, "%.15s", program->name);
        if (program->rate > 0 && !(sp->waiting = calloc(SIM_MAX_WAITING, sizeof *sp->waiting)))
            return -ENOMEM;
        for (uint32_t k = 0; k < sp->n_procs; k++, proc++) {
            s->procs[proc] = (struct sim_proc){.program = i, .instance = k, .first = thread, .n = program->threads};
            s->procs[proc].rng = sim_rng_stream(seed, (uint64_t)i << 32 | k);
            for (uint32_t t = 0; t < program->threads; t++, thread++)
                s->threads[thread] = (struct sim_thread){
                    .proc = proc, .cpu = -1, .mask = SIM_ALL_CPUS, .memory = s->scenario->memories};
        }
    }
    return 0;
}

static void count_all(struct asym_sim *s, int only)
{
    s->n_programs = s->scenario->n_programs;
    s->n_cpus = asym_scenario_cpus(s->scenario);
    for (uint32_t i = 0; i < s->n_programs; i++) {
        s->n_procs += instances(s->scenario, i, only);
        s->n_threads += instances(s->scenario, i, only) * s->scenario->programs[i].threads;
    }
}

static int allocate(struct asym_sim *s)
{
    s->machine = calloc(1, sizeof *s->machine);
    s->cpus = calloc(s->n_cpus, sizeof *s->cpus);
    s->threads = aligned_alloc(_Alignof(struct sim_thread), (s->n_threads + 1) * sizeof *s->threads);
    s->procs = calloc(s->n_procs + 1, sizeof *s->procs);
    s->programs = calloc(s->n_programs + 1, sizeof *s->programs);
    s->llcs = calloc(s->n_cpus, sizeof *s->llcs);
    s->cores = calloc(s->n_cpus, sizeof *s->cores);
    s->pending = calloc(s->n_cpus, sizeof *s->pending);
    s->loads = calloc(s->n_cpus, sizeof *s->loads);
    s->pullers = calloc(s->n_cpus, sizeof *s->pullers);
    s->alive = calloc(s->n_procs / 64 + 1, sizeof *s->alive);
    s->newborn = calloc(s->n_threads + 1, sizeof *s->newborn);
    const bool is_bpf = s->scenario->settings->daemon.observer == ASYM_OBSERVE_BPF;
    if (is_bpf)
        s->criticals = calloc(s->n_threads + 1, sizeof *s->criticals);
    if (s->threads)
        memset(s->threads, 0, (s->n_threads + 1) * sizeof *s->threads);
    return (s->criticals || !is_bpf) && s->machine && s->cpus && s->threads && s->procs && s->programs && s->llcs &&
                   s->cores && s->pending && s->loads && s->pullers && s->alive && s->newborn
               ? 0
               : -ENOMEM;
}

static int set_up(struct asym_sim *s, int only, uint64_t seed)
{
    count_all(s, only);
    int r = allocate(s);
    if (r >= 0)
        r = build_machine(s);
    if (r >= 0)
        r = sim_masks_init(s);
    if (r >= 0)
        r = sim_heap_init(&s->heap, sim_slot_phase(s, s->n_procs));
    if (r < 0)
        return r;
    s->n_llcs = s->machine->n_llcs;
    s->seed = seed;
    s->by_speed = s->scenario->scheduler.capacity != ASYM_SIM_CAPACITY_IGNORED;
    s->rng = sim_rng_stream(seed, UINT64_MAX);
    s->end = s->scenario->run.duration;
    s->kick_at = SIM_NEVER;
    s->starter = SIM_NONE;
    group_cpus(s);
    init_cpus(s);
    r = init_programs(s, only, seed);
    if (r >= 0)
        r = sim_ports_new(s);
    if (r >= 0)
        sim_begin(s);
    return r;
}

int asym_sim_new(const struct asym_scenario *scenario, int only, uint64_t seed, struct asym_sim **ret_sim)
{
    struct asym_sim *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->scenario = scenario;
    int r = set_up(s, only, seed);
    if (r < 0) {
        asym_sim_free(s);
        return r;
    }
    *ret_sim = s;
    return 0;
}

void asym_sim_free(struct asym_sim *s)
{
    if (!s)
        return;
    sim_ports_free(s);
    for (uint32_t i = 0; s->programs && i < s->n_programs; i++)
        free(s->programs[i].waiting);
    sim_heap_done(&s->heap);
    asym_mask_table_done(&s->masks);
    void *owned[] = {s->criticals, s->machine, s->cpus,  s->threads, s->procs,   s->programs, s->llcs,
                     s->cores,     s->pending, s->loads, s->alive,   s->newborn, s->pullers};
    for (size_t i = 0; i < ASYM_LENGTH(owned); i++)
        free(owned[i]);
    free(s);
}

void asym_sim_trace(struct asym_sim *s, const struct asym_sim_tracer *tracer)
{
    s->tracer = *tracer;
}

void asym_sim_stop_on(struct asym_sim *s, const volatile sig_atomic_t *stop)
{
    s->stop = stop;
}

void asym_sim_hear(struct asym_sim *s, bool begins, bool ends)
{
    s->hears_begins = s->criticals && begins;
    s->hears_ends = s->criticals && ends;
}

uint64_t asym_sim_now(const struct asym_sim *s)
{
    return s->now;
}

struct asym_sim_tally asym_sim_tally(struct asym_sim *s, unsigned program)
{
    const struct sim_program *sp = &s->programs[program];
    struct asym_sim_tally tally = sp->tally;
    tally.work = sp->past_work;
    tally.cpu = sp->past_cpu;
    for (uint32_t i = 0; i < sp->n_procs; i++) {
        const struct sim_proc *p = &s->procs[sp->first_proc + i];
        for (uint32_t t = 0; p->alive && t < p->n; t++) {
            if (s->threads[p->first + t].state == SIM_RUNNING)
                sim_account(s, (uint32_t)s->threads[p->first + t].cpu);
            tally.work += s->threads[p->first + t].work;
            tally.cpu += (double)s->threads[p->first + t].ran * 1e-9;
        }
    }
    return tally;
}

struct asym_sim_totals asym_sim_totals(struct asym_sim *s)
{
    struct asym_sim_totals totals = s->totals;
    for (uint32_t i = 0; i < s->n_programs; i++)
        totals.busy += asym_sim_tally(s, i).cpu;
    return totals;
}
