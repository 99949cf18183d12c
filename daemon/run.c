/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "daemon/paths.h"
#include "daemon/sight.h"
#include "daemon/speeds.h"
#include "linux/monitor.h"
#include "linux/procfs.h"
#include "linux/thread.h"
#include "profile/build-id.h"

/* The configuration that the command line names, or the installed one. buf: ASYM_PATH_SIZE. */
static const char *config_of(const struct asym_cli *cli, char *buf)
{
    return cli->config ? cli->config : asym_path(ASYM_PATH_CONFIG, buf);
}

int asym_run_settings(const struct asym_cli *cli, struct asym_settings **ret_settings, struct asym_error *err)
{
    struct asym_settings *s;
    char path[ASYM_PATH_SIZE];
    int r = asym_settings_new(&s);
    if (r < 0)
        return asym_fail(err, r, "no memory for the settings");
    r = asym_settings_load_all(s, config_of(cli, path), cli->config != NULL, err);
    for (size_t i = 0; r >= 0 && i < cli->n_assignments; i++)
        r = asym_settings_set(s, cli->assignments[i].text, cli->assignments[i].origin, err);
    if (r >= 0)
        r = asym_settings_check(s, err);
    if (r < 0) {
        asym_settings_free(s);
        return r;
    }
    *ret_settings = s;
    return 0;
}

int asym_run_salvage(const struct asym_cli *cli, struct asym_settings **ret_settings, struct asym_error *err)
{
    struct asym_settings *s;
    struct asym_error said = {""};
    char path[ASYM_PATH_SIZE];
    int r = asym_settings_new(&s);
    if (r < 0)
        return asym_fail(err, r, "no memory for the settings");
    asym_settings_salvage(s, config_of(cli, path));
    for (size_t i = 0; i < cli->n_assignments; i++)
        asym_settings_set(s, cli->assignments[i].text, cli->assignments[i].origin, &said);
    *ret_settings = s;
    return 0;
}

/* "4": how many, chosen by asymd; anything with a comma or a dash: which. */
static int slow_cpus(const struct asym_machine *m, const char *text, struct asym_mask *ret_slow, struct asym_error *err)
{
    uint64_t n;
    if (asym_parse_u64(text, strlen(text), &n) < 0)
        return asym_mask_parse_list(text, strlen(text), ret_slow) < 0
                   ? asym_fail(err, -EINVAL, "'%s' is neither a number nor a CPU list such as 0-3,8", text)
                   : 0;
    unsigned usable = asym_mask_count(&m->usable);
    if (usable < 2)
        return asym_fail(err, -EINVAL, "%s: the one usable CPU cannot be made slower than others", text);
    if (n > ASYM_MAX_CPUS || asym_machine_choose_slow(m, (unsigned)n, ret_slow) < 0)
        return asym_fail(err, -EINVAL,
                         "%s of %u usable CPUs cannot be made slow: accepted are 1 to %u, in whole frequency domains "
                         "and SMT cores, or a list such as 4-7",
                         text, usable, usable - 1);
    return 0;
}

/* Which CPUs the settings want slow on this machine; none where they name none. */
static int resolve_slow(const struct asym_run *run, const struct asym_machine *m, struct asym_mask *ret_slow,
                        struct asym_error *err)
{
    const char *text = run->settings->asymmetry.slow;
    struct asym_mask slow = {0};
    struct asym_error why = {""};
    char list[256];
    int r = text && *text ? slow_cpus(m, text, &slow, &why) : 0;
    /* One that is offline is slow when it comes back. */
    struct asym_mask gone = asym_mask_minus(&slow, &m->usable);
    gone = asym_mask_minus(&gone, &m->online);
    ASYM_MASK_FOREACH (c, &gone)
        if ((unsigned)c >= m->n_cpus)
            gone = (struct asym_mask){0};
    const struct asym_mask here = asym_mask_minus(&slow, &gone);
    if (r >= 0 && !asym_mask_within(&here, &m->usable))
        r = asym_fail(&why, -EINVAL, "%s names a CPU that is not usable here: usable are %s", text,
                      asym_mask_format_list(&m->usable, list, sizeof list));
    if (r < 0)
        return asym_fail(err, r, "%s: asymmetry.slow: %.900s", asym_settings_origin(run->settings, "asymmetry", "slow"),
                         why.text);
    *ret_slow = slow;
    return 0;
}

/* Speeds obtained are what they are; else what the method would give, where that can be told; else as configured. */
static int make_slow(const struct asym_run *run, struct asym_machine *m, const struct asym_mask *slow,
                     struct asym_error *err)
{
    const char *text = run->settings->asymmetry.slow_speed;
    struct asym_slow_speed speed;
    struct asym_caps caps;
    if (asym_mask_empty(slow))
        return 0;
    if (run->caps || (run->root.live && asym_speeds_foresee(run, slow, &caps) >= 0))
        return asym_machine_cap(m, run->caps ? run->caps : &caps);
    if (asym_slow_speed_parse(text, &speed) < 0 || !(speed.share > 0))
        return asym_fail(err, -EINVAL,
                         "asymmetry.slow_speed: what share of their speed %s is cannot be told here: give "
                         "it as one, such as 50%%",
                         text);
    return asym_machine_assume_slow(m, slow, speed.share);
}

/* In place: the source and the engine look at the address they were given, and see the new generation. */
static void adopt_machine(struct asym_run *run, struct asym_machine **fresh, const struct asym_mask *slow)
{
    run->slow = *slow;
    run->assumed_slow = !run->caps && asym_mask_meets(slow, &(*fresh)->usable);
    if (run->machine)
        *run->machine = **fresh;
    else
        run->machine = ASYM_TAKE(*fresh);
}

/* The configuration goes before whatever the machine says of itself. */
static int configure_machine(struct asym_run *run, struct asym_machine *m, struct asym_error *err)
{
    double speed[ASYM_MAX_CPUS];
    struct asym_mask cpus;
    char list[256];
    m->fast_from = run->settings->machine.fast_from;
    if (!*run->settings->machine.speeds)
        return asym_machine_finish(m);
    int r = asym_speeds_parse(run->settings->machine.speeds, speed, &cpus);
    const struct asym_mask left = asym_mask_minus(&m->usable, &cpus);
    if (r < 0 || !asym_mask_empty(&left))
        return asym_fail(err, -EINVAL, "machine.speeds: %s leaves out CPUs %s: it has to name all that may be used",
                         run->settings->machine.speeds, asym_mask_format_list(&left, list, sizeof list));
    ASYM_MASK_FOREACH (c, &m->usable) {
        m->cpus[c].speed = speed[c];
        m->cpus[c].origin = ASYM_ORIGIN_CONFIG;
    }
    run->notes.unordered = run->notes.hidden = false;
    for (size_t i = 0; i < run->notes.n; i++)
        run->notes.note[i].used = false;
    struct asym_speed_note *note = &run->notes.note[run->notes.n++];
    *note = (struct asym_speed_note){.origin = ASYM_ORIGIN_CONFIG, .there = true, .used = true};
    snprintf(note->text, sizeof note->text, "machine.speeds: %.140s", run->settings->machine.speeds);
    return asym_machine_finish(m);
}

static int read_machine(struct asym_run *run, struct asym_machine **ret_fresh, struct asym_error *err)
{
    struct asym_machine *fresh = malloc(sizeof *fresh);
    if (!fresh)
        return asym_fail(err, -ENOMEM, "no memory for the machine");
    *fresh = run->machine ? *run->machine : (struct asym_machine){0};
    int r = asym_topology_read(&run->root, run->cli->topology, fresh, &run->notes, err);
    if (r >= 0)
        r = configure_machine(run, fresh, err);
    if (r < 0) {
        free(fresh);
        return r;
    }
    *ret_fresh = fresh;
    return 0;
}

int asym_run_machine(struct asym_run *run, struct asym_error *err)
{
    ASYM_AUTO_FREE struct asym_machine *fresh = NULL;
    struct asym_mask slow;
    int r = read_machine(run, &fresh, err);
    if (r >= 0)
        r = resolve_slow(run, fresh, &slow, err);
    if (r < 0)
        return r;
    const struct asym_mask here = asym_mask_and(&slow, &fresh->usable);
    r = make_slow(run, fresh, &here, err);
    if (r >= 0)
        adopt_machine(run, &fresh, &slow);
    return r;
}

int asym_run_machine_changed(struct asym_run *run, struct asym_error *err)
{
    ASYM_AUTO_FREE struct asym_machine *fresh = NULL;
    int r = read_machine(run, &fresh, err);
    if (r < 0)
        return r;
    const struct asym_mask slow = asym_mask_and(&run->slow, &fresh->usable);
    r = make_slow(run, fresh, &slow, err);
    if (r >= 0) {
        adopt_machine(run, &fresh, &run->slow);
        asym_signals_resolve(&run->signals, run->machine);
    }
    return r;
}

static bool has_one_cpu(const struct asym_run *run)
{
    return asym_mask_count(&run->machine->usable) == 1;
}

static bool is_alike(const struct asym_run *run)
{
    return !asym_machine_is_asymmetric(run->machine);
}

static bool cannot_tell_parallel(const struct asym_run *run)
{
    return run->signals.missing[ASYM_SIGNAL_RUNNABLE] != NULL;
}

static bool always(const struct asym_run *run)
{
    (void)run;
    return true;
}

/* What auto comes to: the first row that fits. */
static const struct {
    bool (*fits)(const struct asym_run *run);
    const char *policy, *why;
} choices[] = {
    {has_one_cpu, "none", "there is only one CPU"},
    {cannot_tell_parallel, "busyfcs", "this kernel cannot tell serial from parallel programs"},
    {is_alike, "serial-first", "all CPUs are alike, and serial programs gain from one to themselves"},
    {always, "pa", "CPUs differ in speed, and sequential phases gain most from the fast ones"},
};

int asym_run_policy(struct asym_run *run, struct asym_error *err)
{
    int r = asym_signals_read(&run->signals, &run->root, run->machine, run->settings, err);
    if (r < 0)
        return r;
    run->policy_why = NULL;
    run->policy = asym_policy_find(run->settings->daemon.policy);
    for (size_t i = 0; !run->policy && i < ASYM_LENGTH(choices); i++) {
        if (!choices[i].fits(run))
            continue;
        run->policy = asym_policy_find(choices[i].policy);
        run->policy_why = choices[i].why;
    }
    return 0;
}

struct asym_engine_config asym_run_engine_config(const struct asym_run *run)
{
    return (struct asym_engine_config){
        .policy = run->policy,
        .params = asym_settings_params(run->settings, run->policy),
        .classify = run->settings->classify,
        .enforce = run->settings->enforce,
        .keep_nice = run->keep_nice,
    };
}

/* The first option of the policy that is set and changes nice values; NULL: none does. */
static const char *boosting_option(const struct asym_run *run)
{
    const char *params = asym_settings_params(run->settings, run->policy);
    for (const struct asym_option *o = params ? run->policy->options : NULL; o && o->key; o++) {
        int value = 0;
        if (o->type == ASYM_OPTION_NICE)
            memcpy(&value, params + o->offset, sizeof value);
        if (value != 0)
            return o->key;
    }
    return NULL;
}

void asym_run_check_boost(struct asym_run *run)
{
    const char *option = boosting_option(run);
    const int r = asym_thread_may_boost();
    run->keep_nice = r < 0;
    if (r < 0 && option)
        asym_log_say(
            &run->log, LOG_WARNING,
            "policy.%s.%s is left out, all nice values stay as they are: asymd could not give them back (%s%s)",
            run->policy->name, option, strerror(-r), r == -EPERM ? ": CAP_SYS_NICE is needed" : "");
}

/* Why there are no birth events, as a text that outlives the call. */
static const char *births_why(int error)
{
    static const struct {
        int error;
        const char *text;
    } rows[] = {
        {-EPERM, "no CAP_NET_ADMIN for the proc connector: /proc is scanned instead"},
        {-EPROTONOSUPPORT, "this kernel has no proc connector (CONFIG_PROC_EVENTS): /proc is scanned instead"},
        {-EXDEV, "inside a PID namespace, where the proc connector's numbers do not match: /proc is scanned instead"},
        {-EOPNOTSUPP, "a captured machine has no events"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].error == error)
            return rows[i].text;
    return "the proc connector could not be opened: /proc is scanned instead";
}

static int open_monitor(struct asym_run *run, struct asym_lookout *l, struct asym_error *err)
{
    struct asym_monitor_config config = {.source = l->procfs};
    memcpy(config.missing, run->signals.missing, sizeof config.missing);
    int r = asym_signals_counters(&run->signals, run->settings, &config.counters, err);
    if (r < 0)
        return r;
    r = asym_monitor_new(&config, &l->source);
    return r < 0 ? asym_fail(err, r, "no memory to observe") : 0;
}

/* What can block is read by a helper; without its program it is not read at all. */
static int open_reader(struct asym_run *run, struct asym_lookout *l, struct asym_error *err)
{
    char buf[ASYM_PATH_SIZE];
    const char *program = asym_path(ASYM_PATH_HELPER, buf);
    if (!run->root.live)
        return 0;
    if (access(program, X_OK) < 0) {
        asym_log_say(&run->log, LOG_WARNING,
                     "%s: %s: programs with one thread are left alone, and rules for command lines do not match",
                     program, strerror(errno));
        program = NULL;
    }
    int r = asym_proc_reader_new(program, asym_run_now, &l->reader);
    if (r < 0)
        return asym_fail(err, r, "no memory to observe");
    asym_proc_reader_set(l->reader, run->settings->daemon.cpu_budget * ASYM_RUN_READING_SHARE);
    return 0;
}

int asym_run_look(struct asym_run *run, asym_usec piece, struct asym_lookout *ret, struct asym_error *err)
{
    struct asym_lookout l = {.births = NULL};
    int r = open_reader(run, &l, err);
    if (r < 0)
        return r;
    int opened = run->root.live ? asym_births_open(&l.births, NULL) : -EOPNOTSUPP;
    const struct asym_procfs_config config = {
        .root = &run->root,
        .machine = run->machine,
        .births = l.births,
        .births_why = opened < 0 ? births_why(opened) : NULL,
        .group = (enum asym_grouping)run->settings->daemon.group,
        .pids = run->cli->pids,
        .n_pids = run->cli->n_pids,
        .rules = run->settings->rules,
        .reader = l.reader,
        .profile_of = asym_signals_profile_of,
        .wants_build_id = asym_signals_wants_build_id,
        .build_id = asym_build_id_read,
        .profile_ctx = &run->signals,
        .owns_children = true,
        .piece = piece,
    };
    r = asym_procfs_new(&config, &l.procfs, err);
    if (r >= 0)
        r = open_monitor(run, &l, err);
    if (r < 0) {
        asym_lookout_close(&l);
        return r;
    }
    *ret = l;
    return 0;
}

void asym_lookout_close(struct asym_lookout *l)
{
    if (l->source)
        l->source->close(l->source);
    if (l->procfs)
        l->procfs->close(l->procfs);
    asym_births_close(l->births);
    if (l->reader)
        l->reader->close(l->reader);
    *l = (struct asym_lookout){.births = NULL};
}

enum asym_exit asym_run_exit(int error)
{
    static const struct {
        int error;
        enum asym_exit exit;
    } rows[] = {
        {-EINVAL, ASYM_EXIT_USAGE},         {-ENODATA, ASYM_EXIT_NO_SIGNAL}, {-EPERM, ASYM_EXIT_NOT_PERMITTED},
        {-EACCES, ASYM_EXIT_NOT_PERMITTED}, {-E2BIG, ASYM_EXIT_FAILED},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].error == error)
            return rows[i].exit;
    return ASYM_EXIT_FAILED;
}

static void warn(void *ctx, bool missed, const char *text)
{
    const struct asym_log *log = ctx;
    if (missed)
        asym_log_say(log, LOG_WARNING, "%s", text);
}

void asym_run_warn(struct asym_run *run, const struct asym_snapshot *s)
{
    asym_sight_each(&s->sight, warn, &run->log);
}

static asym_usec read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

asym_usec asym_run_cpu_time(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

asym_usec asym_run_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}
