/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/experiment.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/macro.h"
#include "app/cycle.h"
#include "sim/ports.h"

/* Bytes per simulated thread, with the engine's state for it: 1240 measured (smt-sos). */
#define THREAD_BYTES 1536u

static void free_engine(struct asym_engine **e)
{
    asym_engine_free(*e);
}

static void free_sim(struct asym_sim **s)
{
    asym_sim_free(*s);
}

static int drive(struct asym_sim_trial *t, struct asym_sim *sim, struct asym_engine *engine,
                 const volatile sig_atomic_t *stop)
{
    const asym_usec interval = t->scenario->settings->daemon.interval;
    ASYM_CLEANUP(asym_cycle_done)
    struct asym_cycle cycle = {
        .source = asym_sim_source(sim, interval), .actuator = asym_sim_actuator(sim), .engine = engine};
    int r;
    while ((r = asym_cycle_plan(&cycle)) > 0) {
        t->planned += cycle.plan->n_tasks;
        t->plan_cpu = cycle.plan_cpu;
        if (t->watch)
            t->watch->planned(t->watch->ctx, &cycle.snapshot, cycle.plan);
        r = *stop ? -ECANCELED : asym_cycle_enforce(&cycle);
        asym_sim_source(sim, asym_cycle_wait(&cycle, interval));
        if (r < 0)
            break;
    }
    return r;
}

static int run(struct asym_sim_trial *t, const volatile sig_atomic_t *stop)
{
    ASYM_CLEANUP(free_sim) struct asym_sim *sim = NULL;
    ASYM_CLEANUP(free_engine) struct asym_engine *engine = NULL;
    const struct asym_engine_config config = asym_settings_engine_config(t->scenario->settings, t->policy);
    int r = asym_sim_new(t->scenario, t->only, t->seed, &sim);
    if (r >= 0)
        r = asym_engine_new(&config, &engine);
    if (r < 0)
        return r;
    if (t->watch)
        asym_sim_trace(sim, &t->watch->sim);
    asym_sim_stop_on(sim, stop);
    r = drive(t, sim, engine, stop);
    if (r >= 0 && *stop)
        r = -ECANCELED;
    if (r < 0)
        return r;
    t->seconds = (double)asym_sim_now(sim) * 1e-9;
    t->totals = asym_sim_totals(sim);
    for (unsigned i = 0; i < t->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++)
        t->tally[i] = asym_sim_tally(sim, i);
    return 0;
}

void asym_sim_trial_run(struct asym_sim_trial *trial, const volatile sig_atomic_t *stop)
{
    trial->error = *stop ? -ECANCELED : run(trial, stop);
}

int asym_sim_trials_fit(const struct asym_scenario *scenario, const char *name, uint64_t memory, unsigned *workers,
                        struct asym_error *err)
{
    const size_t threads = asym_scenario_threads(scenario);
    const uint64_t each = (uint64_t)threads * THREAD_BYTES, fit = memory / ASYM_MAX(each, 1);
    const struct asym_sim_program *most = scenario->programs;
    for (unsigned i = 1; i < scenario->n_programs; i++)
        if ((size_t)scenario->programs[i].threads * scenario->programs[i].count > (size_t)most->threads * most->count)
            most = &scenario->programs[i];
    if (fit == 0)
        return asym_fail(err, -EINVAL, "%s:%u: program %s: %zu threads in all take %llu MiB; this machine has %llu",
                         name, most->line, most->name, threads, (unsigned long long)(each >> 20),
                         (unsigned long long)(memory >> 20));
    *workers = (unsigned)ASYM_MIN(*workers, fit);
    return 0;
}

struct crew {
    struct asym_sim_trial *trials;
    size_t n, stride;
    const volatile sig_atomic_t *stop;
    atomic_size_t next, done;
};

static void *work(void *ctx)
{
    struct crew *crew = ctx;
    for (size_t i; (i = atomic_fetch_add(&crew->next, 1)) < crew->n;) {
        const size_t each = crew->n / crew->stride;
        asym_sim_trial_run(&crew->trials[i % each * crew->stride + i / each], crew->stop);
        atomic_fetch_add(&crew->done, 1);
    }
    return NULL;
}

static void watch(struct crew *crew, void (*progress)(void *ctx, size_t done, size_t all), void *ctx)
{
    const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};
    size_t done;
    unsigned naps = 0;
    while ((done = atomic_load(&crew->done)) < crew->n) {
        nanosleep(&moment, NULL);
        if (progress && naps++ % 5 == 0)
            progress(ctx, done, crew->n);
    }
}

int asym_sim_trials_run(struct asym_sim_trial *trials, size_t n, size_t stride, unsigned workers,
                        const volatile sig_atomic_t *stop, void (*progress)(void *ctx, size_t done, size_t all),
                        void *ctx)
{
    struct crew crew = {.trials = trials, .n = n, .stride = stride, .stop = stop};
    pthread_t threads[64];
    unsigned started = 0;
    int r = 0;
    for (size_t i = 0; i < n; i++)
        trials[i].error = -ECANCELED;
    while (started < workers && started < n && started < ASYM_LENGTH(threads)) {
        r = -pthread_create(&threads[started], NULL, work, &crew);
        if (r < 0)
            break;
        started++;
    }
    /* One worker is enough. Without any, the calling thread runs the trials. */
    if (started == 0)
        work(&crew);
    else
        watch(&crew, progress, ctx);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < n; i++)
        if (trials[i].error < 0 && trials[i].error != -ECANCELED)
            return trials[i].error;
    return 0;
}
