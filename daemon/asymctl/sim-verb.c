/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl sim: parses its arguments, loads the scenario, runs the trials and shows progress. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "core/machine-situation.h"
#include "daemon/asymctl/long-verb.h"
#include "daemon/asymctl/record-files.h"
#include "daemon/asymctl/verb.h"
#include "experiment/experiment.h"
#include "config/config.h"
#include "experiment/traces.h"

/* No measurement showed a gain from more workers. */
#define MAX_WORKERS 64

struct arguments {
    const char *policies, *trace, *from, *machine;
    unsigned repeat, workers; /* workers: 0: one for each CPU */
    uint64_t seed;
    bool json, cost;
};

/* A run counts seeds up from the first, so the limit leaves room for the last. A double holds this number exactly. */
#define MOST_SEED 18446744073709549568.0

static const struct asym_arg args[] = {
    ASYM_ARG("--policy", STRING, "NAME,...", policies,
             .help = "policies to run; by default the one that section [asymd] of the scenario names"),
    ASYM_ARG("--repeat", COUNT, "N", repeat, .def = "5", .min = 1, .max = ASYM_EXPERIMENT_MAX_REPEAT,
             .help = "number of seeds; 5 by default"),
    ASYM_ARG("--seed", WHOLE, "N", seed, .def = "1", .max = MOST_SEED, .help = "the first seed; 1 by default"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    ASYM_ARG("--cost", BOOL, NULL, cost,
             .help = "print what planning costs; the CPU time of a plan differs from run to run"),
    ASYM_ARG("--from", STRING, "RECORD", from,
             .help = "make the scenario out of a record of asymctl record, instead of SCENARIO.ini"),
    ASYM_ARG("--machine", STRING, "FILE", machine,
             .help = "with --from: the machine and the scheduler of this scenario, instead of the recorded machine"),
    ASYM_ARG("--trace", STRING, "FILE", trace,
             .help = "write a Chrome trace of the first policy given, with the first seed"),
    ASYM_ARG("--workers", COUNT, "N", workers, .min = 1, .max = MAX_WORKERS,
             .help = "trials at a time; by default one for each CPU, and never more than fit into memory; the report "
                     "does not depend on it"),
    {.option = {.key = NULL}},
};

static bool speeds_differ(const struct asym_scenario *s)
{
    for (unsigned k = 1; k < s->machine.n_types; k++)
        if (s->machine.speeds[k] < s->machine.speeds[0] || s->machine.speeds[k] > s->machine.speeds[0])
            return true;
    return false;
}

/* Returns the index of the policy; -errno. */
static int add_policy(void *ctx, const char *name, struct asym_error *err)
{
    struct asym_experiment *x = ctx;
    const char *no_smt = x->scenario->machine.most_smt < 2 ? "machine.smt is 1" : NULL;
    const char *const missing[ASYM_N_SIGNALS] = {[ASYM_SIGNAL_SMT] = no_smt};
    const struct asym_policy_facts facts = {.alike = speeds_differ(x->scenario) ? NULL : "all CPUs are alike",
                                            .missing = missing};
    const struct asym_policy *policy = asym_policy_select(name, &facts).policy;
    if (!policy)
        return asym_policy_unknown(name, "--policy", err);
    if (strcmp(name, "auto") == 0)
        x->automatic = policy->name;
    const enum asym_signal lacks = asym_policy_lacks(policy, missing, 0);
    if (lacks != ASYM_N_SIGNALS)
        return asym_fail(err, -ENODATA, "policy %s needs the signal %s, which this scenario does not give: %s",
                         policy->name, asym_signal_name(lacks), missing[lacks]);
    for (size_t i = 0; i < x->n_policies; i++)
        if (x->policies[i] == policy)
            return (int)i;
    if (x->n_policies == ASYM_EXPERIMENT_MAX_POLICIES)
        return asym_fail(err, -EINVAL, "more than %d policies", ASYM_EXPERIMENT_MAX_POLICIES);
    x->policies[x->n_policies] = policy;
    return (int)x->n_policies++;
}

/*
 * Adds the stock scheduler first, even if the user does not name it: the report compares the others with it. Returns the index
 * of the first policy that the user names; -errno.
 */
static int add_policies(struct asym_experiment *x, const char *list, struct asym_error *err)
{
    const int r = add_policy(x, "none", err);
    return r < 0 ? r : asym_verb_each_word(list ? list : x->scenario->settings->daemon.policy, add_policy, x, err);
}

static void show_progress(void *ctx, size_t done, size_t all)
{
    asym_progress_line_show(ctx, (double)done, (double)all, "trials");
}

/* Runs all trials of the first seed, then those of the next: an interrupted run has whole seeds to compare. */
static int run_trials(struct asym_experiment *x, unsigned workers)
{
    struct asym_progress_line p = asym_progress_line_begin();
    asym_interruption_catch();
    const int r = asym_sim_trials_run(x->trials, x->n_trials, x->repeat, workers, &asym_interrupted, show_progress, &p);
    asym_progress_line_end(&p);
    return r;
}

static int report(const struct asym_experiment *x, const struct arguments *a, const char *path)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    int r = a->json ? asym_experiment_json(x, path, a->cost, stdout)
                    : asym_experiment_text(x, path, a->cost, &terminal);
    if (!asym_interrupted || r < 0)
        return asym_verb_reported(r);
    fprintf(stderr, "asymctl: interrupted: %zu of %zu trials are done\n", asym_experiment_finished(x), x->n_trials);
    return ASYM_EXIT_FAILED;
}

static int say_path(const char *path, int r)
{
    fprintf(stderr, "asymctl: %s: %s\n", path, strerror(-r));
    return r;
}

/* Creates the file. */
static int try_file(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return say_path(path, -errno);
    close(fd);
    return 0;
}

/* Traces the first policy that the user names, with the first seed. */
static int write_trace(const struct asym_experiment *x, size_t policy, const char *path)
{
    int r = asym_sim_trace_write(&x->trials[policy * x->repeat], path, &asym_interrupted);
    return r < 0 && r != -ECANCELED ? say_path(path, r) : r;
}

static int load(const char *path, struct asym_scenario **ret, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t len;
    int r = asym_ini_file(path, &text, &len, err);
    if (r < 0)
        return r == -ENOMEM ? r : -EINVAL;
    return asym_scenario_parse(text, len, path, ret, err);
}

/* Returns the sections machine and scheduler of a scenario, which the caller frees; NULL with err. */
static char *read_machine(const char *path, struct asym_error *err)
{
    char *text = NULL;
    size_t len, used = 0;
    bool wanted = false, has_machine = false;
    if (asym_ini_file(path, &text, &len, err) < 0)
        return NULL;
    for (char *line = text; *line;) {
        const size_t n = strcspn(line, "\n") + (strchr(line, '\n') != NULL);
        if (*line == '[')
            wanted = strncmp(line, "[machine]", 9) == 0 || strncmp(line, "[scheduler]", 11) == 0;
        has_machine |= strncmp(line, "[machine]", 9) == 0;
        if (wanted) {
            memmove(text + used, line, n);
            used += n;
        }
        line += n;
    }
    text[used] = '\0';
    if (has_machine)
        return text;
    free(text);
    asym_fail(err, -EINVAL, "%.200s: no section [machine]; accepted is a scenario", path);
    return NULL;
}

/* The notes are as wide as the terminal. The further lines of a paragraph are indented. */
static void print_notes(char *notes)
{
    const struct asym_terminal terminal = asym_terminal_of(stderr);
    char *rest;
    for (char *line = strtok_r(notes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        asym_columns_line(&terminal, line, 0, 2);
    }
}

/* Makes the scenario out of a record, and says on stderr where the record was cut off, and what a record cannot tell. */
static int load_record(const struct arguments *a, struct asym_scenario **ret, struct asym_error *err)
{
    ASYM_AUTO_FREE char *machine = a->machine ? read_machine(a->machine, err) : NULL;
    ASYM_AUTO_FCLOSE FILE *in = NULL;
    struct asym_record_reader *reader;
    ASYM_CLEANUP(asym_record_scenario_done) struct asym_record_scenario made = {.text = NULL};
    if (a->machine && !machine)
        return -EINVAL;
    int r = asym_record_input_open(a->from, &in, &reader, err);
    if (r < 0)
        return r;
    r = asym_record_input_result(asym_record_scenario(reader, machine, &made, err));
    /* If no application ran, the cut may be the cause. */
    asym_record_input_say_cut(reader);
    asym_record_reader_free(reader);
    if (r >= 0)
        r = asym_scenario_parse(made.text, made.len, a->from, ret, err);
    if (r >= 0)
        print_notes(made.notes);
    return r;
}

static uint64_t memory_here(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

/*
 * Tries the file first, because the trials may take long. Runs the trials, writes the trace, prints the report; a trace that
 * failed does not prevent the report.
 */
static int carry_out(struct asym_experiment *x, const struct arguments *a, const char *path, unsigned workers,
                     size_t first)
{
    if (a->trace && try_file(a->trace) < 0)
        return ASYM_EXIT_FAILED;
    int r = asym_experiment_init(x);
    if (r >= 0)
        r = run_trials(x, workers);
    if (r < 0)
        return asym_verb_fail(asym_exit_status(r), "%s", strerror(-r));
    const bool written = !a->trace || write_trace(x, first, a->trace) >= 0;
    const int status = report(x, a, path);
    return !written && status == ASYM_EXIT_DONE ? ASYM_EXIT_FAILED : status;
}

static unsigned workers_of(const struct arguments *a)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return a->workers > 0 ? a->workers : (unsigned)ASYM_MAX(ASYM_MIN(online, MAX_WORKERS), 1);
}

/* Returns the fault of arguments that do not go together; NULL: none. */
static const char *wrong_combination(const struct arguments *a, const char *scenario)
{
    if (!a->from && !scenario)
        return "needs a scenario or a record: asymctl sim SCENARIO.ini, or asymctl sim --from=RECORD";
    if (a->from && scenario)
        return "SCENARIO.ini and --from are given; asymctl accepts one of them";
    return a->machine && !a->from ? "--machine goes with --from; a scenario names its own machine" : NULL;
}

static int simulate(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    const char *path = a->from ? a->from : operands[0];
    struct asym_error err = {""};
    size_t first = 0;
    const char *fault = wrong_combination(a, operands[0]);
    if (fault)
        return asym_verb_wrong_usage(&asym_verb_sim, fault);
    unsigned workers = workers_of(a);
    struct asym_scenario *scenario = NULL;
    ASYM_CLEANUP(asym_experiment_done) struct asym_experiment x = {.repeat = a->repeat, .seed = a->seed};
    int r = a->from ? load_record(a, &scenario, &err) : load(path, &scenario, &err);
    if (r >= 0) {
        x.scenario = scenario;
        r = add_policies(&x, a->policies, &err);
        first = (size_t)ASYM_MAX(r, 0);
    }
    if (r >= 0 && scenario->n_programs > ASYM_SIM_MAX_PROGRAMS)
        r = asym_fail(&err, -EINVAL, "%s:%u: more than %d programs", path,
                      scenario->programs[ASYM_SIM_MAX_PROGRAMS].line, ASYM_SIM_MAX_PROGRAMS);
    if (r >= 0)
        r = asym_sim_trials_fit(scenario, path, memory_here(), &workers, &err);
    r = r < 0 ? asym_verb_fail(asym_exit_status(r), "%s", err.text) : carry_out(&x, a, path, workers, first);
    asym_scenario_free(scenario);
    return r;
}

const struct asym_verb asym_verb_sim = {
    .name = "sim",
    .args = args,
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[SCENARIO.ini]",
    .needs = "a scenario",
    .summary = "simulate a machine under several policies, and compare them",
    .help = "Runs the scenario under the stock scheduler (none) and under each policy, with several seeds, and\n"
            "each program alone. The code that steers a live machine also steers the simulated one.\n"
            "asymctl(1) describes the format of scenarios.\n"
            "\n"
            "With --from the programs are the applications of a record, with the phases that they were seen in.\n",
    .run = simulate,
};
