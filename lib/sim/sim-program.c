/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs: scripts of steps, and the segments that their threads run in each step. */
#include <limits.h>
#include <math.h>

#include "base/macro.h"
#include "base/mask.h"
#include "sim/sim-internal.h"

static const struct asym_sim_program *program_of(const struct asym_sim *s, const struct sim_proc *p)
{
    return &s->scenario->programs[p->program];
}

static const struct asym_sim_step *step_of(const struct asym_sim *s, const struct sim_proc *p)
{
    return &program_of(s, p)->steps[p->step];
}

static double draw(struct sim_rng *rng, enum asym_sim_draw how, double mean)
{
    switch (how) {
    case ASYM_SIM_UNIFORM:
        return 2 * mean * sim_rng_unit(rng);
    case ASYM_SIM_EXPONENTIAL:
        return sim_rng_exponential(rng, mean);
    case ASYM_SIM_FIXED:
        break;
    }
    return mean;
}

/* Gives a thread a new segment; the time up to now counts for the old one. */
static void set_segment(struct asym_sim *s, uint32_t thread, enum sim_mode mode, double left, bool spinning,
                        const struct asym_sim_memory *memory)
{
    struct sim_thread *t = &s->threads[thread];
    const bool running = t->state == SIM_RUNNING;
    const bool same = t->spinning == spinning && t->memory == memory;
    if (running) {
        sim_account(s, (uint32_t)t->cpu);
        if (!same)
            sim_weigh(s, (uint32_t)t->cpu, thread, -1);
    }
    t->mode = (uint8_t)mode;
    t->left = left;
    t->spinning = spinning;
    t->memory = memory;
    if (!running)
        return;
    if (same) {
        sim_schedule(s, (uint32_t)t->cpu);
        return;
    }
    sim_weigh(s, (uint32_t)t->cpu, thread, 1);
    sim_rerate(s, (uint32_t)t->cpu);
}

/* Gives a thread work, and wakes it if it sleeps. A new thread waits for sim_wake_newborn. */
static void give(struct asym_sim *s, uint32_t thread, enum sim_mode mode, double work)
{
    const struct sim_thread *t = &s->threads[thread];
    const struct asym_sim_step *step = step_of(s, &s->procs[t->proc]);
    set_segment(s, thread, mode, work, false, &s->scenario->memories[step->memory]);
    if (t->state == SIM_NEW)
        s->newborn[s->n_newborn++] = thread;
    else if (t->state == SIM_ASLEEP)
        sim_wake(s, thread);
}

/* Lets a running thread wait for work: it spins first, and sleeps when it has spun. A waiter for the lock sleeps already. */
static void wait_idle(struct asym_sim *s, uint32_t thread)
{
    struct sim_thread *t = &s->threads[thread];
    const uint64_t spin = program_of(s, &s->procs[t->proc])->spin;
    if (t->state != SIM_RUNNING)
        return;
    if (t->spinning || spin == 0) {
        sim_stop(s, thread, SIM_ASLEEP);
        t->spinning = false;
        return;
    }
    set_segment(s, thread, SIM_IDLE, spin == UINT64_MAX ? (double)INFINITY : (double)spin, true, t->memory);
}

static void pause_for(struct asym_sim *s, uint32_t thread, double ns)
{
    struct sim_thread *t = &s->threads[thread];
    t->mode = SIM_PAUSED;
    if (t->state == SIM_RUNNING || t->state == SIM_QUEUED)
        sim_stop(s, thread, SIM_ASLEEP);
    t->spinning = false;
    sim_heap_set(&s->heap, sim_slot_timer(s, thread), s->now + (uint64_t)ASYM_MAX(ns, 1));
}

/* Returns the instructions of the next chunk of a parallel step; 0: none is left. */
static double take_chunk(const struct asym_sim_step *step, struct sim_proc *p)
{
    const double work = step->chunk > 0 ? ASYM_MIN(step->chunk, p->pool) : 0;
    p->pool -= work;
    return work;
}

static void begin_parallel(struct asym_sim *s, struct sim_proc *p)
{
    const struct asym_sim_step *step = step_of(s, p);
    const double all = draw(&p->rng, step->draw, step->work);
    p->parallel = p->pool = all;
    /* give() cannot end a segment, so no thread finishes the step before the loop has counted all threads. */
    p->out = 0;
    for (uint32_t i = 0; i < p->n && p->pool > 0; i++) {
        const double work = step->chunk > 0 ? take_chunk(step, p) : all / p->n;
        p->out++;
        give(s, p->first + i, SIM_CHUNK, work);
    }
    if (!(step->chunk > 0))
        p->pool = 0;
}

static void set_alive(struct asym_sim *s, struct sim_proc *p, bool alive)
{
    const size_t i = (size_t)(p - s->procs);
    const uint64_t bit = UINT64_C(1) << i % 64;
    p->alive = alive;
    s->alive[i / 64] = alive ? s->alive[i / 64] | bit : s->alive[i / 64] & ~bit;
}

/* Ends a run and keeps its threads' totals. */
static void end_life(struct asym_sim *s, struct sim_proc *p)
{
    struct sim_program *program = &s->programs[p->program];
    struct asym_sim_tally *tally = &program->tally;
    double cpu = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        struct sim_thread *t = &s->threads[p->first + i];
        sim_stop(s, p->first + i, SIM_NEW);
        sim_heap_set(&s->heap, sim_slot_timer(s, p->first + i), SIM_NEVER);
        program->past_work += t->work;
        cpu += (double)t->ran * 1e-9;
    }
    const double life = (double)(s->now - p->arrived) * 1e-9;
    program->past_cpu += cpu;
    tally->cpu_ended += cpu;
    tally->times += life;
    tally->log_times += log(ASYM_MAX(life, 1e-9));
    tally->last_end = (double)s->now * 1e-9;
    set_alive(s, p, false);
    tally->ended++;
    s->n_ended++;
}

static void begin_life(struct asym_sim *s, struct sim_proc *p, uint64_t arrived)
{
    const struct asym_sim_program *program = program_of(s, p);
    if (program->rate > 0) {
        /* These jobs are the same in the same order under every policy (Snavely 2002, 6), whichever instance is free. */
        const uint64_t job = s->programs[p->program].n_jobs++ & UINT32_MAX;
        p->rng = sim_rng_stream(s->seed, UINT64_C(1) << 63 | (uint64_t)p->program << 32 | job);
    }
    const int span = program->nice_high - program->nice_low;
    const int nice = program->nice_low + (span > 0 ? (int)sim_rng_below(&p->rng, (uint32_t)span + 1) : 0);
    struct asym_mask allowed = program->affinity;
    if (asym_mask_empty(&allowed))
        allowed = *asym_mask_table_at(&s->masks, SIM_ALL_CPUS);
    p->generation++;
    if (!program->job)
        p->team.alone = p->team.heard = p->team.answered = 0;
    set_alive(s, p, true);
    p->step = p->depth = 0;
    p->passes_left = program->passes;
    p->holder = p->lock_head = p->lock_tail = SIM_NONE;
    p->arrived = arrived;
    p->born = s->now;
    for (uint32_t i = 0; i < p->n; i++) {
        struct sim_thread *t = &s->threads[p->first + i];
        *t = (struct sim_thread){
            .proc = (uint32_t)(p - s->procs), .cpu = -1, .node = -1, .mask = sim_mask_id(s, &allowed), .newborn = true};
        t->memory = &s->scenario->memories[0];
        sim_set_nice(s, p->first + i, nice);
        (void)sim_take_critical(s, p->first + i);
    }
}

/* At the end of the script: begins the next pass, a restart, or the next waiting job. Returns false when there is none. */
static bool end_script(struct asym_sim *s, struct sim_proc *p)
{
    const struct asym_sim_program *program = program_of(s, p);
    struct sim_program *sp = &s->programs[p->program];
    p->step = 0;
    if (p->passes_left == UINT_MAX || --p->passes_left > 0)
        return true;
    end_life(s, p);
    if (program->restart) {
        begin_life(s, p, s->now);
    } else if (sp->n_waiting > 0) {
        const uint64_t arrived = sp->waiting[sp->first_waiting];
        sp->first_waiting = (sp->first_waiting + 1) % SIM_MAX_WAITING;
        sp->n_waiting--;
        begin_life(s, p, arrived);
    }
    return p->alive;
}

/* Enters a loop, or goes back or on at its end; neither step takes time. */
static void pass_loop(const struct asym_sim_step *step, struct sim_proc *p)
{
    if (step->kind == ASYM_SIM_LOOP) {
        p->loops[p->depth++] = (uint32_t)step->work;
        p->step++;
    } else if (--p->loops[p->depth - 1] > 0) {
        p->step = step->partner + 1;
    } else {
        p->depth--;
        p->step++;
    }
}

/* Begins the current step. This passes loop, end and ended runs; it terminates since each contains a step that takes time. */
static void begin_step(struct asym_sim *s, struct sim_proc *p)
{
    for (;;) {
        if (p->step >= program_of(s, p)->n_steps) {
            if (!end_script(s, p))
                return;
            continue;
        }
        const struct asym_sim_step *step = step_of(s, p);
        switch (step->kind) {
        case ASYM_SIM_SERIAL:
            p->out = 1;
            give(s, p->first, SIM_CHUNK,
                 step->follow > 0 ? step->follow * p->parallel : draw(&p->rng, step->draw, step->work));
            return;
        case ASYM_SIM_PARALLEL:
            begin_parallel(s, p);
            return;
        case ASYM_SIM_IO:
            p->out = 1;
            pause_for(s, p->first, draw(&p->rng, step->draw, step->work));
            return;
        case ASYM_SIM_LOOP:
        case ASYM_SIM_END:
            pass_loop(step, p);
            break;
        }
    }
}

/* A thread has finished this step; the last one begins the next step. */
static void arrive(struct asym_sim *s, uint32_t thread)
{
    struct sim_thread *t = &s->threads[thread];
    struct sim_proc *p = &s->procs[t->proc];
    t->mode = SIM_IDLE;
    if (--p->out == 0) {
        p->step++;
        begin_step(s, p);
    }
    if (t->mode == SIM_IDLE && p->alive && !t->spinning)
        wait_idle(s, thread);
}

static void next_chunk(struct asym_sim *s, uint32_t thread)
{
    struct sim_proc *p = &s->procs[s->threads[thread].proc];
    const double work = take_chunk(step_of(s, p), p);
    if (work > 0)
        give(s, thread, SIM_CHUNK, work);
    else
        arrive(s, thread);
}

static void after_chunk(struct asym_sim *s, uint32_t thread)
{
    struct sim_proc *p = &s->procs[s->threads[thread].proc];
    const struct asym_sim_step *step = step_of(s, p);
    if (step->kind == ASYM_SIM_PARALLEL && step->pause > 0)
        pause_for(s, thread, draw(&p->rng, ASYM_SIM_EXPONENTIAL, step->pause));
    else
        next_chunk(s, thread);
}

static void acquire(struct asym_sim *s, uint32_t thread)
{
    struct sim_thread *t = &s->threads[thread];
    struct sim_proc *p = &s->procs[t->proc];
    if (p->holder == SIM_NONE) {
        p->holder = thread;
        give(s, thread, SIM_CRITICAL, step_of(s, p)->critical);
        return;
    }
    t->mode = SIM_LOCKED_OUT;
    sim_stop(s, thread, SIM_ASLEEP);
    t->next = SIM_NONE;
    *(p->lock_head == SIM_NONE ? &p->lock_head : &s->threads[p->lock_tail].next) = thread;
    p->lock_tail = thread;
}

static void release(struct asym_sim *s, struct sim_proc *p)
{
    p->holder = p->lock_head;
    if (p->holder == SIM_NONE)
        return;
    p->lock_head = s->threads[p->holder].next;
    give(s, p->holder, SIM_CRITICAL, step_of(s, p)->critical);
}

void sim_segment_done(struct asym_sim *s, uint32_t thread)
{
    struct sim_thread *t = &s->threads[thread];
    struct sim_proc *p = &s->procs[t->proc];
    if (t->spinning) {
        wait_idle(s, thread);
        return;
    }
    if (t->mode == SIM_CHUNK && step_of(s, p)->critical > 0) {
        acquire(s, thread);
        return;
    }
    if (t->mode == SIM_CRITICAL)
        release(s, p);
    after_chunk(s, thread);
}

void sim_timer(struct asym_sim *s, uint32_t thread)
{
    struct sim_proc *p = &s->procs[s->threads[thread].proc];
    s->totals.events++;
    if (step_of(s, p)->kind == ASYM_SIM_PARALLEL)
        next_chunk(s, thread);
    else
        arrive(s, thread);
}

static void start(struct asym_sim *s, struct sim_proc *p)
{
    begin_life(s, p, s->now);
    begin_step(s, p);
}

void sim_arrival(struct asym_sim *s, uint32_t program)
{
    struct sim_program *sp = &s->programs[program];
    s->totals.events++;
    if (!(s->scenario->programs[program].rate > 0)) {
        for (uint32_t i = 0; i < sp->n_procs; i++)
            start(s, &s->procs[sp->first_proc + i]);
        return;
    }
    const double gap = sim_rng_exponential(&s->programs[program].rng, 1e9 / s->scenario->programs[program].rate);
    sim_heap_set(&s->heap, sim_slot_arrival(s, program), s->now + 1 + (uint64_t)gap);
    for (uint32_t i = 0; i < sp->n_procs; i++) {
        if (!s->procs[sp->first_proc + i].alive) {
            start(s, &s->procs[sp->first_proc + i]);
            return;
        }
    }
    if (sp->n_waiting < SIM_MAX_WAITING)
        sp->waiting[(sp->first_waiting + sp->n_waiting++) % SIM_MAX_WAITING] = s->now;
    else
        sp->tally.turned_away++;
}

void sim_wake_newborn(struct asym_sim *s)
{
    s->starter = SIM_NONE;
    for (; s->n_newborn > 0; s->n_newborn--) {
        const uint32_t i = s->n_newborn > 1 ? sim_rng_below(&s->rng, s->n_newborn) : 0;
        const uint32_t thread = s->newborn[i];
        s->newborn[i] = s->newborn[s->n_newborn - 1];
        sim_wake(s, thread);
    }
}

void sim_begin(struct asym_sim *s)
{
    for (uint32_t i = 0; i < s->n_programs; i++)
        if (s->programs[i].active)
            sim_heap_set(&s->heap, sim_slot_arrival(s, i), s->scenario->programs[i].start);
}
