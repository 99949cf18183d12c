/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What came of an experiment, for people and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "daemon/columns.h"
#include "daemon/experiment.h"
#include "daemon/json.h"

/* Figures with what people and programs call them; a column each where they have a title. */
static const struct {
    enum asym_figure figure;
    const char *key, *title;
    size_t width;
    double unit;
    int decimals;
} columns[] = {
    {ASYM_FIGURE_THROUGHPUT, "throughput", "G instr/s", 16, 1e-9, 3},
    {ASYM_FIGURE_MEAN_SPEEDUP, "mean_speedup", "speedup", 15, 1, 3},
    {ASYM_FIGURE_WORST_SPEEDUP, "worst_speedup", "worst", 7, 1, 3},
    {ASYM_FIGURE_FAIRNESS, "fairness", "fairness", 10, 1, 3},
    {ASYM_FIGURE_MIGRATIONS, "migrations_per_s", "moves/s", 9, 1, 1},
    {ASYM_FIGURE_CHANGES, "changes_per_s", "sets/s", 8, 1, 1},
    {ASYM_FIGURE_TURNAROUND, "turnaround_s", "turn s", 8, 1, 3},
    {ASYM_FIGURE_TOTAL, "total_s", NULL, 0, 1, 3},
    {ASYM_FIGURE_PLANS, "plans_per_s", NULL, 0, 1, 1},
    {ASYM_FIGURE_PLANNED, "threads_per_plan", NULL, 0, 1, 1},
};

/* What planning costs; the last one only where it is asked for. */
static const struct {
    enum asym_figure figure;
    const char *title;
    int decimals;
} costs[] = {
    {ASYM_FIGURE_PLANS, "plans/s", 1},
    {ASYM_FIGURE_PLANNED, "threads a plan", 1},
    {ASYM_FIGURE_CHANGES, "sets/s", 1},
    {ASYM_FIGURE_PLAN_CPU, "us of CPU a plan", 2},
};

static const struct {
    enum asym_figure figure;
    const char *key;
} rows[] = {
    {ASYM_FIGURE_PERFORMANCE, "performance"},      {ASYM_FIGURE_SPEEDUP, "speedup"},
    {ASYM_FIGURE_RUN_TIME, "run_time_s"},          {ASYM_FIGURE_CPU_TIME, "cpu_time_s"},
    {ASYM_FIGURE_GEOMEAN, "run_time_geometric_s"}, {ASYM_FIGURE_TURNED_AWAY, "turned_away"},
};

static const char *number(double x, int decimals, char *buf, size_t size)
{
    if (isnan(x))
        snprintf(buf, size, "-");
    else
        snprintf(buf, size, "%.*f", decimals, x);
    return buf;
}

/* With how sure it is, where there is room and anything is known of that: one run tells nothing. */
static const char *estimate(struct asym_estimate e, double unit, int decimals, bool room, char *buf, size_t size)
{
    char mean[32], sure[32];
    number(e.mean * unit, decimals, mean, sizeof mean);
    if (!room || isnan(e.confidence))
        snprintf(buf, size, "%s", mean);
    else
        snprintf(buf, size, "%s +-%s", mean, number(e.confidence * unit, decimals, sure, sizeof sure));
    return buf;
}

static bool has_room(size_t column)
{
    return columns[column].width >= 15;
}

/* Only the two widest columns have room for how sure they are; for the others see print_sure. */
static const char *cell(const struct asym_experiment *x, size_t column, size_t policy, char *buf, size_t size)
{
    return estimate(asym_experiment_estimate(x, columns[column].figure, policy, 0), columns[column].unit,
                    columns[column].decimals, has_room(column), buf, size);
}

static void print_head(const struct asym_experiment *x, const char *name, FILE *out)
{
    const struct asym_sim_machine *m = &x->scenario->machine;
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "%.200s: S = (", name);
    for (unsigned k = 0; k < m->n_types; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", k ? ", " : "", m->counts[k]);
    used += (size_t)snprintf(text + used, sizeof text - used, "; ");
    for (unsigned k = 0; k < m->n_types; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%g", k ? ", " : "", m->speeds[k]);
    snprintf(text + used, sizeof text - used, "), %u CPUs, %zu threads; %zu of %zu trials, %u seeds from %" PRIu64,
             asym_scenario_cpus(x->scenario), asym_scenario_threads(x->scenario), asym_experiment_finished(x),
             x->n_trials, x->repeat, x->seed);
    asym_columns_wrap(out, text, 0, 2);
    fputs("\n\n", out);
}

static void print_policies(const struct asym_experiment *x, FILE *out)
{
    char text[96];
    asym_columns_cell(out, "policy", 16, NULL);
    for (size_t c = 0; c < ASYM_LENGTH(columns); c++)
        if (columns[c].title)
            asym_columns_cell(out, columns[c].title, columns[c].width, NULL);
    fputs("jitter\n", out);
    for (size_t p = 0; p < x->n_policies; p++) {
        asym_columns_cell(out, x->policies[p]->name, 16, NULL);
        for (size_t c = 0; c < ASYM_LENGTH(columns); c++)
            if (columns[c].title)
                asym_columns_cell(out, cell(x, c, p, text, sizeof text), columns[c].width, NULL);
        fprintf(out, "%s\n", number(asym_experiment_jitter(x, p), 4, text, sizeof text));
    }
}

/* Half the width of the interval of those columns that had no room for it, below them. */
static void print_sure(const struct asym_experiment *x, FILE *out)
{
    char text[96];
    size_t indent = 16;
    for (size_t c = 0; c < ASYM_LENGTH(columns); c++)
        indent += columns[c].title && has_room(c) ? columns[c].width : 0;
    fputc('\n', out);
    asym_columns_cell(out, "+-", indent, NULL);
    for (size_t c = 0; c < ASYM_LENGTH(columns); c++)
        if (columns[c].title && !has_room(c))
            asym_columns_cell(out, columns[c].title, columns[c].width, NULL);
    fputs("jitter\n", out);
    for (size_t p = 0; p < x->n_policies; p++) {
        asym_columns_cell(out, x->policies[p]->name, indent, NULL);
        for (size_t c = 0; c < ASYM_LENGTH(columns); c++) {
            const double sure = asym_experiment_estimate(x, columns[c].figure, p, 0).confidence * columns[c].unit;
            if (columns[c].title && !has_room(c))
                asym_columns_cell(out, number(sure, columns[c].decimals, text, sizeof text), columns[c].width, NULL);
        }
        fprintf(out, "%s\n", number(asym_experiment_jitter_confidence(x, p), 4, text, sizeof text));
    }
}

static void print_costs(const struct asym_experiment *x, FILE *out)
{
    char text[80];
    fputc('\n', out);
    asym_columns_cell(out, "planning", 16, NULL);
    for (size_t c = 0; c < ASYM_LENGTH(costs); c++)
        asym_columns_cell(out, costs[c].title, c + 1 < ASYM_LENGTH(costs) ? 20 : 0, NULL);
    for (size_t p = 0; p < x->n_policies; p++) {
        fputc('\n', out);
        asym_columns_cell(out, x->policies[p]->name, 16, NULL);
        for (size_t c = 0; c < ASYM_LENGTH(costs); c++) {
            estimate(asym_experiment_estimate(x, costs[c].figure, p, 0), 1, costs[c].decimals, true, text, sizeof text);
            asym_columns_cell(out, text, c + 1 < ASYM_LENGTH(costs) ? 20 : 0, NULL);
        }
    }
    fputc('\n', out);
}

static void print_program(const struct asym_experiment *x, unsigned i, FILE *out)
{
    char cut[64], text[4][48];
    for (size_t p = 0; p < x->n_policies; p++) {
        const struct asym_estimate speedup = asym_experiment_estimate(x, ASYM_FIGURE_SPEEDUP, p, i);
        const struct asym_estimate time = asym_experiment_estimate(x, ASYM_FIGURE_RUN_TIME, p, i);
        asym_columns_cell(out, p == 0 ? asym_columns_cut(x->scenario->programs[i].name, 20, cut, sizeof cut) : "", 22,
                          NULL);
        asym_columns_cell(out, x->policies[p]->name, 18, NULL);
        fprintf(out, "%10s %8s %14s %8s\n", number(speedup.mean, 3, text[0], sizeof text[0]),
                number(speedup.confidence, 3, text[1], sizeof text[1]), number(time.mean, 3, text[2], sizeof text[2]),
                number(time.confidence, 3, text[3], sizeof text[3]));
    }
}

static void print_turned_away(const struct asym_experiment *x, FILE *out)
{
    char text[256], cut[64], n[32];
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++) {
        for (size_t p = 0; p < x->n_policies; p++) {
            const double mean = asym_experiment_estimate(x, ASYM_FIGURE_TURNED_AWAY, p, i).mean;
            if (!(mean > 0))
                continue;
            snprintf(text, sizeof text, "%s, %s: too many waited, and %s jobs a run were turned away",
                     asym_columns_cut(x->scenario->programs[i].name, 20, cut, sizeof cut), x->policies[p]->name,
                     number(mean, 1, n, sizeof n));
            fputc('\n', out);
            asym_columns_wrap(out, text, 0, 2);
            fputc('\n', out);
        }
    }
}

int asym_experiment_text(const struct asym_experiment *x, const char *name, bool cost, FILE *out)
{
    char shown[256];
    print_head(x, asym_text_escape(name, strlen(name), shown, sizeof shown), out);
    print_policies(x, out);
    if (x->repeat > 1)
        print_sure(x, out);
    fprintf(out, "\n%-22s%-18s%10s %8s %14s %8s\n", "program", "policy", "speedup", "+-", "seconds a run", "+-");
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++)
        print_program(x, i, out);
    print_turned_away(x, out);
    if (cost)
        print_costs(x, out);
    return ferror(out) ? -EIO : 0;
}

/* Where there is nothing to say, null: JSON knows no NAN. */
static json_t *exact(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *estimate_json(const struct asym_experiment *x, enum asym_figure figure, size_t policy, unsigned i)
{
    const struct asym_estimate e = asym_experiment_estimate(x, figure, policy, i);
    json_t *values = json_array();
    for (unsigned k = 0; k < x->repeat; k++)
        asym_json_append(&values, exact(asym_experiment_value(x, figure, policy, k, i)));
    return json_pack("{s:o, s:o, s:o}", "mean", exact(e.mean), "confidence", exact(e.confidence), "values", values);
}

static json_t *program_json(const struct asym_experiment *x, size_t policy, unsigned i)
{
    json_t *out = json_pack("{s:o}", "name",
                            asym_json_bytes(x->scenario->programs[i].name, strlen(x->scenario->programs[i].name)));
    for (size_t r = 0; r < ASYM_LENGTH(rows); r++)
        asym_json_set(&out, rows[r].key, estimate_json(x, rows[r].figure, policy, i));
    return out;
}

static json_t *policy_json(const struct asym_experiment *x, size_t policy, bool cost)
{
    json_t *out = json_pack("{s:s, s:o, s:o}", "name", x->policies[policy]->name, "jitter",
                            exact(asym_experiment_jitter(x, policy)), "jitter_confidence",
                            exact(asym_experiment_jitter_confidence(x, policy)));
    json_t *programs = json_array();
    for (size_t c = 0; c < ASYM_LENGTH(columns); c++)
        asym_json_set(&out, columns[c].key, estimate_json(x, columns[c].figure, policy, 0));
    if (cost)
        asym_json_set(&out, "plan_cpu_us", estimate_json(x, ASYM_FIGURE_PLAN_CPU, policy, 0));
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++)
        asym_json_append(&programs, program_json(x, policy, i));
    asym_json_set(&out, "programs", programs);
    return out;
}

int asym_experiment_json(const struct asym_experiment *x, const char *name, bool cost, FILE *out)
{
    const struct asym_sim_machine *m = &x->scenario->machine;
    json_t *policies = json_array(), *counts = json_array(), *speeds = json_array();
    uint64_t events = 0;
    for (unsigned k = 0; k < m->n_types; k++) {
        asym_json_append(&counts, json_integer(m->counts[k]));
        asym_json_append(&speeds, json_real(m->speeds[k]));
    }
    for (size_t p = 0; p < x->n_policies; p++)
        asym_json_append(&policies, policy_json(x, p, cost));
    for (size_t i = 0; i < x->n_trials; i++)
        events += x->trials[i].error == 0 ? x->trials[i].totals.events : 0;
    return asym_json_print(json_pack("{s:s, s:o, s:I, s:i, s:I, s:I, s:I, s:{s:i, s:o, s:o}, s:o}", "schema",
                                     "asymctl.sim/1", "scenario", asym_json_bytes(name, strlen(name)), "seed",
                                     (json_int_t)x->seed, "repeat", (int)x->repeat, "trials", (json_int_t)x->n_trials,
                                     "finished", (json_int_t)asym_experiment_finished(x), "events", (json_int_t)events,
                                     "machine", "cpus", (int)asym_scenario_cpus(x->scenario), "counts", counts,
                                     "speeds", speeds, "policies", policies),
                           out);
}
