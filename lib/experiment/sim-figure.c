/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/sim-figure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "experiment/cpu-timeline.h"

enum { ROWS = ASYM_CHART_MAX_ROWS, KINDS = ASYM_CHART_MAX_KINDS };

/* The threads that run on each CPU, in the time of the simulation. */
struct timeline {
    const struct asym_scenario *scenario;
    uint64_t end, since[ROWS]; /* ns */
    unsigned char runs[ROWS];  /* 0: idle; else 1 + the kind that runs there now */
    bool labelled;
    struct asym_cpu_timeline cpus;
};

/* Each of the first programs is a kind of its own; if there are too many, the others share the last kind. */
static unsigned kind_of(const struct asym_scenario *s, const char *program)
{
    unsigned i = 0;
    while (i + 1 < ASYM_MIN(s->n_programs, (unsigned)KINDS) && strcmp(s->programs[i].name, program) != 0)
        i++;
    return i;
}

static void account(struct timeline *t, int cpu, uint64_t until)
{
    if (t->runs[cpu] > 0)
        asym_cpu_timeline_add(&t->cpus, cpu, t->runs[cpu] - 1u, (double)t->since[cpu], (double)until, 1);
    t->runs[cpu] = 0;
}

static void on_event(void *ctx, const struct asym_sim_event *e)
{
    struct timeline *t = ctx;
    if (e->cpu < 0 || e->cpu >= ROWS || (e->kind != ASYM_SIM_RUNS && e->kind != ASYM_SIM_STOPS))
        return;
    account(t, e->cpu, e->at);
    if (e->kind == ASYM_SIM_RUNS) {
        t->runs[e->cpu] = (unsigned char)(1 + kind_of(t->scenario, e->program));
        t->since[e->cpu] = e->at;
    }
}

static void on_plan(void *ctx, const struct asym_snapshot *s, const struct asym_plan *plan)
{
    struct timeline *t = ctx;
    (void)plan;
    if (!t->labelled)
        asym_cpu_timeline_label(&t->cpus, s->machine);
    t->labelled = true;
}

static int record(const struct asym_sim_trial *trial, struct timeline *t, const volatile sig_atomic_t *stop)
{
    const struct asym_sim_watch watch = {.sim = {.event = on_event, .ctx = t}, .planned = on_plan, .ctx = t};
    struct asym_sim_trial copy = *trial;
    copy.watch = &watch;
    t->scenario = trial->scenario;
    t->end = (uint64_t)(trial->seconds * 1e9);
    t->cpus.length = ASYM_MAX((double)t->end, 1.0);
    asym_sim_trial_run(&copy, stop);
    for (int c = 0; c < ROWS; c++)
        account(t, c, t->end);
    return copy.error;
}

static int write_timeline(const struct asym_chart_bars *bars, struct timeline *t, const char *policy, uint64_t seed,
                          FILE *out)
{
    const struct asym_scenario *s = t->scenario;
    const char *kinds[KINDS];
    char title[128];
    const size_t n_kinds = ASYM_MIN(s->n_programs, (unsigned)KINDS);
    for (size_t k = 0; k < n_kinds; k++)
        kinds[k] = s->n_programs > KINDS && k + 1 == KINDS ? "other programs" : s->programs[k].name;
    snprintf(title, sizeof title, "What ran on each CPU under %s, seed %llu", policy, (unsigned long long)seed);
    const struct asym_cpu_timeline_text text = {.title = title,
                                                .seconds = (double)t->end * 1e-9,
                                                .n_cpus = asym_scenario_cpus(s),
                                                .kinds = kinds,
                                                .n_kinds = n_kinds};
    return asym_cpu_timeline_write(&t->cpus, bars, &text, out);
}

int asym_sim_figure_write(const struct asym_experiment *x, size_t policy, const char *name, const char *path,
                          const volatile sig_atomic_t *stop)
{
    ASYM_AUTO_FREE struct timeline *t = calloc(1, sizeof *t);
    struct asym_chart_bar bars[ASYM_EXPERIMENT_MAX_POLICIES];
    const struct asym_sim_trial *trial = &x->trials[policy * x->repeat];
    const enum asym_figure figure = asym_experiment_compared(x);
    const bool is_speedup = figure == ASYM_FIGURE_MEAN_SPEEDUP;
    const double unit = is_speedup ? 1 : 1e-9;
    char title[320];
    if (!t)
        return -ENOMEM;
    for (size_t p = 0; p < x->n_policies; p++) {
        const struct asym_estimate e = asym_experiment_estimate(x, figure, p, 0);
        bars[p] = (struct asym_chart_bar){x->policies[p]->name, e.mean * unit, e.confidence * unit};
    }
    snprintf(title, sizeof title, "%.200s: %zu of %zu trials", name, asym_experiment_finished(x), x->n_trials);
    const struct asym_chart_bars chart = {
        .title = title,
        .axis = is_speedup ? "mean speedup of the programs, over what each does alone under none (95 % interval)"
                           : "throughput in G instructions/s (95 % interval)",
        .bars = bars,
        .n = x->n_policies};
    const bool is_whole = trial->error == 0 && trial->seconds > 0 && record(trial, t, stop) == 0;
    ASYM_AUTO_FCLOSE FILE *out = fopen(path, "we");
    if (!out)
        return -errno;
    const int r = is_whole ? write_timeline(&chart, t, x->policies[policy]->name, trial->seed, out)
                           : asym_chart_write(&chart, NULL, out);
    return r < 0 || fflush(out) == 0 ? r : -EIO;
}
