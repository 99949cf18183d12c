/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl profile: parses its arguments, opens the counters, and writes the file. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/command-line.h"
#include "app/machine-setup.h"
#include "app/settings-setup.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/speedup.h"
#include "base/text.h"
#include "daemon/asymctl/long-verb.h"
#include "daemon/asymctl/profile.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/verb.h"
#include "linux/perf/counters.h"
#include "linux/perf/measured-run.h"
#include "linux/sys/elf.h"
#include "profile/profiles.h"
#include "report/json.h"

/* Measures a program, and prints the result. */

/* Creates only the directory of the default file; the user creates any other. */
static int check_directory(const char *output, const char *directory)
{
    if (strcmp(output, ASYM_PROFILES) == 0 && mkdir(directory, 0755) < 0 && errno != EEXIST)
        return -errno;
    return access(directory, W_OK) < 0 ? -errno : 0;
}

int asym_profile_check_output(const char *output, struct asym_error *err)
{
    struct asym_profiles *old = NULL;
    char parent[PATH_MAX];
    if (strlen(output) >= sizeof parent)
        return asym_fail(err, -ENAMETOOLONG, "%.200s: the name is too long", output);
    memcpy(parent, output, strlen(output) + 1);
    const char *directory = dirname(parent);
    int r = check_directory(output, directory);
    if (r < 0)
        return asym_fail(err, r, "%.200s: %s (%s--output=FILE names another file)", directory, strerror(-r),
                         r == -EACCES ? "run as root; " : "");
    r = asym_profiles_load(output, &old, err);
    asym_profiles_free(old);
    return r == -ENOENT ? 0 : r;
}

/* The process tells which file it executes, unless it ended before asymctl could read that. */
static int identify(const struct asym_measured_run_result *measured, const char *name, struct asym_profile_result *ret)
{
    if (*measured->exe)
        memcpy(ret->path, measured->exe, sizeof ret->path);
    else {
        /* "" if there is no such program. */
        char path[PATH_MAX];
        if (asym_path_find_program(name, path, sizeof path) < 0 || !realpath(path, ret->path))
            *ret->path = '\0';
    }
    ret->profile.path = ret->path;
    ASYM_AUTO_CLOSE int own = measured->exe_fd < 0 ? open(ret->path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    if (asym_elf_build_id(measured->exe_fd < 0 ? own : measured->exe_fd, ret->profile.build_id) < 0)
        ret->profile.build_id[0] = '\0';
    return *ret->path ? 0 : -ENOENT;
}

static int check_end(const struct asym_measured_run_result *measured, const char *name, const char *type,
                     struct asym_error *err)
{
    if (measured->ended || (WIFEXITED(measured->status) && WEXITSTATUS(measured->status) == 0))
        return 0;
    if (WIFEXITED(measured->status))
        return asym_fail(err, -ECANCELED, "%.200s ended with status %d on the CPUs of type %s", name,
                         WEXITSTATUS(measured->status), type);
    return asym_fail(err, -ECANCELED, "%.200s was ended by signal %d (%s) on the CPUs of type %s", name,
                     WTERMSIG(measured->status), strsignal(WTERMSIG(measured->status)), type);
}

static bool has(const struct asym_counts *c, enum asym_counter counter)
{
    return (c->valid >> counter & 1) != 0;
}

static int take_counts(const struct asym_counts *c, const char *name, const char *type, struct asym_profile_result *ret,
                       struct asym_error *err)
{
    struct asym_profile_type *to = &ret->profile.types[ret->profile.n_types];
    const double instructions = (double)c->value[ASYM_COUNTER_INSTRUCTIONS];
    if (!has(c, ASYM_COUNTER_INSTRUCTIONS) || instructions < 1 || c->on_cpu_ns == 0)
        return asym_fail(err, -ENODATA, "%.200s did not run long enough on the CPUs of type %s to be counted", name,
                         type);
    *to = (struct asym_profile_type){.ips = instructions * 1e9 / (double)c->on_cpu_ns, .mpki = -1};
    snprintf(to->name, sizeof to->name, "%s", type);
    if (has(c, ASYM_COUNTER_CYCLES))
        ret->hz[ret->profile.n_types] = (double)c->value[ASYM_COUNTER_CYCLES] * 1e9 / (double)c->on_cpu_ns;
    if (has(c, ASYM_COUNTER_LLC_MISSES))
        to->mpki = (double)c->value[ASYM_COUNTER_LLC_MISSES] * 1000 / instructions;
    ret->on_cpu[ret->profile.n_types] = (double)c->on_cpu_ns / 1e9;
    ret->share[ret->profile.n_types] = c->running_share;
    ret->profile.n_types++;
    return 0;
}

struct progress {
    const struct asym_profile_job *job;
    unsigned type;
    struct asym_progress_line line;
};

/* Called about five times a second while the program runs. */
static void show_progress(void *ctx)
{
    struct progress *p = ctx;
    const struct asym_machine *m = p->job->machine;
    const double elapsed = asym_progress_line_elapsed(&p->line);
    char text[200];
    if (p->job->time > 0) {
        asym_progress_line_show(&p->line, elapsed, (double)p->job->time * m->n_types / ASYM_SEC, "s");
        return;
    }
    snprintf(text, sizeof text, "type %u of %u (%.32s), %.0f s so far", p->type + 1, m->n_types, m->types[p->type].name,
             elapsed);
    asym_progress_line_say(&p->line, text);
}

static int measure_on(struct progress *p, struct asym_profile_result *ret, struct asym_error *err)
{
    const struct asym_profile_job *job = p->job;
    const struct asym_core_type *type = &job->machine->types[p->type];
    ASYM_CLEANUP(asym_measured_run_done) struct asym_measured_run_result measured = {.exe_fd = -1};
    const struct asym_measured_run_config how = {.argv = job->argv,
                                                 .cpus = &type->cpus,
                                                 .time = job->time,
                                                 .counters = job->counters,
                                                 .waiting = show_progress,
                                                 .ctx = p};
    const char *text, *remedy;
    struct asym_error why = {""};
    int r = asym_measured_run(&how, &measured, &why);
    if (r == -EINTR)
        return asym_fail(err, r, "interrupted");
    if (r < 0 && !*why.text) {
        asym_counters_why(r, &text, &remedy);
        return asym_fail(err, r, "%.200s cannot be counted: %s%s%s", job->argv[0], text, *remedy ? "; " : "", remedy);
    }
    if (r < 0)
        return asym_fail(err, r, "%s", why.text);
    r = check_end(&measured, job->argv[0], type->name, err);
    if (r >= 0 && ret->profile.n_types == 0 && identify(&measured, job->argv[0], ret) < 0)
        r = asym_fail(err, -ENOENT, "%.200s: cannot tell which file was executed", job->argv[0]);
    return r < 0 ? r : take_counts(&measured.counts, job->argv[0], type->name, ret, err);
}

int asym_profile_measure(const struct asym_profile_job *job, struct asym_profile_result *ret, struct asym_error *err)
{
    struct progress p = {.job = job, .line = asym_progress_line_begin()};
    int r = 0;
    ret->profile = (struct asym_profile_entry){.path = ret->path};
    for (; r >= 0 && p.type < job->machine->n_types; p.type++)
        r = measure_on(&p, ret, err);
    asym_progress_line_end(&p.line);
    return r;
}

/* The speedup of the first type over the last one. */
struct speedup {
    double measured, by_stall; /* by_stall: by the stall time on the first type alone; 0: not known */
};

static struct speedup speedup_of(const struct asym_profile_job *job, const struct asym_profile_result *r)
{
    const unsigned last = r->profile.n_types - 1;
    if (r->profile.n_types < 2 || r->profile.n_types < job->machine->n_types)
        return (struct speedup){0};
    const double fast = job->max_ipc[0] * r->hz[0], slow = job->max_ipc[1] * r->hz[last], ips = r->profile.types[0].ips;
    struct speedup s = {.measured = ips / r->profile.types[last].ips};
    if (fast > 0 && slow > 0)
        s.by_stall = asym_speedup_by_stall(ASYM_MAX(1 / ips - 1 / fast, 0), fast, slow);
    return s;
}

static void print_speedup(const struct asym_profile_job *job, const struct asym_profile_result *r,
                          const struct asym_terminal *terminal)
{
    const struct speedup s = speedup_of(job, r);
    const struct asym_profile_type *types = r->profile.types;
    char line[256];
    if (!(s.measured > 0))
        return;
    size_t n = (size_t)snprintf(line, sizeof line, "%.2f times as fast on %.31s as on %.31s", s.measured, types[0].name,
                                types[r->profile.n_types - 1].name);
    if (s.by_stall > 0 && n < sizeof line)
        snprintf(line + n, sizeof line - n, "; %.2f times by its stall time on %.31s alone", s.by_stall, types[0].name);
    asym_columns_say(terminal, 2, 4, "%s", line);
}

int asym_profile_text(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *output,
                      bool user_only, const struct asym_terminal *terminal)
{
    FILE *out = terminal->out;
    const struct asym_profile_entry *p = &result->profile;
    char path[1024], cpus[64], line[256];
    asym_columns_wrap(terminal, asym_text_show(p->path, path, sizeof path), 0, 2);
    fprintf(out, "\n  build %s\n", *p->build_id ? p->build_id : "unknown: the file has no build id");
    for (unsigned t = 0; t < p->n_types; t++) {
        const struct asym_profile_type *type = &p->types[t];
        char misses[64] = "LLC misses could not be counted";
        if (type->mpki >= 0)
            snprintf(misses, sizeof misses, "%.2f LLC misses per 1000", type->mpki);
        asym_columns_cpus(&job->machine->types[t].cpus, 24, cpus, sizeof cpus);
        size_t n = (size_t)snprintf(line, sizeof line, "%s on CPUs %s: %.4g instructions/s, %s; %.2f s on a CPU",
                                    type->name, cpus, type->ips, misses, result->on_cpu[t]);
        if (result->share[t] < 0.995 && n < sizeof line)
            snprintf(line + n, sizeof line - n, ", counted in %.0f%% of it", 100 * result->share[t]);
        asym_columns_say(terminal, 2, 4, "%s", line);
    }
    print_speedup(job, result, terminal);
    if (user_only)
        asym_columns_text(terminal, "Counted in user space only: counting in the kernel needs root or CAP_PERFMON.\n");
    if (output)
        fprintf(out, "Written to %s\n", asym_text_show(output, path, sizeof path));
    return ferror(out) ? -EIO : 0;
}

int asym_profile_json(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *output,
                      bool user_only, FILE *out)
{
    const struct asym_profile_entry *p = &result->profile;
    const struct speedup s = speedup_of(job, result);
    json_t *types = json_array();
    for (unsigned t = 0; t < p->n_types; t++) {
        const struct asym_profile_type *type = &p->types[t];
        asym_json_append(&types,
                         json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", type->name, "cpus",
                                   asym_json_cpus(&job->machine->types[t].cpus), "ips", asym_json_number(type->ips, 3),
                                   "mpki", type->mpki < 0 ? json_null() : asym_json_number(type->mpki, 4), "on_cpu_ms",
                                   asym_json_number(result->on_cpu[t] * 1e3, 3), "counted",
                                   asym_json_number(result->share[t], 3)));
    }
    return asym_json_print(json_pack("{s:s, s:o, s:s, s:o, s:b, s:o, s:o, s:o}", "schema", "asymd.profile/1",
                                     "executable", asym_json_shown(p->path), "build_id", p->build_id, "output",
                                     output ? asym_json_shown(output) : json_null(), "user_only", (int)user_only,
                                     "types", types, "speedup", asym_json_number(s.measured > 0 ? s.measured : NAN, 4),
                                     "speedup_by_stall", asym_json_number(s.by_stall > 0 ? s.by_stall : NAN, 4)),
                           out);
}

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
    asym_counters_probe(root, NULL, ret_coverage);
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
    ASYM_CLEANUP(asym_run_done) struct asym_run run;
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
        return asym_verb_fail(counters_exit(r), "%s", err.text);
    /* Check it now: the program may run for minutes. */
    r = asym_profile_check_output(a->output, &err);
    if (r < 0)
        return asym_verb_fail(asym_exit_status(r), "%s", err.text);
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
        return asym_verb_fail(r == -EACCES || r == -EPERM ? ASYM_EXIT_NOT_PERMITTED : ASYM_EXIT_FAILED, "%s", err.text);
    if (report(&job, result, a->output, coverage.user_only, a->json) < 0)
        return asym_verb_fail(ASYM_EXIT_FAILED, "the profile is saved in %.200s, but the report could not be printed",
                              a->output);
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
