/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl profile: parses its arguments, opens the counters, and writes the file. */
#include <errno.h>
#include <string.h>

#include "app/command-line.h"
#include "app/machine-setup.h"
#include "app/settings-setup.h"
#include "base/macro.h"
#include "base/mask.h"
#include "daemon/asymctl/machine-run.h"
#include "daemon/asymctl/profile.h"
#include "daemon/asymctl/verb.h"
#include "linux/perf/counters.h"
#include "profile/profiles.h"

/* The limit of counter descriptors: enough for one program and its children on every type of core. */
#define MAX_FDS 64

struct arguments {
    const char *output, *config; /* config: NULL: the installed one */
    asym_usec time;              /* microseconds; 0: until the program ends by itself */
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--output", STRING, "FILE", output, .def = ASYM_PROFILES,
             .help = "the file of profiles (" ASYM_PROFILES ")"),
    ASYM_ARG(
        "--time", DURATION, "TIME", time, .min = 1, .max = 365 * 86400e6,
        .help = "end COMMAND after that long on each type of core, such as 10s; without it, COMMAND ends by itself"),
    ASYM_ARG("--config", STRING, "FILE", config, .help = "a configuration, instead of that of the running asymd"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

/* Reads the machine as asymd does, so that core types have the same names. */
static int read_machine(struct asym_run *run, const struct asym_invocation *cli, struct asym_error *err)
{
    const int r = asym_machine_run_begin(run, cli, ASYM_MACHINE_QUIET, err);
    /* If asymd has not slowed these CPUs yet, the measurement would find no difference between the types. */
    if (r >= 0 && !asym_mask_empty(&run->slow) && !asym_speeds_are_in_force(run, &run->slow))
        return asym_fail(
            err, -EINVAL,
            "asymmetry.slow names CPUs that are not slower now: run this while asymd slows them, or remove the option");
    return r;
}

static int open_counters(const struct asym_root *root, struct asym_counters_coverage *ret_coverage,
                         struct asym_counters **ret, struct asym_error *err)
{
    const struct asym_counters_config config = {.root = root, .max_fds = MAX_FDS, .tree = true};
    const char *text, *remedy;
    asym_counters_probe(root, ret_coverage);
    if (ret_coverage->error < 0) {
        asym_counters_why(ret_coverage->error, &text, &remedy);
        return asym_fail(err, ret_coverage->error, "asymd cannot count instructions: %s%s%s", text, *remedy ? "; " : "",
                         remedy);
    }
    return asym_counters_new(&config, ret, err);
}

static void close_counters(struct asym_counters **c)
{
    if (*c)
        (*c)->close(*c);
}

static enum asym_exit counters_exit(int error)
{
    switch (error) {
    case -EACCES:
    case -EPERM:
        return ASYM_EXIT_NOT_PERMITTED;
    case -ENODEV:
    case -ENOENT:
    case -EOPNOTSUPP:
    case -EINVAL:
    case -ENOSYS:
        return ASYM_EXIT_NO_SIGNAL;
    default:
        return ASYM_EXIT_FAILED;
    }
}

/* output: NULL: no file was written. Returns 0; -EIO. */
static int report(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *output,
                  bool user_only, bool json)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    const int r = json ? asym_profile_json(job, result, output, user_only, stdout)
                       : asym_profile_text(job, result, output, user_only, &terminal);
    return r < 0 || asym_output_end() < 0 ? -EIO : 0;
}

/* A profile needs every type of core. The user sees what is measured. */
static int report_interrupted(const struct asym_profile_job *job, const struct asym_profile_result *result,
                              bool user_only, bool json)
{
    if (result->profile.n_types > 0)
        report(job, result, NULL, user_only, json);
    fprintf(stderr, "asymctl: interrupted: %u of %u types of core are measured, and no profile is written\n",
            result->profile.n_types, job->machine->n_types);
    return ASYM_EXIT_FAILED;
}

/* Returns an option of eshmp that is a number. */
static double option_of_eshmp(const struct asym_settings *settings, const char *key)
{
    const struct asym_policy *policy = asym_policy_find("eshmp");
    const char *params = asym_settings_params(settings, policy);
    for (const struct asym_option *o = policy->options; o->key; o++)
        if (strcmp(o->key, key) == 0)
            return *(const double *)(const void *)(params + o->offset);
    return 0;
}

static int profile(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    const struct asym_invocation cli = {.config = a->config};
    ASYM_CLEANUP(asym_machine_run_done) struct asym_run run;
    ASYM_AUTO_FREE struct asym_profile_result *result = calloc(1, sizeof *result);
    ASYM_CLEANUP(close_counters) struct asym_counters *counters = NULL;
    struct asym_counters_coverage coverage;
    struct asym_error err = {""};
    int r = read_machine(&run, &cli, &err);
    if (r < 0)
        return asym_machine_run_failed(&run, r, &err);
    if (!result)
        return asym_verb_fail(ASYM_EXIT_FAILED, "no memory");
    r = open_counters(&run.root, &coverage, &counters, &err);
    if (r < 0)
        return asym_verb_fail(counters_exit(r), err.text);
    /* Check it now: the program may run for minutes. */
    r = asym_profile_check_output(a->output, &err);
    if (r < 0)
        return asym_verb_fail(asym_exit_status(r), err.text);
    const double fast = option_of_eshmp(run.settings, "max_ipc"), slow = option_of_eshmp(run.settings, "max_ipc_slow");
    const struct asym_profile_job job = {.argv = operands,
                                         .time = a->time,
                                         .machine = run.machine,
                                         .counters = counters,
                                         .max_ipc = {fast, slow > 0 ? slow : fast}};
    r = asym_profile_measure(&job, result, &err);
    if (r == -EINTR)
        return report_interrupted(&job, result, coverage.user_only, a->json);
    if (r >= 0)
        r = asym_profiles_save(a->output, &result->profile, &err);
    if (r < 0)
        return asym_verb_fail(r == -EACCES || r == -EPERM ? ASYM_EXIT_NOT_PERMITTED : ASYM_EXIT_FAILED, err.text);
    if (report(&job, result, a->output, coverage.user_only, a->json) < 0) {
        asym_fail(&err, -EIO, "the profile is saved in %.200s, but the report could not be printed", a->output);
        return asym_verb_fail(ASYM_EXIT_FAILED, err.text);
    }
    return ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_profile = {
    .name = "profile",
    .args = args,
    .operands = ASYM_OPERANDS_BEHIND,
    .usage = "-- COMMAND...",
    .needs = "a program to run",
    .summary = "measure a program on each type of core, for policies that need profiles",
    .help = "Runs COMMAND on the CPUs of each type of core in turn. Counts the instructions and the misses of the\n"
            "last-level cache, of its children too, and writes them to a file of profiles, in place of the\n"
            "profile of the same executable. Discards COMMAND's standard output. If standard input is a file,\n"
            "each run reads it from the same place; COMMAND reads no other standard input. A COMMAND that fails\n"
            "leaves no profile. Ctrl-C ends COMMAND, and prints what is measured.\n"
            "\n"
            "Only root can write the default file. --output names another one, which asymd reads if the option\n"
            "counters.profiles names it, too.\n"
            "\n"
            "On a machine without hardware counters asymctl ends with status 3 and says why.\n",
    .file_option = "--config",
    .file = ASYM_PATH_CONFIG,
    .run = profile,
};
