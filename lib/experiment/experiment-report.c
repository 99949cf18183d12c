/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/experiment.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/macro.h"
#include "base/text.h"
#include "report/json.h"
#include "report/columns.h"

/* The JSON of asymctl sim: asymctl.sim/1. */

static const struct {
    enum asym_figure figure;
    const char *key;
} json_columns[] = {
    {ASYM_FIGURE_THROUGHPUT, "throughput"},
    {ASYM_FIGURE_MEAN_SPEEDUP, "mean_speedup"},
    {ASYM_FIGURE_WORST_SPEEDUP, "worst_speedup"},
    {ASYM_FIGURE_FAIRNESS, "fairness"},
    {ASYM_FIGURE_MIGRATIONS, "migrations_per_s"},
    {ASYM_FIGURE_CHANGES, "changes_per_s"},
    {ASYM_FIGURE_TURNAROUND, "turnaround_s"},
    {ASYM_FIGURE_TOTAL, "total_s"},
    {ASYM_FIGURE_BUSY, "busy"},
    {ASYM_FIGURE_PLANS, "plans_per_s"},
    {ASYM_FIGURE_PLANNED, "threads_per_plan"},
};

static const struct {
    enum asym_figure figure;
    const char *key;
} rows[] = {
    {ASYM_FIGURE_PERFORMANCE, "performance"},      {ASYM_FIGURE_SPEEDUP, "speedup"},
    {ASYM_FIGURE_RUN_TIME, "run_time_s"},          {ASYM_FIGURE_CPU_TIME, "cpu_time_s"},
    {ASYM_FIGURE_GEOMEAN, "run_time_geometric_s"}, {ASYM_FIGURE_TURNED_AWAY, "turned_away"},
};

/* JSON has no NAN: a figure that is not there is null. */
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

/* Null for the stock scheduler itself. */
static json_t *against_stock_json(const struct asym_experiment *x, const char *of, enum asym_figure figure,
                                  size_t policy, unsigned i)
{
    const struct asym_estimate e = asym_experiment_against_stock(x, figure, policy, i);
    if (policy == 0)
        return json_null();
    return json_pack("{s:s, s:o, s:o}", "of", of, "mean", exact(e.mean), "confidence", exact(e.confidence));
}

static json_t *program_json(const struct asym_experiment *x, size_t policy, unsigned i)
{
    json_t *out = json_pack("{s:o}", "name", asym_json_shown(x->scenario->programs[i].name));
    for (size_t r = 0; r < ASYM_LENGTH(rows); r++)
        asym_json_set(&out, rows[r].key, estimate_json(x, rows[r].figure, policy, i));
    asym_json_set(&out, "against_stock_percent",
                  against_stock_json(x, "performance", ASYM_FIGURE_PERFORMANCE, policy, i));
    return out;
}

static json_t *policy_json(const struct asym_experiment *x, size_t policy, bool cost)
{
    const struct asym_estimate jitter = asym_experiment_jitter(x, policy);
    json_t *out = json_pack("{s:s, s:o, s:o}", "name", x->policies[policy]->name, "jitter", exact(jitter.mean),
                            "jitter_confidence", exact(jitter.confidence));
    json_t *programs = json_array();
    for (size_t c = 0; c < ASYM_LENGTH(json_columns); c++)
        asym_json_set(&out, json_columns[c].key, estimate_json(x, json_columns[c].figure, policy, 0));
    const enum asym_figure compared = asym_experiment_compared(x);
    const char *of = compared == ASYM_FIGURE_MEAN_SPEEDUP ? "mean_speedup" : "throughput";
    asym_json_set(&out, "against_stock_percent", against_stock_json(x, of, compared, policy, 0));
    asym_json_set(&out, "work_against_stock_percent",
                  against_stock_json(x, "throughput", ASYM_FIGURE_THROUGHPUT, policy, 0));
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
    return asym_json_print(json_pack("{s:s, s:o, s:s?, s:I, s:i, s:I, s:I, s:I, s:{s:i, s:o, s:o}, s:o}", "schema",
                                     "asymctl.sim/1", "scenario", asym_json_shown(name), "auto", x->automatic, "seed",
                                     (json_int_t)x->seed, "repeat", (int)x->repeat, "trials", (json_int_t)x->n_trials,
                                     "finished", (json_int_t)asym_experiment_finished(x), "events", (json_int_t)events,
                                     "machine", "cpus", (int)asym_scenario_cpus(x->scenario), "counts", counts,
                                     "speeds", speeds, "policies", policies),
                           out);
}

/* Columns that are no figure of a trial. */
enum { POLICY = ASYM_FIGURES_END, AGAINST_STOCK, WORK, JITTER };

/* The columns of the first table. A wide one has its interval in the same cell; for the others a second table has it. */
static const struct {
    struct asym_report_table_column column;
    int figure;
    bool wide;
    double unit;
    int decimals;
} columns[] = {
    {{.heading = "policy"}, POLICY, false, 1, 0},
    {{.heading = "speedup"}, ASYM_FIGURE_MEAN_SPEEDUP, true, 1, 3},
    {{.heading = "against stock"}, AGAINST_STOCK, true, 1, 1},
    {{.heading = "work"}, WORK, true, 1, 1},
    {{.heading = "G instr/s", .drop = 2}, ASYM_FIGURE_THROUGHPUT, true, 1e-9, 3},
    {{.heading = "worst", .drop = 1}, ASYM_FIGURE_WORST_SPEEDUP, false, 1, 3},
    {{.heading = "fairness", .drop = 4}, ASYM_FIGURE_FAIRNESS, false, 1, 3},
    {{.heading = "moves/s", .drop = 3}, ASYM_FIGURE_MIGRATIONS, false, 1, 1},
    {{.heading = "sets/s", .drop = 5}, ASYM_FIGURE_CHANGES, false, 1, 1},
    {{.heading = "turn s", .drop = 2}, ASYM_FIGURE_TURNAROUND, false, 1, 3},
    {{.heading = "jitter", .drop = 6}, JITTER, false, 1, 4},
};

/* The columns of the table that --cost adds, after the policy. */
static const struct {
    enum asym_figure figure;
    int decimals;
} costs[] = {
    {ASYM_FIGURE_PLANS, 1},
    {ASYM_FIGURE_PLANNED, 1},
    {ASYM_FIGURE_CHANGES, 1},
    {ASYM_FIGURE_PLAN_CPU, 2},
};

static const struct asym_report_table_column cost_columns[] = {{.heading = "planning"},
                                                               {.heading = "plans/s", .drop = 1},
                                                               {.heading = "threads a plan", .drop = 2},
                                                               {.heading = "sets/s", .drop = 3},
                                                               {.heading = "us of CPU a plan"}};

static const struct asym_report_table_column program_columns[] = {{.heading = "program"},
                                                                  {.heading = "policy"},
                                                                  {.heading = "speedup", .drop = 1},
                                                                  {.heading = "against stock"},
                                                                  {.heading = "seconds a run", .drop = 2}};

static const char *number(double x, int decimals, char *buf, size_t size)
{
    if (isnan(x))
        snprintf(buf, size, "-");
    else
        snprintf(buf, size, "%.*f", decimals, x);
    return buf;
}

/* Formats the mean, with its interval if there is one. */
static const char *estimate(struct asym_estimate e, double unit, int decimals, char *buf, size_t size)
{
    char mean[32], sure[32];
    number(e.mean * unit, decimals, mean, sizeof mean);
    if (isnan(e.confidence))
        snprintf(buf, size, "%s", mean);
    else
        snprintf(buf, size, "%s +-%s", mean, number(e.confidence * unit, decimals, sure, sizeof sure));
    return buf;
}

static const char *percent(struct asym_estimate e, char *buf, size_t size)
{
    char sure[32] = "";
    if (isnan(e.mean))
        return number(e.mean, 0, buf, size);
    if (!isnan(e.confidence))
        snprintf(sure, sizeof sure, " +-%.1f", e.confidence);
    snprintf(buf, size, "%+.1f%s %%", e.mean, sure);
    return buf;
}

static void print_head(const struct asym_experiment *x, const char *name, const struct asym_terminal *terminal)
{
    const struct asym_sim_machine *m = &x->scenario->machine;
    const size_t finished = asym_experiment_finished(x);
    char text[1024];
    double slowest = m->speeds[0];
    for (unsigned k = 1; k < m->n_types; k++)
        slowest = ASYM_MIN(slowest, m->speeds[k]);
    size_t used = (size_t)snprintf(text, sizeof text, "%.200s:", name);
    for (unsigned k = 0; k < m->n_types; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %u core%s at %.3gx", k ? "," : "", m->counts[k],
                                 m->counts[k] == 1 ? "" : "s", m->speeds[k] / slowest);
    snprintf(text + used, sizeof text - used,
             "; %u CPUs, %zu threads; %s%zu of %zu trials, %u seed%s from %" PRIu64 "%s%s",
             asym_scenario_cpus(x->scenario), asym_scenario_threads(x->scenario),
             finished < x->n_trials ? "partial result: " : "", finished, x->n_trials, x->repeat,
             x->repeat == 1 ? "" : "s", x->seed, x->automatic ? "; auto is " : "", x->automatic ? x->automatic : "");
    asym_columns_wrap(terminal, text, 0, 2);
    fputs("\n\n", terminal->out);
}

static const char *policy_cell(const struct asym_experiment *x, size_t column, size_t policy, bool sure, char *buf,
                               size_t size)
{
    const int figure = columns[column].figure, decimals = columns[column].decimals;
    if (figure == AGAINST_STOCK)
        return percent(asym_experiment_against_stock(x, asym_experiment_compared(x), policy, 0), buf, size);
    if (figure == WORK)
        return percent(asym_experiment_against_stock(x, ASYM_FIGURE_THROUGHPUT, policy, 0), buf, size);
    const double unit = columns[column].unit;
    const struct asym_estimate e = figure == JITTER ? asym_experiment_jitter(x, policy)
                                                    : asym_experiment_estimate(x, (enum asym_figure)figure, policy, 0);
    if (columns[column].wide)
        return estimate(e, unit, decimals, buf, size);
    return number((sure ? e.confidence : e.mean) * unit, decimals, buf, size);
}

static int print_table(struct asym_report_table *table, const struct asym_terminal *terminal)
{
    char text[256];
    const int r = asym_report_table_print(table, terminal, 0, 0, true);
    if (r < 0 || !*table->lost)
        return r;
    snprintf(text, sizeof text, "\nColumns left out to fit the terminal: %s (widen it or use --json).\n", table->lost);
    asym_columns_text(terminal, text);
    return r;
}

/* sure: half the widths of the intervals of the columns that are not wide. */
static int print_policies(const struct asym_experiment *x, bool sure, const struct asym_terminal *terminal)
{
    ASYM_CLEANUP(asym_report_table_done) struct asym_report_table table = {.n_cells = 0};
    struct asym_report_table_column titles[ASYM_LENGTH(columns)];
    char text[96];
    for (size_t c = 0; c < ASYM_LENGTH(columns); c++)
        if (!(sure && columns[c].wide))
            titles[table.n_columns++] = columns[c].column;
    table.columns = titles;
    titles[0].heading = sure ? "+-" : titles[0].heading;
    for (size_t p = 0; p < x->n_policies; p++) {
        asym_report_table_add(&table, x->policies[p]->name);
        for (size_t c = 1; c < ASYM_LENGTH(columns); c++)
            if (!(sure && columns[c].wide))
                asym_report_table_add(&table, policy_cell(x, c, p, sure, text, sizeof text));
    }
    return print_table(&table, terminal);
}

static int print_costs(const struct asym_experiment *x, const struct asym_terminal *terminal)
{
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = cost_columns, .n_columns = ASYM_LENGTH(cost_columns)};
    char text[80];
    for (size_t p = 0; p < x->n_policies; p++) {
        asym_report_table_add(&table, x->policies[p]->name);
        for (size_t c = 0; c < ASYM_LENGTH(costs); c++)
            asym_report_table_add(&table, estimate(asym_experiment_estimate(x, costs[c].figure, p, 0), 1,
                                                   costs[c].decimals, text, sizeof text));
    }
    fputc('\n', terminal->out);
    return asym_report_table_print(&table, terminal, 0, 0, true);
}

static void add_program(const struct asym_experiment *x, unsigned i, size_t p, struct asym_report_table *table)
{
    const struct asym_estimate speedup = asym_experiment_estimate(x, ASYM_FIGURE_SPEEDUP, p, i);
    const struct asym_estimate against = asym_experiment_against_stock(x, ASYM_FIGURE_PERFORMANCE, p, i);
    const struct asym_estimate time = asym_experiment_estimate(x, ASYM_FIGURE_RUN_TIME, p, i);
    char text[96], name[64];
    asym_report_table_add(table, p == 0 ? asym_columns_cut(x->scenario->programs[i].name, 20, name, sizeof name) : "");
    asym_report_table_add(table, x->policies[p]->name);
    asym_report_table_add(table, estimate(speedup, 1, 3, text, sizeof text));
    asym_report_table_add(table, percent(against, text, sizeof text));
    asym_report_table_add(table, estimate(time, 1, 3, text, sizeof text));
}

static int print_programs(const struct asym_experiment *x, const struct asym_terminal *terminal)
{
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = program_columns, .n_columns = ASYM_LENGTH(program_columns)};
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++)
        for (size_t p = 0; p < x->n_policies; p++)
            add_program(x, i, p, &table);
    fputc('\n', terminal->out);
    return print_table(&table, terminal);
}

static void print_legend(const struct asym_experiment *x, const struct asym_terminal *terminal)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "\nagainst stock: the difference from none, of %s for a policy and of the performance for a program. work: the "
        "same, of the instructions of all programs together.%s%s\n",
        asym_experiment_compared(x) == ASYM_FIGURE_MEAN_SPEEDUP ? "the speedup" : "the throughput",
        x->repeat > 1 ? " +-: half the width of the 95 % interval." : "",
        x->repeat == 2 ? " Two seeds are too few for it." : "");
    asym_columns_text(terminal, text);
}

static void print_turned_away(const struct asym_experiment *x, const struct asym_terminal *terminal)
{
    char cut[64], n[32];
    for (unsigned i = 0; i < x->scenario->n_programs && i < ASYM_SIM_MAX_PROGRAMS; i++) {
        for (size_t p = 0; p < x->n_policies; p++) {
            const double mean = asym_experiment_estimate(x, ASYM_FIGURE_TURNED_AWAY, p, i).mean;
            if (!(mean > 0))
                continue;
            fputc('\n', terminal->out);
            asym_columns_say(terminal, 0, 2, "%s, %s: %s jobs a run were turned away, as too many waited already",
                             asym_columns_cut(x->scenario->programs[i].name, 20, cut, sizeof cut), x->policies[p]->name,
                             number(mean, 1, n, sizeof n));
        }
    }
}

int asym_experiment_text(const struct asym_experiment *x, const char *name, bool cost,
                         const struct asym_terminal *terminal)
{
    char shown[256];
    print_head(x, asym_text_show(name, shown, sizeof shown), terminal);
    int r = print_policies(x, false, terminal);
    if (r >= 0 && x->repeat > 1) {
        fputc('\n', terminal->out);
        r = print_policies(x, true, terminal);
    }
    if (r >= 0)
        r = print_programs(x, terminal);
    if (r < 0)
        return r;
    print_legend(x, terminal);
    print_turned_away(x, terminal);
    if (cost)
        r = print_costs(x, terminal);
    return r < 0 ? r : ferror(terminal->out) ? -EIO : 0;
}
