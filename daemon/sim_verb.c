/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl sim: its arguments, the scenario, progress. */
#include "daemon/sim_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/parse.h"
#include "daemon/experiment.h"
#include "daemon/run.h"
#include "daemon/sim_trace.h"
#include "settings/ini.h"
#include "settings/nearest.h"

/* Workers beyond this gain nothing that was ever measured. */
#define MAX_WORKERS 64

struct arguments {
    const char *scenario, *policies, *trace;
    uint64_t repeat, seed, workers;
    bool json, cost;
};

/* The handler can reach nothing else. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static int take_count(const char *name, const char *value, uint64_t least, uint64_t most, uint64_t *ret,
                      struct asym_error *err)
{
    char shown[128];
    uint64_t n;
    if (asym_parse_u64(value, strlen(value), &n) < 0 || n < least || n > most)
        return asym_fail(err, -EINVAL, "--%s: '%s' is not accepted; accepted is a whole number from %llu to %llu", name,
                         asym_text_escape(value, strlen(value), shown, sizeof shown), (unsigned long long)least,
                         (unsigned long long)most);
    *ret = n;
    return 0;
}

/* Seeds of a run follow one another. */
#define MOST_SEED (UINT64_MAX - ASYM_EXPERIMENT_MAX_REPEAT)

static int take_argument(struct arguments *a, const char *given, struct asym_error *err)
{
    char shown[128];
    if (strcmp(given, "--json") == 0)
        a->json = true;
    else if (strcmp(given, "--cost") == 0)
        a->cost = true;
    else if (strncmp(given, "--policy=", 9) == 0)
        a->policies = given + 9;
    else if (strncmp(given, "--trace=", 8) == 0 && given[8])
        a->trace = given + 8;
    else if (strncmp(given, "--repeat=", 9) == 0)
        return take_count("repeat", given + 9, 1, ASYM_EXPERIMENT_MAX_REPEAT, &a->repeat, err);
    else if (strncmp(given, "--seed=", 7) == 0)
        return take_count("seed", given + 7, 0, MOST_SEED, &a->seed, err);
    else if (strncmp(given, "--workers=", 10) == 0)
        return take_count("workers", given + 10, 1, MAX_WORKERS, &a->workers, err);
    else if (given[0] != '-' && !a->scenario)
        a->scenario = given;
    else
        return asym_fail(
            err, -EINVAL,
            "sim does not take '%s'; accepted are SCENARIO.ini --policy=NAME,... --repeat=N --seed=N --json "
            "--cost --trace=FILE --workers=N",
            asym_text_escape(given, strlen(given), shown, sizeof shown));
    return 0;
}

static int parse(int argc, char **argv, struct arguments *ret, struct asym_error *err)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct arguments a = {.repeat = 5, .seed = 1, .workers = (uint64_t)ASYM_MAX(ASYM_MIN(online, MAX_WORKERS), 1)};
    for (int i = 1; i < argc; i++)
        if (take_argument(&a, argv[i], err) < 0)
            return -EINVAL;
    if (!a.scenario)
        return asym_fail(err, -EINVAL, "sim needs a scenario; usage: asymctl sim SCENARIO.ini [--policy=NAME,...]");
    *ret = a;
    return 0;
}

static int unknown_policy(const char *name, struct asym_error *err)
{
    struct asym_nearest near = {.wanted = name};
    char hint[96], shown[96], list[512] = "";
    size_t used = 0;
    for (size_t i = 0; asym_policy_at(i) && used < sizeof list; i++) {
        asym_nearest_consider(&near, asym_policy_at(i)->name);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", asym_policy_at(i)->name);
    }
    return asym_fail(err, -EINVAL, "unknown policy '%s'%s; accepted are %s",
                     asym_text_escape(name, strlen(name), shown, sizeof shown),
                     asym_nearest_hint(&near, hint, sizeof hint), list);
}

/* As the service has it (daemon/run.c), of what a scenario can lack. */
static const char *choose_auto(const struct asym_scenario *s)
{
    if (asym_scenario_cpus(s) == 1)
        return "none";
    for (unsigned k = 1; k < s->machine.n_types; k++)
        if (s->machine.speeds[k] < s->machine.speeds[0] || s->machine.speeds[k] > s->machine.speeds[0])
            return "pa";
    return "serial-first";
}

/* Its index; -errno. */
static int add_policy(struct asym_experiment *x, const char *name, struct asym_error *err)
{
    const bool is_auto = strcmp(name, "auto") == 0;
    const struct asym_policy *policy = asym_policy_find(is_auto ? choose_auto(x->scenario) : name);
    if (!policy)
        return unknown_policy(name, err);
    if (policy->needs >> ASYM_SIGNAL_SMT & 1 && x->scenario->machine.smt < 2)
        return asym_fail(err, -ENODATA,
                         "policy %s needs the signal smt, which this scenario does not give: machine.smt is 1",
                         policy->name);
    for (size_t i = 0; i < x->n_policies; i++)
        if (x->policies[i] == policy)
            return (int)i;
    if (x->n_policies == ASYM_EXPERIMENT_MAX_POLICIES)
        return asym_fail(err, -EINVAL, "more than %d policies", ASYM_EXPERIMENT_MAX_POLICIES);
    x->policies[x->n_policies] = policy;
    return (int)x->n_policies++;
}

/*
 * The stock scheduler comes first, asked for or not: the others are held against it. Returns the index of the first that was
 * asked for; -errno.
 */
static int add_policies(struct asym_experiment *x, const char *list, struct asym_error *err)
{
    int first = -1, r = add_policy(x, "none", err);
    if (!list)
        return r < 0 ? r : add_policy(x, x->scenario->settings->daemon.policy, err);
    for (const char *at = list; r >= 0 && at;) {
        char name[64];
        const char *comma = strchr(at, ',');
        const size_t n = comma ? (size_t)(comma - at) : strlen(at);
        snprintf(name, sizeof name, "%.*s", (int)ASYM_MIN(n, sizeof name - 1), at);
        r = add_policy(x, name, err);
        first = first < 0 ? r : first;
        at = comma ? comma + 1 : NULL;
    }
    return r < 0 ? r : first;
}

struct progress {
    struct timespec begun;
    bool shown;
};

/* Only where it takes longer than two seconds. */
static void show_progress(void *ctx, size_t done, size_t all)
{
    enum { WIDTH = 40 };
    struct progress *p = ctx;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double passed = (double)(now.tv_sec - p->begun.tv_sec) + (double)(now.tv_nsec - p->begun.tv_nsec) * 1e-9;
    if (passed < 2)
        return;
    char bar[WIDTH + 1];
    memset(bar, '.', WIDTH);
    memset(bar, '#', done * WIDTH / all);
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %zu of %zu trials", bar, done, all);
    p->shown = true;
}

static int run_trials(struct asym_experiment *x, unsigned workers)
{
    struct progress p = {.shown = false};
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    clock_gettime(CLOCK_MONOTONIC, &p.begun);
    sigaction(SIGINT, &action, NULL);
    int r = asym_sim_trials_run(x->trials, x->n_trials, workers, &interrupted,
                                isatty(STDERR_FILENO) ? show_progress : NULL, &p);
    if (p.shown)
        fprintf(stderr, "\r%*s\r", 72, "");
    return r;
}

static int say(int r, const char *what)
{
    fprintf(stderr, "asymctl: %s\n", what);
    return (int)asym_run_exit(r);
}

static int report(const struct asym_experiment *x, const struct arguments *a)
{
    int r = a->json ? asym_experiment_json(x, a->scenario, a->cost, stdout)
                    : asym_experiment_text(x, a->scenario, a->cost, stdout);
    if (r < 0 || fflush(stdout) != 0)
        return say(-EIO, "cannot write the report");
    if (!interrupted)
        return ASYM_EXIT_DONE;
    fprintf(stderr, "asymctl: interrupted: %zu of %zu trials are done\n", asym_experiment_finished(x), x->n_trials);
    return ASYM_EXIT_FAILED;
}

static int say_path(const char *path, int r)
{
    fprintf(stderr, "asymctl: %s: %s\n", path, strerror(-r));
    return r;
}

/* Before the trials, which may take long. */
static int try_trace(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return say_path(path, -errno);
    close(fd);
    return 0;
}

/* Of the first policy that was asked for, with the first seed. */
static int write_trace(const struct asym_experiment *x, size_t policy, const char *path)
{
    int r = asym_sim_trace_write(&x->trials[policy * x->repeat], path, &interrupted);
    return r < 0 && r != -ECANCELED ? say_path(path, r) : r;
}

static void free_scenario(struct asym_scenario **s)
{
    asym_scenario_free(*s);
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

static uint64_t memory_here(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

/* The trials, the trace, the report: what can be had is printed. */
static int carry_out(struct asym_experiment *x, const struct arguments *a, unsigned workers, size_t traced)
{
    if (a->trace && try_trace(a->trace) < 0)
        return ASYM_EXIT_FAILED;
    int r = asym_experiment_init(x);
    if (r >= 0)
        r = run_trials(x, workers);
    if (r < 0)
        return say(r, strerror(-r));
    const bool lost = a->trace && write_trace(x, traced, a->trace) < 0;
    const int status = report(x, a);
    return lost && status == ASYM_EXIT_DONE ? ASYM_EXIT_FAILED : status;
}

int asym_sim_verb(int argc, char **argv)
{
    struct asym_error err = {""};
    struct arguments a = {0};
    size_t traced = 0;
    ASYM_CLEANUP(free_scenario) struct asym_scenario *scenario = NULL;
    ASYM_CLEANUP(asym_experiment_done) struct asym_experiment x = {0};
    int r = parse(argc, argv, &a, &err);
    if (r >= 0)
        r = load(a.scenario, &scenario, &err);
    if (r >= 0) {
        x.scenario = scenario;
        x.repeat = (unsigned)a.repeat;
        x.seed = a.seed;
        r = add_policies(&x, a.policies, &err);
        traced = (size_t)ASYM_MAX(r, 0);
    }
    if (r >= 0 && scenario->n_programs > ASYM_SIM_MAX_PROGRAMS)
        r = asym_fail(&err, -EINVAL, "%s:%u: more than %d programs", a.scenario,
                      scenario->programs[ASYM_SIM_MAX_PROGRAMS].line, ASYM_SIM_MAX_PROGRAMS);
    unsigned workers = (unsigned)a.workers;
    if (r >= 0)
        r = asym_sim_trials_fit(scenario, a.scenario, memory_here(), &workers, &err);
    if (r < 0)
        return say(r, err.text);
    return carry_out(&x, &a, workers, traced);
}
