/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/experiment.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/macro.h"
#include "measure/measure.h"

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

/* Of one instance of a program: one that runs alone is one, too. */
static double performance(const struct asym_sim_trial *t, unsigned i)
{
    const struct asym_sim_program *program = &t->scenario->programs[i];
    const struct asym_sim_tally *tally = &t->tally[i];
    if (t->error != 0)
        return (double)NAN;
    if (program->passes == UINT_MAX)
        return asym_measure_throughput(tally->work, t->seconds) / (t->only < 0 ? program->count : 1);
    return tally->ended > 0 ? tally->ended / tally->times : (double)NAN;
}

/* Mean over the seeds: what it does alone is the yardstick, not a sample. */
static double performance_alone(const struct asym_experiment *x, unsigned i)
{
    double values[ASYM_EXPERIMENT_MAX_REPEAT];
    size_t n = 0;
    for (unsigned k = 0; is_alone_wanted(x) && k < x->repeat; k++) {
        const double p = performance(&x->trials[(x->n_policies + i) * x->repeat + k], i);
        if (!isnan(p))
            values[n++] = p;
    }
    return asym_measure_mean(values, n);
}

static double over_programs(const struct asym_experiment *x, enum asym_figure figure, const struct asym_sim_trial *t)
{
    double speedup[ASYM_SIM_MAX_PROGRAMS], worst = INFINITY;
    const unsigned n = ASYM_MIN(x->scenario->n_programs, (unsigned)ASYM_SIM_MAX_PROGRAMS);
    for (unsigned i = 0; i < n; i++) {
        speedup[i] = asym_measure_speedup(performance(t, i), performance_alone(x, i));
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
    const double looks = (double)t->totals.looks;
    if (figure == ASYM_FIGURE_PLANS)
        return asym_measure_throughput(looks, t->seconds);
    return asym_measure_throughput(figure == ASYM_FIGURE_PLANNED ? (double)t->planned : (double)t->plan_cpu, looks);
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
    if (figure == ASYM_FIGURE_CHANGES)
        sum = (double)t->totals.actions;
    else if (figure == ASYM_FIGURE_MIGRATIONS)
        sum = (double)(t->totals.migrations[0] + t->totals.migrations[1] + t->totals.migrations[2]);
    return asym_measure_throughput(sum, t->seconds);
}

static double of_program(const struct asym_experiment *x, enum asym_figure figure, const struct asym_sim_trial *t,
                         unsigned i)
{
    const struct asym_sim_tally *tally = &t->tally[i];
    if (figure == ASYM_FIGURE_PERFORMANCE)
        return performance(t, i);
    if (figure == ASYM_FIGURE_SPEEDUP)
        return asym_measure_speedup(performance(t, i), performance_alone(x, i));
    if (figure == ASYM_FIGURE_TURNED_AWAY)
        return tally->turned_away;
    if (tally->ended == 0)
        return (double)NAN;
    if (figure == ASYM_FIGURE_GEOMEAN)
        return exp(tally->log_times / tally->ended);
    return (figure == ASYM_FIGURE_RUN_TIME ? tally->times : tally->cpu_ended) / tally->ended;
}

double asym_experiment_value(const struct asym_experiment *x, enum asym_figure figure, size_t policy, unsigned k,
                             unsigned i)
{
    const struct asym_sim_trial *t = &x->trials[policy * x->repeat + k];
    if (t->error != 0)
        return (double)NAN;
    switch (figure) {
    case ASYM_FIGURE_MEAN_SPEEDUP:
    case ASYM_FIGURE_WORST_SPEEDUP:
    case ASYM_FIGURE_FAIRNESS:
        return over_programs(x, figure, t);
    case ASYM_FIGURE_THROUGHPUT:
    case ASYM_FIGURE_MIGRATIONS:
    case ASYM_FIGURE_CHANGES:
    case ASYM_FIGURE_TOTAL:
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
    return of_program(x, figure, t, i);
}

struct asym_estimate asym_experiment_estimate(const struct asym_experiment *x, enum asym_figure figure, size_t policy,
                                              unsigned i)
{
    double values[ASYM_EXPERIMENT_MAX_REPEAT];
    struct asym_estimate e = {.least = INFINITY, .most = -INFINITY};
    for (unsigned k = 0; k < x->repeat; k++) {
        const double v = asym_experiment_value(x, figure, policy, k, i);
        if (isnan(v))
            continue;
        values[e.n++] = v;
        e.least = ASYM_MIN(e.least, v);
        e.most = ASYM_MAX(e.most, v);
    }
    e.mean = asym_measure_mean(values, e.n);
    e.confidence = asym_measure_confidence(values, e.n);
    return e;
}

/* Without seed number left_out. */
static double jitter(const struct asym_experiment *x, size_t policy, unsigned left_out)
{
    double times[ASYM_EXPERIMENT_MAX_REPEAT], jitters[ASYM_SIM_MAX_PROGRAMS];
    size_t m = 0;
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++) {
        size_t n = 0;
        for (unsigned k = 0; k < x->repeat; k++) {
            const double p = performance(&x->trials[policy * x->repeat + k], i);
            if (p > 0 && k != left_out)
                times[n++] = 1 / p;
        }
        if (n > 1)
            jitters[m++] = asym_measure_jitter(times, n);
    }
    return asym_measure_mean(jitters, m);
}

double asym_experiment_jitter(const struct asym_experiment *x, size_t policy)
{
    return jitter(x, policy, UINT_MAX);
}

double asym_experiment_jitter_confidence(const struct asym_experiment *x, size_t policy)
{
    double values[ASYM_EXPERIMENT_MAX_REPEAT];
    const double all = jitter(x, policy, UINT_MAX);
    unsigned n = 0, n_done = 0;
    for (unsigned k = 0; k < x->repeat; k++)
        n_done += x->trials[policy * x->repeat + k].error == 0;
    for (unsigned k = 0; n_done > 2 && k < x->repeat; k++)
        if (x->trials[policy * x->repeat + k].error == 0)
            values[n++] = n_done * all - (n_done - 1) * jitter(x, policy, k);
    return asym_measure_confidence(values, n);
}
