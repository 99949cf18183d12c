/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures a program, and prints the result. */
#include "daemon/asymctl/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/settings-setup.h"
#include "base/macro.h"
#include "base/speedup.h"
#include "base/text.h"
#include "daemon/asymctl/long-verb.h"
#include "report/json.h"
#include "linux/perf/measured-run.h"
#include "linux/sys/elf.h"

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

/* Writes "" if there is no such program. */
static void find_program(const char *name, char *ret)
{
    char path[PATH_MAX];
    if (asym_path_find_program(name, path, sizeof path) < 0 || !realpath(path, ret))
        *ret = '\0';
}

/* The process tells which file it executes, unless it ended before asymctl could read that. */
static int identify(const struct asym_measured_run_result *measured, const char *name, struct asym_profile_result *ret)
{
    if (*measured->exe)
        memcpy(ret->path, measured->exe, sizeof ret->path);
    else
        find_program(name, ret->path);
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
    fputs("  ", terminal->out);
    asym_columns_wrap(terminal, line, 2, 4);
    fputc('\n', terminal->out);
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
        fputs("  ", out);
        asym_columns_wrap(terminal, line, 2, 4);
        fputc('\n', out);
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
