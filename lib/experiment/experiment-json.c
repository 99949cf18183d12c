/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints an experiment as JSON. */
#include "experiment/experiment-json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "report/json.h"

static const struct {
    enum asym_figure figure;
    const char *key;
} columns[] = {
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
    json_t *out = json_pack("{s:o}", "name",
                            asym_json_bytes(x->scenario->programs[i].name, strlen(x->scenario->programs[i].name)));
    for (size_t r = 0; r < ASYM_LENGTH(rows); r++)
        asym_json_set(&out, rows[r].key, estimate_json(x, rows[r].figure, policy, i));
    asym_json_set(&out, "against_stock_percent",
                  against_stock_json(x, "performance", ASYM_FIGURE_PERFORMANCE, policy, i));
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
    return asym_json_print(json_pack("{s:s, s:o, s:I, s:i, s:I, s:I, s:I, s:{s:i, s:o, s:o}, s:o}", "schema",
                                     "asymctl.sim/1", "scenario", asym_json_bytes(name, strlen(name)), "seed",
                                     (json_int_t)x->seed, "repeat", (int)x->repeat, "trials", (json_int_t)x->n_trials,
                                     "finished", (json_int_t)asym_experiment_finished(x), "events", (json_int_t)events,
                                     "machine", "cpus", (int)asym_scenario_cpus(x->scenario), "counts", counts,
                                     "speeds", speeds, "policies", policies),
                           out);
}
