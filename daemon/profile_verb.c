/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl profile: its arguments, the counters of this machine, the file. */
#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "daemon/profile.h"
#include "daemon/run.h"
#include "daemon/speeds.h"

/* One program at a time, its children included: more than any machine has kinds of cores. */
#define MAX_FDS 64

struct arguments {
    struct asym_cli cli; /* config alone */
    const char *output;
    asym_usec time;
    bool json;
    char **command; /* ends in NULL */
};

/* The value of --NAME=VALUE or --NAME VALUE; NULL: it is another option, or has none. */
static const char *value_of(const char *name, int argc, char **argv, int *at)
{
    const size_t n = strlen(name);
    const char *arg = argv[*at];
    if (strncmp(arg, name, n) != 0)
        return NULL;
    if (arg[n] == '=')
        return arg + n + 1;
    return arg[n] == '\0' && *at + 1 < argc && strncmp(argv[*at + 1], "--", 2) != 0 ? argv[++*at] : NULL;
}

static int parse(int argc, char **argv, struct arguments *ret, struct asym_error *err)
{
    struct arguments a = {.output = ASYM_PROFILES};
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *given = argv[i], *value;
        char text[128];
        if (strcmp(given, "--json") == 0) {
            a.json = true;
        } else if ((value = value_of("--output", argc, argv, &i)) && *value) {
            a.output = value;
        } else if ((value = value_of("--config", argc, argv, &i)) && *value) {
            a.cli.config = value;
        } else if ((value = value_of("--time", argc, argv, &i))) {
            if (asym_parse_duration(value, strlen(value), &a.time) < 0 || a.time == 0)
                return asym_fail(err, -EINVAL, "--time: '%s' is not accepted; accepted is a duration such as 10s",
                                 asym_text_escape(value, strlen(value), text, sizeof text));
        } else {
            return asym_fail(err, -EINVAL, "profile does not take '%s'; asymctl help profile says what it takes",
                             asym_text_escape(given, strlen(given), text, sizeof text));
        }
    }
    if (i + 1 >= argc)
        return asym_fail(err, -EINVAL, "profile needs a program to run: asymctl profile -- COMMAND...");
    a.command = argv + i + 1;
    *ret = a;
    return 0;
}

/* Before a program runs for minutes. The directory of the default is made, others are the user's affair. */
static int check_output(const char *output, struct asym_error *err)
{
    struct asym_profiles *old = NULL;
    char parent[PATH_MAX];
    if (strlen(output) >= sizeof parent)
        return asym_fail(err, -ENAMETOOLONG, "%.200s: the name is too long", output);
    memcpy(parent, output, strlen(output) + 1);
    const char *directory = dirname(parent);
    if (strcmp(output, ASYM_PROFILES) == 0)
        mkdir(directory, 0755);
    if (access(directory, W_OK) < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s; --output=FILE puts the profile elsewhere", directory,
                         strerror(-error));
    }
    int r = asym_profiles_load(output, &old, err);
    asym_profiles_free(old);
    return r == -ENOENT ? 0 : r;
}

/* As asymd has it, so that core types are called the same. *ret_exit: the status where it fails. */
static int read_machine(struct asym_run *run, enum asym_exit *ret_exit, struct asym_error *err)
{
    int r = asym_run_settings(run->cli, &run->settings, err);
    /* A file that cannot be read is a matter of configuration, whatever the errno. */
    *ret_exit = ASYM_EXIT_USAGE;
    if (r < 0)
        return r;
    r = asym_root_open(NULL, &run->root, err);
    if (r >= 0)
        r = asym_run_machine(run, err);
    /* Types that are only to be would be measured as one. */
    if (r >= 0 && !asym_mask_empty(&run->slow) && !asym_speeds_are_in_force(run, &run->slow))
        r = asym_fail(
            err, -EINVAL,
            "asymmetry.slow names CPUs that are not slower now: measure while asymd holds them, or without it");
    *ret_exit = asym_run_exit(r);
    return r;
}

static int open_counters(const struct asym_root *root, struct asym_counters_sight *ret_sight,
                         struct asym_counters **ret, struct asym_error *err)
{
    const struct asym_counters_config config = {.root = root, .max_fds = MAX_FDS, .tree = true};
    const char *text, *remedy;
    asym_counters_probe(root, ret_sight);
    if (ret_sight->error < 0) {
        asym_counters_why(ret_sight->error, &text, &remedy);
        return asym_fail(err, ret_sight->error, "the signal ipc cannot be had: %s%s%s", text, *remedy ? "; " : "",
                         remedy);
    }
    return asym_counters_new(&config, ret, err);
}

static void run_done(struct asym_run *run)
{
    asym_settings_free(run->settings);
    free(run->machine);
    asym_root_done(&run->root);
}

static void close_counters(struct asym_counters **c)
{
    if (*c)
        (*c)->close(*c);
}

static enum asym_exit say(enum asym_exit status, const struct asym_error *err)
{
    fprintf(stderr, "asymctl: %s\n", err->text);
    return status;
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

int asym_profile_verb(int argc, char **argv)
{
    struct arguments a;
    ASYM_CLEANUP(run_done) struct asym_run run = {.cli = &a.cli, .root = {.fd = -1}};
    ASYM_AUTO_FREE struct asym_profile_result *result = calloc(1, sizeof *result);
    ASYM_CLEANUP(close_counters) struct asym_counters *counters = NULL;
    struct asym_counters_sight sight;
    struct asym_error err = {""};
    if (!result)
        return (int)say(ASYM_EXIT_FAILED, &(struct asym_error){"no memory"});
    if (parse(argc, argv, &a, &err) < 0)
        return (int)say(ASYM_EXIT_USAGE, &err);
    enum asym_exit status;
    int r = read_machine(&run, &status, &err);
    if (r < 0)
        return (int)say(status, &err);
    r = open_counters(&run.root, &sight, &counters, &err);
    if (r < 0)
        return (int)say(counters_exit(r), &err);
    r = check_output(a.output, &err);
    if (r < 0)
        return (int)say(asym_run_exit(r), &err);
    const struct asym_profile_job job = {
        .argv = a.command, .time = a.time, .machine = run.machine, .counters = counters};
    r = asym_profile_measure(&job, result, &err);
    if (r >= 0)
        r = asym_profiles_save(a.output, &result->profile, &err);
    if (r < 0)
        return (int)say(r == -EACCES || r == -EPERM ? ASYM_EXIT_NOT_PERMITTED : ASYM_EXIT_FAILED, &err);
    r = a.json ? asym_profile_json(&job, result, a.output, sight.user_only, stdout)
               : asym_profile_text(&job, result, a.output, sight.user_only, stdout);
    if (r < 0 || fflush(stdout) != 0) {
        asym_fail(&err, -EIO, "written to %.200s, but cannot be printed", a.output);
        return (int)say(ASYM_EXIT_FAILED, &err);
    }
    return ASYM_EXIT_DONE;
}
