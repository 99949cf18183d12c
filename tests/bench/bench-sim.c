/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The speed of the simulator: scheduling events per second of CPU time, for some files of scenarios/. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "experiment/experiment.h"
#include "config/config.h"
#include "times.h"

/* A pass of some ms mostly measures the machine's other load. */
#define LEAST_CPU_S  0.5
#define LEAST_PASSES 3

/* Repeats the same trial: the quickest pass, and the slowest, which shows the machine's other load. */
static int measure(struct asym_sim_trial *t, const char *file)
{
    static const volatile sig_atomic_t stop = 0;
    double best = INFINITY, worst = 0, all = 0;
    unsigned passes = 0;
    for (; passes < LEAST_PASSES || all < LEAST_CPU_S; passes++) {
        const struct asym_sim_trial fresh = {
            .scenario = t->scenario, .policy = t->policy, .only = t->only, .seed = t->seed};
        *t = fresh;
        const double before = read_ns(CLOCK_THREAD_CPUTIME_ID);
        asym_sim_trial_run(t, &stop);
        const double used = (read_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
        if (t->error != 0)
            return -1;
        best = ASYM_MIN(best, used);
        worst = ASYM_MAX(worst, used);
        all += used;
    }
    const double events = (double)t->totals.events / 1e6;
    printf("| %s | %s | %.0f | %.2f | %u | %.3f | %.2f | %.2f |\n", file, t->policy->name, t->seconds, events, passes,
           best, events / best, events / worst);
    return 0;
}

static int run(const char *file, const char *policy)
{
    char path[512];
    struct asym_error err = {""};
    ASYM_AUTO_FREE char *text = NULL;
    struct asym_scenario *s;
    size_t len;
    snprintf(path, sizeof path, "%s/%s", ASYM_BENCH_SCENARIOS, file);
    if (asym_ini_file(path, &text, &len, &err) < 0 || asym_scenario_parse(text, len, path, &s, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    ASYM_AUTO_FREE struct asym_sim_trial *t = calloc(1, sizeof *t);
    int r = -1;
    if (t) {
        *t = (struct asym_sim_trial){.scenario = s, .policy = asym_policy_find(policy), .only = -1, .seed = 1};
        r = measure(t, file);
    }
    asym_scenario_free(s);
    return r;
}

int main(void)
{
    static const char *const files[] = {"serial-beside-parallel.ini", "big-little.ini", "open-system.ini", "large.ini"};
    static const char *const policies[] = {"none", "pa"};
    int r = 0;
    puts("| scenario | policy | simulated s | M events | passes | CPU s, best | M events / s, best | worst |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (size_t i = 0; i < ASYM_LENGTH(files); i++)
        for (size_t k = 0; k < ASYM_LENGTH(policies); k++)
            r |= run(files[i], policies[k]);
    return r < 0;
}
