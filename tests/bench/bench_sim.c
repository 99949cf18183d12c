/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast the simulator is: scheduling events per second of CPU time, and scenarios of scenarios/. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "daemon/sim_trial.h"
#include "settings/ini.h"

static double cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int run(const char *file, const char *policy)
{
    static const volatile sig_atomic_t stop = 0;
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
    if (t) {
        *t = (struct asym_sim_trial){.scenario = s, .policy = asym_policy_find(policy), .only = -1, .seed = 1};
        const double before = cpu_time();
        asym_sim_trial_run(t, &stop);
        const double used = cpu_time() - before;
        printf("| %s | %s | %.0f | %.2f | %.2f | %.2f |\n", file, policy, t->seconds, (double)t->totals.events / 1e6,
               used, (double)t->totals.events / used / 1e6);
    }
    asym_scenario_free(s);
    return t && t->error == 0 ? 0 : -1;
}

int main(void)
{
    static const char *const files[] = {"serial-beside-parallel.ini", "big-little.ini", "open-system.ini", "large.ini"};
    static const char *const policies[] = {"none", "pa"};
    int r = 0;
    puts(
        "| scenario | policy | simulated s | M events | CPU s | M events / s |\n| --- | --- | --- | --- | --- | --- |");
    for (size_t i = 0; i < ASYM_LENGTH(files); i++)
        for (size_t k = 0; k < ASYM_LENGTH(policies); k++)
            r |= run(files[i], policies[k]);
    return r < 0;
}
