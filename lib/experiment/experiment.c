/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/experiment.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "app/cycle.h"
#include "base/clock.h"
#include "base/macro.h"

/* Bytes per simulated thread, with the engine's state for it: 1240 measured (smt-sos). */
#define THREAD_BYTES 1536u

static void free_sim(struct asym_sim **s)
{
    asym_sim_free(*s);
}

static int drive(struct asym_sim_trial *t, struct asym_sim *sim, struct asym_cycle *cycle,
                 const volatile sig_atomic_t *stop)
{
    int r;
    asym_sim_hear(sim, t->policy->serves_alone || t->policy->exchange, t->policy->serves_alone);
    while ((r = asym_cycle_plan(cycle)) > 0) {
        t->planned += cycle->plan->n_tasks;
        t->plan_cpu = cycle->plan_cpu;
        if (t->watch)
            t->watch->planned(t->watch->ctx, &cycle->snapshot, cycle->plan);
        r = *stop ? -ECANCELED : asym_cycle_enforce(cycle);
        asym_sim_source(sim, asym_cycle_wait(cycle, t->scenario->settings->daemon.interval));
        if (r < 0)
            break;
    }
    return r;
}

static int run(struct asym_sim_trial *t, const volatile sig_atomic_t *stop)
{
    ASYM_CLEANUP(free_sim) struct asym_sim *sim = NULL;
    ASYM_CLEANUP(asym_cycle_done) struct asym_cycle cycle = {.engine = NULL};
    const struct asym_engine_config config = asym_settings_engine_config(t->scenario->settings, t->policy);
    int r = asym_sim_new(t->scenario, t->only, t->seed, &sim);
    if (r >= 0)
        r = asym_cycle_init(&cycle, &config, asym_sim_source(sim, t->scenario->settings->daemon.interval),
                            asym_sim_actuator(sim));
    if (r < 0)
        return r;
    if (t->watch)
        asym_sim_trace(sim, &t->watch->sim);
    asym_sim_stop_on(sim, stop);
    r = drive(t, sim, &cycle, stop);
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
    size_t done;
    unsigned naps = 0;
    while ((done = atomic_load(&crew->done)) < crew->n) {
        asym_clock_sleep(20 * ASYM_MSEC);
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

/* No seed is left out. */
#define NO_SEED UINT_MAX

static bool is_alone_wanted(const struct asym_experiment *x)
{
    return x->scenario->run.alone && x->scenario->n_programs <= ASYM_SIM_MAX_PROGRAMS;
}

int asym_experiment_init(struct asym_experiment *x)
{
    const size_t n_alone = is_alone_wanted(x) ? x->scenario->n_programs : 0;
    const struct asym_policy *stock = asym_policy_find("none");
    x->n_trials = (x->n_policies + n_alone) * x->repeat;
    x->trials = calloc(x->n_trials, sizeof *x->trials);
    if (!x->trials)
        return -ENOMEM;
    for (size_t i = 0; i < x->n_trials; i++) {
        const size_t row = i / x->repeat;
        x->trials[i] = (struct asym_sim_trial){
            .scenario = x->scenario,
            .policy = row < x->n_policies ? x->policies[row] : stock,
            .only = row < x->n_policies ? -1 : (int)(row - x->n_policies),
            .seed = x->seed + i % x->repeat,
            .error = -ECANCELED,
        };
    }
    return 0;
}

void asym_experiment_done(struct asym_experiment *x)
{
    free(x->trials);
    x->trials = NULL;
}

size_t asym_experiment_finished(const struct asym_experiment *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_trials; i++)
        n += x->trials[i].error == 0;
    return n;
}

/* The performance of one instance of a program; a program that runs alone has one instance. */
static double performance(const struct asym_sim_trial *t, unsigned i)
{
    const struct asym_sim_program *program = &t->scenario->programs[i];
    const struct asym_sim_tally *tally = &t->tally[i];
    if (t->error != 0)
        return (double)NAN;
    if (program->passes == UINT_MAX)
        return asym_measure_over(tally->work, t->seconds) / (t->only < 0 ? program->count : 1);
    return tally->ended > 0 ? tally->ended / tally->times : (double)NAN;
}

/* The performance of each program alone under the stock scheduler: the mean over the seeds without the seed left_out. */
static void get_alone(const struct asym_experiment *x, unsigned left_out, double ret[ASYM_SIM_MAX_PROGRAMS])
{
    double values[ASYM_EXPERIMENT_MAX_REPEAT];
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++) {
        size_t n = 0;
        for (unsigned k = 0; is_alone_wanted(x) && k < x->repeat; k++) {
            const double p = performance(&x->trials[(x->n_policies + i) * x->repeat + k], i);
            if (!isnan(p) && k != left_out)
                values[n++] = p;
        }
        ret[i] = asym_measure_mean(values, n);
    }
}

static double over_programs(enum asym_figure figure, const struct asym_sim_trial *t, const double alone[])
{
    double speedup[ASYM_SIM_MAX_PROGRAMS], worst = INFINITY;
    const unsigned n = ASYM_MIN(t->scenario->n_programs, (unsigned)ASYM_SIM_MAX_PROGRAMS);
    for (unsigned i = 0; i < n; i++) {
        speedup[i] = asym_measure_over(performance(t, i), alone[i]);
        worst = speedup[i] >= worst ? worst : speedup[i];
    }
    if (figure == ASYM_FIGURE_FAIRNESS)
        return asym_measure_fairness(speedup, n);
    return figure == ASYM_FIGURE_WORST_SPEEDUP ? worst : asym_measure_mean(speedup, n);
}

static double turnaround(const struct asym_sim_trial *t)
{
    double times[ASYM_SIM_MAX_PROGRAMS], ended[ASYM_SIM_MAX_PROGRAMS];
    const unsigned n = ASYM_MIN(t->scenario->n_programs, (unsigned)ASYM_SIM_MAX_PROGRAMS);
    for (unsigned i = 0; i < n; i++) {
        times[i] = t->tally[i].times;
        ended[i] = t->tally[i].ended;
    }
    return asym_measure_turnaround(times, ended, n);
}

static double planning(const struct asym_sim_trial *t, enum asym_figure figure)
{
    const double snapshots = (double)t->totals.snapshots;
    if (figure == ASYM_FIGURE_PLANS)
        return asym_measure_over(snapshots, t->seconds);
    return asym_measure_over(figure == ASYM_FIGURE_PLANNED ? (double)t->planned : (double)t->plan_cpu, snapshots);
}

static double over_all(const struct asym_sim_trial *t, enum asym_figure figure)
{
    double sum = 0, last = 0;
    for (unsigned i = 0; i < t->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++) {
        sum += t->tally[i].work;
        last = ASYM_MAX(last, t->tally[i].last_end);
    }
    if (figure == ASYM_FIGURE_TOTAL)
        return last > 0 ? last : (double)NAN;
    if (figure == ASYM_FIGURE_BUSY)
        sum = t->totals.busy / asym_scenario_cpus(t->scenario);
    else if (figure == ASYM_FIGURE_CHANGES)
        sum = (double)t->totals.actions;
    else if (figure == ASYM_FIGURE_MIGRATIONS)
        sum = (double)t->totals.migrations;
    return asym_measure_over(sum, t->seconds);
}

static double of_program(enum asym_figure figure, const struct asym_sim_trial *t, const double alone[], unsigned i)
{
    const struct asym_sim_tally *tally = &t->tally[i];
    if (figure == ASYM_FIGURE_PERFORMANCE)
        return performance(t, i);
    if (figure == ASYM_FIGURE_SPEEDUP)
        return asym_measure_over(performance(t, i), alone[i]);
    if (figure == ASYM_FIGURE_TURNED_AWAY)
        return tally->turned_away;
    if (tally->ended == 0)
        return (double)NAN;
    if (figure == ASYM_FIGURE_GEOMEAN)
        return exp(tally->log_times / tally->ended);
    return (figure == ASYM_FIGURE_RUN_TIME ? tally->times : tally->cpu_ended) / tally->ended;
}

static double of_trial(enum asym_figure figure, const struct asym_sim_trial *t, const double alone[], unsigned i)
{
    if (t->error != 0)
        return (double)NAN;
    switch (figure) {
    case ASYM_FIGURE_MEAN_SPEEDUP:
    case ASYM_FIGURE_WORST_SPEEDUP:
    case ASYM_FIGURE_FAIRNESS:
        return over_programs(figure, t, alone);
    case ASYM_FIGURE_THROUGHPUT:
    case ASYM_FIGURE_MIGRATIONS:
    case ASYM_FIGURE_CHANGES:
    case ASYM_FIGURE_TOTAL:
    case ASYM_FIGURE_BUSY:
        return over_all(t, figure);
    case ASYM_FIGURE_TURNAROUND:
        return turnaround(t);
    case ASYM_FIGURE_PLANS:
    case ASYM_FIGURE_PLANNED:
    case ASYM_FIGURE_PLAN_CPU:
        return planning(t, figure);
    case ASYM_FIGURE_PERFORMANCE:
    case ASYM_FIGURE_SPEEDUP:
    case ASYM_FIGURE_RUN_TIME:
    case ASYM_FIGURE_CPU_TIME:
    case ASYM_FIGURE_GEOMEAN:
    case ASYM_FIGURE_TURNED_AWAY:
    case ASYM_FIGURES_END:
        break;
    }
    return of_program(figure, t, alone, i);
}

double asym_experiment_value(const struct asym_experiment *x, enum asym_figure figure, size_t policy, unsigned k,
                             unsigned i)
{
    double alone[ASYM_SIM_MAX_PROGRAMS];
    get_alone(x, NO_SEED, alone);
    return of_trial(figure, &x->trials[policy * x->repeat + k], alone, i);
}

/* The trials that a statistic is of. */
struct subject {
    enum asym_figure figure;
    size_t policy;
    unsigned program;
};

/* A statistic of all seeds but left_out. */
typedef double statistic(const struct asym_experiment *x, const struct subject *s, unsigned left_out);

/* Returns whether a seed has a value of its own in the statistic. */
typedef bool in_statistic(const struct asym_experiment *x, const struct subject *s, unsigned k);

static bool has_value(const struct asym_experiment *x, const struct subject *s, unsigned k)
{
    return !isnan(asym_experiment_value(x, s->figure, s->policy, k, s->program));
}

static bool has_pair(const struct asym_experiment *x, const struct subject *s, unsigned k)
{
    return has_value(x, s, k) && !isnan(asym_experiment_value(x, s->figure, 0, k, s->program));
}

static bool has_finished(const struct asym_experiment *x, const struct subject *s, unsigned k)
{
    return x->trials[s->policy * x->repeat + k].error == 0;
}

static unsigned count_seeds(const struct asym_experiment *x, const struct subject *s, in_statistic *has)
{
    unsigned n = 0;
    for (unsigned k = 0; k < x->repeat; k++)
        n += has(x, s, k);
    return n;
}

/*
 * Half the width of the 95 % interval of a statistic, from the mean of its pseudo-values. Each of them leaves out all trials of
 * one seed, those of the programs alone, too.
 */
static double jackknife(const struct asym_experiment *x, const struct subject *s, statistic *get, in_statistic *has)
{
    double values[ASYM_EXPERIMENT_MAX_REPEAT];
    const double all = get(x, s, NO_SEED);
    const unsigned n = count_seeds(x, s, has);
    unsigned n_values = 0;
    for (unsigned k = 0; n > 1 && k < x->repeat; k++)
        if (has(x, s, k))
            values[n_values++] = n * all - (n - 1) * get(x, s, k);
    return asym_measure_confidence(values, n_values);
}

static double mean_without(const struct asym_experiment *x, const struct subject *s, unsigned left_out)
{
    double values[ASYM_EXPERIMENT_MAX_REPEAT], alone[ASYM_SIM_MAX_PROGRAMS];
    size_t n = 0;
    get_alone(x, left_out, alone);
    for (unsigned k = 0; k < x->repeat; k++) {
        const double v = of_trial(s->figure, &x->trials[s->policy * x->repeat + k], alone, s->program);
        if (!isnan(v) && k != left_out)
            values[n++] = v;
    }
    return asym_measure_mean(values, n);
}

enum asym_figure asym_experiment_compared(const struct asym_experiment *x)
{
    const struct asym_estimate e = asym_experiment_estimate(x, ASYM_FIGURE_MEAN_SPEEDUP, 0, 0);
    return e.n > 0 ? ASYM_FIGURE_MEAN_SPEEDUP : ASYM_FIGURE_THROUGHPUT;
}

static bool is_relative_to_alone(enum asym_figure figure)
{
    return figure == ASYM_FIGURE_MEAN_SPEEDUP || figure == ASYM_FIGURE_WORST_SPEEDUP ||
           figure == ASYM_FIGURE_FAIRNESS || figure == ASYM_FIGURE_SPEEDUP;
}

struct asym_estimate asym_experiment_estimate(const struct asym_experiment *x, enum asym_figure figure, size_t policy,
                                              unsigned i)
{
    double values[ASYM_EXPERIMENT_MAX_REPEAT], alone[ASYM_SIM_MAX_PROGRAMS];
    const struct subject s = {figure, policy, i};
    struct asym_estimate e = {.n = 0};
    get_alone(x, NO_SEED, alone);
    for (unsigned k = 0; k < x->repeat; k++) {
        const double v = of_trial(figure, &x->trials[policy * x->repeat + k], alone, i);
        if (!isnan(v))
            values[e.n++] = v;
    }
    e.mean = asym_measure_mean(values, e.n);
    e.confidence = is_relative_to_alone(figure) ? jackknife(x, &s, mean_without, has_value)
                                                : asym_measure_confidence(values, e.n);
    return e;
}

/* In %, over the seeds that finished under both. */
static double gain_without(const struct asym_experiment *x, const struct subject *s, unsigned left_out)
{
    double stock[ASYM_EXPERIMENT_MAX_REPEAT], other[ASYM_EXPERIMENT_MAX_REPEAT], alone[ASYM_SIM_MAX_PROGRAMS];
    size_t n = 0;
    get_alone(x, left_out, alone);
    for (unsigned k = 0; k < x->repeat; k++) {
        stock[n] = of_trial(s->figure, &x->trials[k], alone, s->program);
        other[n] = of_trial(s->figure, &x->trials[s->policy * x->repeat + k], alone, s->program);
        n += !isnan(stock[n]) && !isnan(other[n]) && k != left_out;
    }
    const double base = asym_measure_mean(stock, n);
    return base > 0 ? 100 * (asym_measure_mean(other, n) / base - 1) : (double)NAN;
}

struct asym_estimate asym_experiment_against_stock(const struct asym_experiment *x, enum asym_figure figure,
                                                   size_t policy, unsigned i)
{
    const struct subject s = {figure, policy, i};
    struct asym_estimate e = {.mean = (double)NAN, .confidence = (double)NAN};
    if (policy == 0)
        return e;
    e.mean = gain_without(x, &s, NO_SEED);
    if (isnan(e.mean))
        return e;
    e.n = count_seeds(x, &s, has_pair);
    e.confidence = jackknife(x, &s, gain_without, has_pair);
    return e;
}

static double jitter_without(const struct asym_experiment *x, const struct subject *s, unsigned left_out)
{
    double times[ASYM_EXPERIMENT_MAX_REPEAT], jitters[ASYM_SIM_MAX_PROGRAMS];
    size_t m = 0;
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++) {
        size_t n = 0;
        for (unsigned k = 0; k < x->repeat; k++) {
            const double p = performance(&x->trials[s->policy * x->repeat + k], i);
            if (p > 0 && k != left_out)
                times[n++] = 1 / p;
        }
        if (n > 1)
            jitters[m++] = asym_measure_jitter(times, n);
    }
    return asym_measure_mean(jitters, m);
}

struct asym_estimate asym_experiment_jitter(const struct asym_experiment *x, size_t policy)
{
    const struct subject s = {.policy = policy};
    return (struct asym_estimate){.n = count_seeds(x, &s, has_finished),
                                  .mean = jitter_without(x, &s, NO_SEED),
                                  .confidence = jackknife(x, &s, jitter_without, has_finished)};
}
