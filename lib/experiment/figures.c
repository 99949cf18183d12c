/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "core/task-table.h"
#include "experiment/chart.h"
#include "experiment/measure.h"

/* Draws an experiment as SVG: a bar for each policy with its interval, and which program ran on which CPU in one trial. */

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

static int write_sim_timeline(const struct asym_chart_bars *bars, struct timeline *t, const char *policy, uint64_t seed,
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
    const int r = is_whole ? write_sim_timeline(&chart, t, x->policies[policy]->name, trial->seed, out)
                           : asym_chart_write(&chart, NULL, out);
    return r < 0 || fflush(out) == 0 ? r : -EIO;
}

/*
 * Draws a replay as SVG: a bar for each policy with its share of the running time on fast CPUs, and which program would have been
 * on which CPU under one policy. The figure is filled by the watches of the replay: first that of asym_replay_check, then one for
 * each asym_replay_run.
 */

/*
 * Neighbouring snapshots are alike, so that the interval of a share comes from parts of the record: with 20 parts Student's t is
 * close to that of many, and a part of a minute's record is still 3 s long.
 */
enum { PARTS = 20, NAME = 64 };

struct program {
    struct asym_taskid id; /* of the application */
    double running;        /* us */
    unsigned kind;
    char name[NAME];
};

/* The sums of a replay under a policy. */
struct shares {
    const struct asym_policy *policy;
    double running[PARTS], fast[PARTS]; /* us, by part of the record */
};

struct asym_replay_figure {
    struct asym_table programs;
    double length, at; /* us: of the record; where the replay is */
    unsigned n_cpus;
    struct shares shares[ASYM_REPLAY_MAX_POLICIES];
    size_t n_shares, n_kinds;
    bool ranked;                     /* the programs have kinds */
    const struct asym_policy *drawn; /* the policy of the timeline */
    char kinds[KINDS][NAME];
    struct asym_cpu_timeline timeline;
};

int asym_replay_figure_new(struct asym_replay_figure **ret)
{
    struct asym_replay_figure *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    asym_table_init(&f->programs, sizeof(struct program));
    *ret = f;
    return 0;
}

void asym_replay_figure_free(struct asym_replay_figure *figure)
{
    if (figure)
        asym_table_done(&figure->programs);
    free(figure);
}

/* A program can give its main thread an empty name. */
static const char *name_of(const struct asym_snapshot *s, const struct asym_app *app)
{
    const char *thread = app->n_tasks > 0 ? s->tasks[app->first_task].comm : "";
    const char *name = app->cgroup ? app->cgroup : *app->comm ? app->comm : thread;
    return *name ? name : "(no name)";
}

static int add_running(struct asym_replay_figure *f, const struct asym_snapshot *s, const struct asym_app *app)
{
    struct program *p = asym_table_get(&f->programs, &app->id);
    if (!p)
        return -ENOMEM;
    if (!*p->name)
        snprintf(p->name, sizeof p->name, "%.63s", name_of(s, app));
    for (size_t i = app->first_task; i < app->first_task + app->n_tasks; i++)
        p->running += s->tasks[i].running * (double)s->interval;
    return 0;
}

static int survey(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                  const struct asym_action *actions, size_t n_actions)
{
    struct asym_replay_figure *f = ctx;
    int r = 0;
    (void)number;
    (void)plan;
    (void)actions;
    (void)n_actions;
    f->length += (double)s->interval;
    ASYM_MASK_FOREACH (c, &s->machine->usable)
        f->n_cpus = ASYM_MAX(f->n_cpus, (unsigned)c + 1);
    asym_cpu_timeline_label(&f->timeline, s->machine);
    for (size_t i = 0; r >= 0 && i < s->n_apps; i++)
        r = add_running(f, s, &s->apps[i]);
    return r;
}

struct asym_replay_watch asym_replay_figure_survey(struct asym_replay_figure *figure)
{
    return (struct asym_replay_watch){.plan = survey, .ctx = figure};
}

static int by_name(const void *a, const void *b)
{
    const struct program *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_running(const void *a, const void *b)
{
    const struct program *x = a, *y = b;
    return x->running < y->running ? 1 : x->running > y->running ? -1 : strcmp(x->name, y->name);
}

/* Writes the programs of the table to ret, those of one name as one, the longest first. Returns how many. */
static size_t merge_names(const struct asym_table *programs, struct program **sorted, struct program *ret)
{
    size_t n = 0;
    for (uint32_t i = 0; i < programs->n; i++)
        sorted[i] = asym_table_at(programs, i);
    qsort(sorted, programs->n, sizeof(struct program *), by_name);
    for (uint32_t i = 0; i < programs->n; i++) {
        if (n == 0 || strcmp(ret[n - 1].name, sorted[i]->name) != 0)
            ret[n++] = (struct program){.running = 0};
        memcpy(ret[n - 1].name, sorted[i]->name, NAME);
        ret[n - 1].running += sorted[i]->running;
    }
    qsort(ret, n, sizeof *ret, by_running);
    while (n > 0 && !(ret[n - 1].running > 0))
        n--;
    return n;
}

/* The names that ran for longest are kinds; if there are too many, the others share the last kind. */
static int choose_kinds(struct asym_replay_figure *f)
{
    const size_t all = f->programs.n;
    ASYM_AUTO_FREE struct program **sorted = calloc(all + 1, sizeof(struct program *));
    ASYM_AUTO_FREE struct program *names = calloc(all + 1, sizeof *names);
    if (!sorted || !names)
        return -ENOMEM;
    const size_t n = merge_names(&f->programs, sorted, names);
    f->ranked = true;
    f->n_kinds = ASYM_MIN(n, (size_t)KINDS);
    for (size_t k = 0; k < f->n_kinds; k++)
        memcpy(f->kinds[k], names[k].name, NAME);
    if (n > KINDS)
        snprintf(f->kinds[KINDS - 1], NAME, "other programs");
    for (uint32_t i = 0; i < all; i++) {
        struct program *p = asym_table_at(&f->programs, i);
        while (p->kind + 1 < f->n_kinds && strcmp(f->kinds[p->kind], p->name) != 0)
            p->kind++;
    }
    return 0;
}

static void draw(struct asym_replay_figure *f, const struct asym_snapshot *s)
{
    const double to = f->at + (double)s->interval;
    for (size_t i = 0; i < s->n_apps; i++) {
        const struct asym_app *app = &s->apps[i];
        const struct program *p = asym_table_find(&f->programs, &app->id);
        for (size_t t = app->first_task; p && t < app->first_task + app->n_tasks; t++)
            if (s->tasks[t].running > 0)
                asym_cpu_timeline_add(&f->timeline, s->tasks[t].cpu, p->kind, f->at, to, s->tasks[t].running);
    }
}

static int add_snapshot(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                        const struct asym_action *actions, size_t n_actions)
{
    struct asym_replay_figure *f = ctx;
    struct shares *sums = &f->shares[f->n_shares - 1];
    const double middle = f->at + (double)s->interval / 2;
    const size_t part = f->length > 0 ? ASYM_MIN((size_t)(middle * PARTS / f->length), (size_t)PARTS - 1) : 0;
    (void)number;
    (void)plan;
    (void)actions;
    (void)n_actions;
    for (size_t i = 0; i < s->n_tasks; i++) {
        const double ran = s->tasks[i].running * (double)s->interval;
        sums->running[part] += ran;
        sums->fast[part] += asym_mask_has(&s->machine->fast, s->tasks[i].cpu) ? ran : 0;
    }
    int r = 0;
    if (!f->ranked)
        r = choose_kinds(f);
    if (f->drawn == sums->policy && f->length > 0)
        draw(f, s);
    f->at += (double)s->interval;
    return r;
}

struct asym_replay_watch asym_replay_figure_watch(struct asym_replay_figure *figure, const struct asym_policy *policy,
                                                  bool drawn)
{
    struct asym_replay_figure *f = figure;
    f->shares[f->n_shares++] = (struct shares){.policy = policy};
    f->at = 0;
    f->timeline.length = f->length;
    if (drawn)
        f->drawn = policy;
    return (struct asym_replay_watch){.plan = add_snapshot, .ctx = f};
}

void asym_replay_figure_drop(struct asym_replay_figure *figure)
{
    struct asym_replay_figure *f = figure;
    if (f->n_shares == 0)
        return;
    f->n_shares--;
    if (f->drawn == f->shares[f->n_shares].policy)
        f->drawn = NULL;
}

/* The interval is that of a ratio of two means, over the parts in which something ran. */
static struct asym_chart_bar bar_of(const struct shares *s)
{
    double running = 0, fast = 0, rest[PARTS];
    size_t n = 0;
    for (size_t i = 0; i < PARTS; i++) {
        running += s->running[i];
        fast += s->fast[i];
    }
    const double share = running > 0 ? fast / running : (double)NAN;
    for (size_t i = 0; i < PARTS; i++)
        if (s->running[i] > 0)
            rest[n++] = s->fast[i] - share * s->running[i];
    for (size_t i = 0; i < n; i++)
        rest[i] *= (double)n / running;
    return (struct asym_chart_bar){asym_replay_row_name(s->policy), 100 * share,
                                   100 * asym_measure_confidence(rest, n)};
}

static int write_replay_timeline(struct asym_replay_figure *f, const struct asym_chart_bars *bars, FILE *out)
{
    const char *kinds[KINDS];
    char title[160];
    for (size_t k = 0; k < f->n_kinds; k++)
        kinds[k] = f->kinds[k];
    snprintf(title, sizeof title, "What ran on each CPU, as %s would have placed it", f->drawn->name);
    if (strcmp(f->drawn->name, "none") == 0)
        snprintf(title, sizeof title, "What ran on each CPU");
    const struct asym_cpu_timeline_text text = {
        .title = title, .seconds = f->length / ASYM_SEC, .n_cpus = f->n_cpus, .kinds = kinds, .n_kinds = f->n_kinds};
    return asym_cpu_timeline_write(&f->timeline, bars, &text, out);
}

int asym_replay_figure_write(struct asym_replay_figure *figure, const char *name, const char *path)
{
    struct asym_replay_figure *f = figure;
    struct asym_chart_bar bars[ASYM_REPLAY_MAX_POLICIES];
    char title[320];
    for (size_t i = 0; i < f->n_shares; i++)
        bars[i] = bar_of(&f->shares[i]);
    snprintf(title, sizeof title, "%.200s: %.1f s, replayed", name, f->length / ASYM_SEC);
    const struct asym_chart_bars chart = {
        .title = title,
        .axis = "share of the running time on fast CPUs in % (95 % interval, by twentieths of the record)",
        .bars = bars,
        .n = f->n_shares};
    ASYM_AUTO_FCLOSE FILE *out = fopen(path, "we");
    if (!out)
        return -errno;
    const bool has_timeline = f->drawn && f->length > 0 && f->n_cpus > 0;
    const int r = has_timeline ? write_replay_timeline(f, &chart, out) : asym_chart_write(&chart, NULL, out);
    return r < 0 || fflush(out) == 0 ? r : -EIO;
}
