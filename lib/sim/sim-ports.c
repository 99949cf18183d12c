/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two ports: the source makes snapshots of the simulated machine, and the actuator applies actions to it. */
#include "sim/sim-internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/runnable.h"

/* The counters and the state of a thread at the last sample, and what that measured. */
struct seen {
    struct asym_schedstat before;
    int64_t balance;
    double running, runnable, critical, needed; /* shares; needed: of the time in which it did not spin */
    bool is_listed;
    char state;
};

struct sim_ports {
    struct asym_source source; /* first, so that the functions of the port can cast it */
    struct asym_sim *sim;
    struct sim_actuator {
        struct asym_actuator port;
        struct asym_sim *sim;
    } actuator;
    uint64_t interval, due, passed; /* passed: at the last sample, since the one before */
    bool is_refresh;                /* this snapshot repeats the last sample */
    struct asym_app *apps;
    struct asym_proc *procs;
    struct asym_task *tasks;
    struct asym_sample *samples;
    uint32_t *thread_of;  /* by task */
    struct seen *sampled; /* by thread */
    size_t n_apps, n_procs, n_tasks, n_samples;
};

/* Includes the wait in the current queue up to now. */
static uint64_t waited(const struct asym_sim *s, const struct sim_thread *t)
{
    return t->waited + (t->state == SIM_QUEUED ? s->now - t->queued_at : 0);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : ASYM_MIN((double)part / (double)whole, 1);
}

static void take_sample(struct sim_ports *w, const struct sim_thread *t)
{
    if (!t->counted)
        return;
    w->samples[w->n_samples++] = (struct asym_sample){
        .task = (uint32_t)w->n_tasks,
        .seconds = (double)(t->ran - t->ran_then) * 1e-9,
        .instructions = t->instructions - t->instructions_then,
        .cycles = t->cycles - t->cycles_then,
        .llc_misses = t->misses - t->misses_then,
    };
}

static void remember(const struct asym_sim *s, struct sim_thread *t)
{
    t->ran_then = t->ran;
    t->waited_then = waited(s, t);
    t->spun_then = t->spun;
    t->instructions_then = t->instructions;
    t->cycles_then = t->cycles;
    t->misses_then = t->misses;
    t->newborn = false;
    t->counted = false;
}

/* Returns the time for which the source sees the thread as runnable. A new thread has waited since its birth. */
static uint64_t see_runnable(struct sim_ports *w, uint32_t thread, char is, uint64_t passed)
{
    const struct asym_sim *s = w->sim;
    const struct sim_thread *t = &s->threads[thread];
    const uint64_t born = s->procs[t->proc].born, span = t->newborn ? ASYM_MIN(passed, s->now - born) : passed;
    struct seen *seen = &w->sampled[thread];
    if (t->newborn)
        *seen = (struct seen){.state = 'R'};
    const struct asym_schedstat now = {t->ran, t->waited, t->turns};
    const uint64_t count = s->scenario->run.runnable == ASYM_SIM_RUNNABLE_CREDITED
                               ? asym_runnable_credited(&seen->before, &now, seen->state, is, span, &seen->balance)
                               : t->ran - t->ran_then + waited(s, t) - t->waited_then;
    seen->before = now;
    seen->state = is;
    return count;
}

/* As with the OpenMP tool, the first thread is the master from the end of a parallel step to the beginning of the next one. */
static bool is_master(const struct asym_sim_program *program, const struct sim_proc *p, uint32_t thread)
{
    return program->rtx && thread == p->first && program->steps[p->step].kind != ASYM_SIM_PARALLEL;
}

static void measure(struct sim_ports *w, uint32_t thread)
{
    const struct sim_thread *t = &w->sim->threads[thread];
    const bool is_told = w->sim->scenario->programs[w->sim->procs[t->proc].program].rtx;
    const uint64_t spun = is_told ? t->spun - t->spun_then : 0;
    const uint64_t runnable = see_runnable(w, thread, sim_is_runnable(t->state) ? 'R' : 'S', w->passed);
    const double critical = sim_take_critical(w->sim, thread);
    struct seen *seen = &w->sampled[thread];
    seen->is_listed = sim_is_runnable(t->state) || t->newborn || runnable > 0;
    seen->runnable = share(runnable, w->passed);
    seen->running = share(t->ran - t->ran_then, w->passed);
    seen->critical = w->passed == 0 ? 0 : ASYM_MIN(critical / (double)w->passed, 1);
    seen->needed = share(runnable - ASYM_MIN(spun, runnable), w->passed);
    if (seen->is_listed)
        take_sample(w, t);
}

/*
 * A thread is runnable by its state now; it is spinning only if the program reports that over RTX. While one is alone, its
 * application counts as one thread.
 */
static void see_thread(struct sim_ports *w, struct asym_app *app, uint32_t thread)
{
    const struct asym_sim *s = w->sim;
    const struct sim_thread *t = &s->threads[thread];
    const struct sim_proc *p = &s->procs[t->proc];
    const struct asym_sim_program *program = &s->scenario->programs[p->program];
    const struct asym_taskid *leader = &w->procs[w->n_procs - 1].id;
    const struct seen *seen = &w->sampled[thread];
    /* A refreshed snapshot has the state of the last sample, but for threads that the observer follows. */
    const bool is_now = !w->is_refresh || sim_is_followed(s, p);
    const bool runnable = is_now ? sim_is_runnable(t->state) : seen->state == 'R',
               spinning = program->rtx && t->spinning;
    const uint32_t lone = sim_alone_of(s, thread);
    const bool alone = lone == thread + 1;
    if (!seen->is_listed && !alone)
        return;
    w->thread_of[w->n_tasks] = thread;
    struct asym_task *task = &w->tasks[w->n_tasks++];
    *task = (struct asym_task){
        .id = {leader->tid + (int32_t)(thread - p->first), leader->tgid, leader->start},
        .proc = (uint32_t)w->n_procs - 1,
        .flags = (t->newborn ? ASYM_TASK_NEWBORN : 0u) | (spinning ? ASYM_TASK_SPINNING : 0u) |
                 (is_master(program, p, thread) ? (unsigned)ASYM_TASK_MASTER | ASYM_TASK_PHASE : 0u) |
                 (t->ran < ASYM_HARDLY_RAN * 1000 ? ASYM_TASK_HARDLY_RAN : 0u) | (alone ? ASYM_TASK_ALONE : 0u),
        .cpu = ASYM_MAX(t->cpu, 0),
        .nice = t->nice,
        .sched = SCHED_OTHER,
        .state = runnable ? 'R' : 'S',
        .runnable = seen->runnable,
        .running = seen->running,
        .critical = seen->critical,
        .mask = asym_mask_table_at(&s->masks, t->mask),
        .cpuset = asym_mask_table_at(&s->masks, SIM_ALL_CPUS),
    };
    memcpy(task->comm, app->comm, sizeof task->comm);
    app->n_tasks++;
    app->runnable_instant += runnable && !spinning;
    app->runnable_mean += lone == 0 ? seen->needed : alone;
}

/* The processes of one program follow each other. No thread has the number of a job. */
static struct asym_app *app_of(struct sim_ports *w, const struct sim_proc *p, struct asym_taskid id)
{
    const bool is_job = w->sim->scenario->programs[p->program].job;
    if (is_job)
        id = (struct asym_taskid){INT32_MAX - (int32_t)p->program, INT32_MAX - (int32_t)p->program, 1};
    struct asym_app *app = &w->apps[w->n_apps - (w->n_apps > 0)];
    if (!is_job || w->n_apps == 0 || app->id.tid != id.tid) {
        app = &w->apps[w->n_apps++];
        *app = (struct asym_app){.id = id, .first_task = (uint32_t)w->n_tasks};
        memcpy(app->comm, w->sim->programs[p->program].comm, sizeof app->comm);
    }
    app->n_procs++;
    app->n_threads += p->n;
    return app;
}

static void see_proc(struct sim_ports *w, const struct sim_proc *p)
{
    struct asym_sim *s = w->sim;
    const struct sim_program *program = &s->programs[p->program];
    const struct asym_taskid id = sim_id_of(s, p->first);
    struct asym_app *app = app_of(w, p, id);
    w->procs[w->n_procs++] = (struct asym_proc){
        .id = id,
        .ppid = 1,
        .app = (uint32_t)w->n_apps - 1,
        .born = SIM_EPOCH + p->born / 1000,
        .rule = ASYM_RULE_STEER,
        .profile = &program->profile,
    };
    for (uint32_t i = 0; i < p->n; i++) {
        struct sim_thread *t = &s->threads[p->first + i];
        if (t->state == SIM_RUNNING)
            sim_account(s, (uint32_t)t->cpu);
        if (!w->is_refresh)
            measure(w, p->first + i);
        see_thread(w, app, p->first + i);
        if (!w->is_refresh)
            remember(s, t);
    }
}

/* Lets time pass until the next sample, or until asymd is told of a serial phase. Returns false at the end of the run. */
static bool wait_for_snapshot(struct sim_ports *w)
{
    struct asym_sim *s = w->sim;
    if (!w->is_refresh)
        w->due = s->now + w->interval;
    if (!asym_sim_until(s, w->due))
        return false;
    w->is_refresh = s->is_told;
    if (!w->is_refresh) {
        w->passed = s->sampled != 0 ? s->now - s->sampled : 0;
        s->sampled = s->now;
    }
    sim_phases_seen(s, w->is_refresh);
    return true;
}

static int next_snapshot(struct asym_source *source, struct asym_snapshot *ret)
{
    struct sim_ports *w = (struct sim_ports *)(void *)source;
    struct asym_sim *s = w->sim;
    if (!wait_for_snapshot(w))
        return 0;
    w->n_apps = w->n_procs = w->n_tasks = w->n_samples = 0;
    for (uint32_t i = 0; i < s->n_procs; i += 64)
        for (uint64_t bits = s->alive[i / 64]; bits; bits &= bits - 1)
            see_proc(w, &s->procs[i + (uint32_t)__builtin_ctzll(bits)]);
    for (size_t i = 0; w->is_refresh && i < w->n_apps; i++)
        if (sim_is_followed(s, &s->procs[s->threads[w->thread_of[w->apps[i].first_task]].proc]))
            w->apps[i].runnable_mean = ASYM_MAX(w->apps[i].runnable_mean, w->apps[i].runnable_instant);
    s->totals.snapshots++;
    *ret = (struct asym_snapshot){
        .now = SIM_EPOCH + s->now / 1000,
        .interval = w->passed / 1000,
        .refreshed = w->is_refresh,
        .urgent = w->is_refresh ? ASYM_URGENT_PHASE : ASYM_URGENT_NOT,
        .machine = s->machine,
        .apps = w->apps,
        .procs = w->procs,
        .tasks = w->tasks,
        .samples = w->samples,
        .n_apps = w->n_apps,
        .n_procs = w->n_procs,
        .n_tasks = w->n_tasks,
        .n_samples = w->n_samples,
        .coverage = {.n_procs = (uint32_t)w->n_procs, .n_threads = s->n_threads, .process_events = true},
    };
    if (s->scenario->machine.most_smt < 2)
        ret->missing[ASYM_SIGNAL_SMT] = "the scenario's cores have one hardware thread";
    return 1;
}

static int carry_out(struct asym_sim *s, const struct asym_action *a)
{
    const uint32_t thread = sim_find_thread(s, &a->id);
    if (thread == SIM_NONE)
        return -ESRCH;
    struct sim_thread *t = &s->threads[thread];
    if (a->kind == ASYM_ACTION_STEER && !asym_mask_equal(asym_mask_table_at(&s->masks, t->mask), &a->expect))
        return -EBUSY;
    if (asym_mask_empty(&a->mask) || !asym_mask_within(&a->mask, &s->machine->usable))
        return -EINVAL;
    sim_set_mask(s, thread, &a->mask);
    if (t->nice != a->nice)
        sim_set_nice(s, thread, a->nice);
    if (s->tracer.event)
        sim_trace_thread(s, a->kind == ASYM_ACTION_STEER ? ASYM_SIM_STEERED : ASYM_SIM_RELEASED, thread, a);
    sim_obey(s, thread);
    sim_settle(s);
    s->totals.actions++;
    return 0;
}

static int apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                 struct asym_outcome *ret_outcomes)
{
    struct asym_sim *s = ((struct sim_actuator *)(void *)actuator)->sim;
    for (size_t i = 0; i < n; i++) {
        const int r = carry_out(s, &actions[i]);
        ret_outcomes[i] = (struct asym_outcome){.kind = asym_outcome_of(r), .error = r};
    }
    return 0;
}

static void count_threads(struct asym_source *source, const struct asym_feedback *feedback)
{
    const struct sim_ports *w = (struct sim_ports *)(void *)source;
    const struct asym_plan *plan = feedback->plan;
    for (size_t i = 0; i < plan->n_tasks && i < w->n_tasks; i++)
        w->sim->threads[w->thread_of[i]].counted = plan->tasks[i].counted;
}

int sim_ports_new(struct asym_sim *s)
{
    struct sim_ports *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    s->ports = w;
    w->sim = w->actuator.sim = s;
    w->source = (struct asym_source){.next = next_snapshot, .feedback = count_threads};
    w->actuator.port = (struct asym_actuator){.apply = apply};
    w->apps = calloc(s->n_procs + 1, sizeof *w->apps);
    w->procs = calloc(s->n_procs + 1, sizeof *w->procs);
    w->tasks = calloc(s->n_threads + 1, sizeof *w->tasks);
    w->samples = calloc(s->n_threads + 1, sizeof *w->samples);
    w->thread_of = calloc(s->n_threads + 1, sizeof *w->thread_of);
    w->sampled = calloc(s->n_threads + 1, sizeof *w->sampled);
    return w->apps && w->procs && w->tasks && w->samples && w->thread_of && w->sampled ? 0 : -ENOMEM;
}

void sim_ports_free(struct asym_sim *s)
{
    struct sim_ports *w = s->ports;
    if (!w)
        return;
    free(w->apps);
    free(w->procs);
    free(w->tasks);
    free(w->samples);
    free(w->thread_of);
    free(w->sampled);
    free(w);
}

struct asym_source *asym_sim_source(struct asym_sim *s, asym_usec interval)
{
    s->ports->interval = interval * 1000;
    return &s->ports->source;
}

struct asym_actuator *asym_sim_actuator(struct asym_sim *s)
{
    return &s->ports->actuator.port;
}
