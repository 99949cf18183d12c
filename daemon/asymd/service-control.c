/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The orders that a running service accepts: pause, another policy, and orders for single processes. */
#include "daemon/asymd/service-internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/sys/thread.h"

/* Its name is behind those of the usual files of rules.d, so that asymd reads it last. */
#define POLICY_FILE "zz-policy.conf"

/* Bytes of the name of a program in the name of its lasting rule. */
#define ASYM_LASTING_NAME 30

/* A value in a configuration has up to 160 bytes, and the glob stands in quotes. */
#define LONGEST_GLOB 158

/* The time between two checks for processes with an order that have ended. A check takes 10 us for each process. */
#define CHECK_PERIOD (10 * ASYM_SEC)

int asym_service_control_open(struct asym_service *s)
{
    int r = asym_monitor_new(&s->control.monitor);
    if (r >= 0)
        r = asym_overrides_new(s->observer.source, &s->control.overrides);
    if (r < 0)
        return r;
    s->observer.source = asym_overrides_source(s->control.overrides);
    s->control.started = asym_clock_read(CLOCK_REALTIME);
    return 0;
}

void asym_service_control_close(struct asym_service *s)
{
    struct asym_source *source = s->control.overrides ? asym_overrides_source(s->control.overrides) : NULL;
    if (source)
        source->close(source);
    asym_monitor_free(s->control.monitor);
    sd_event_source_unref(s->control.pause_timer);
    free(s->control.policy);
    s->control = (struct asym_service_control){.overrides = NULL};
}

/* Pause */

static void end_timer(struct asym_service *s)
{
    s->control.pause_timer = sd_event_source_disable_unref(s->control.pause_timer);
    s->control.paused_until = 0;
}

/* Run a cycle at once, on the last snapshot, to apply the change. During a snapshot the cycle at its end applies it. */
static void take_effect(struct asym_service *s)
{
    asym_service_prompt_cycle(s);
    s->control.waits = s->sampling;
    asym_service_status(s);
    asym_service_changed(s);
}

void asym_service_resume(struct asym_service *s)
{
    end_timer(s);
    if (!asym_overrides_is_paused(s->control.overrides))
        return;
    asym_overrides_pause(s->control.overrides, false);
    asym_log_say(&s->run->log, LOG_NOTICE, "the pause is over: asymd steers again");
    take_effect(s);
}

static int on_pause_end(sd_event_source *source, uint64_t usec, void *userdata)
{
    asym_service_resume(userdata);
    return 0;
}

int asym_service_pause(struct asym_service *s, uint64_t seconds, struct asym_error *err)
{
    sd_event_source *timer = NULL;
    if (seconds > ASYM_PAUSE_MAX)
        return asym_fail(err, -EINVAL, "a pause lasts %" PRIu64 " seconds at most; 0: until resume", ASYM_PAUSE_MAX);
    const uint64_t span = seconds * ASYM_SEC;
    /* A suspend is part of the pause. */
    const int r = seconds == 0 ? 0
                               : sd_event_add_time(s->event, &timer, CLOCK_BOOTTIME,
                                                   asym_clock_read(CLOCK_BOOTTIME) + span, 0, on_pause_end, s);
    if (r < 0)
        return asym_fail(err, r, "cannot time the pause: %s", strerror(-r));
    end_timer(s);
    s->control.pause_timer = timer;
    s->control.paused_until = seconds == 0 ? 0 : asym_clock_read(CLOCK_REALTIME) + span;
    asym_overrides_pause(s->control.overrides, true);
    if (seconds == 0)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "asymd is paused: it restores all masks and nice values, and steers nothing");
    else
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "asymd is paused for %" PRIu64 " s: it restores all masks and nice values, and steers nothing",
                     seconds);
    take_effect(s);
    return 0;
}

/* Policy */

/* A policy of the command line overrides the files at the next reload. */
static bool is_named_by_command_line(const struct asym_invocation *cli)
{
    static const char option[] = "asymd.policy=";
    for (size_t i = 0; i < cli->n_assignments; i++)
        if (strncmp(cli->assignments[i].text, option, strlen(option)) == 0)
            return true;
    return false;
}

/* Write the file, and make its line the origin of the policy. */
static int write_policy(const struct asym_service *s, const char *name, struct asym_error *err)
{
    char text[256], path[ASYM_PATH_SIZE], origin[ASYM_PATH_SIZE + 8];
    snprintf(text, sizeof text,
             "# asymd has written this file for a permanent change of the policy (asymctl policy NAME --permanent).\n"
             "# Remove it to use the policy of the other files again.\n[asymd]\npolicy = %s\n",
             name);
    int r = asym_run_write_drop_in(s->run->cli, POLICY_FILE, text, path, err);
    if (r < 0 || is_named_by_command_line(s->run->cli))
        return r;
    snprintf(origin, sizeof origin, "%s:4", path);
    snprintf(text, sizeof text, "asymd.policy=%s", name);
    return asym_settings_set(s->run->settings, text, origin, err);
}

/* Puts a policy in force, and writes it down if it is permanent; or leaves everything as it is. */
static int change_policy(struct asym_service *s, const char *name, bool permanent, struct asym_error *err)
{
    struct asym_error ignored = {""};
    ASYM_AUTO_FREE char *before = strdup(s->run->settings->daemon.policy);
    ASYM_AUTO_FREE char *origin = strdup(asym_settings_origin(s->run->settings, "asymd", "policy"));
    if (!before || !origin)
        return asym_fail(err, -ENOMEM, "no memory for the name of the policy");
    int r = asym_service_switch_policy(s, name, ASYM_ORIGIN_OF_ORDERS, err);
    if (r < 0)
        return r;
    r = permanent ? write_policy(s, name, err) : 0;
    if (r < 0 && asym_service_switch_policy(s, before, origin, &ignored) < 0)
        asym_log_say(&s->run->log, LOG_ERR, "cannot go back to policy %s: %s", before, ignored.text);
    return r;
}

int asym_service_set_policy(struct asym_service *s, const char *name, bool permanent, uid_t by, struct asym_error *err)
{
    if (!asym_policy_find(name) && strcmp(name, "auto") != 0)
        return asym_policy_unknown(name, "the policy is unchanged", err);
    /* Keep the name in memory, unless the next reload finds it in the drop-in file. The command line overrides that file. */
    const bool is_in_file = permanent && !is_named_by_command_line(s->run->cli);
    ASYM_AUTO_FREE char *copy = is_in_file ? NULL : strdup(name);
    if (!copy && !is_in_file)
        return asym_fail(err, -ENOMEM, "no memory for the name of the policy");
    const int r = change_policy(s, name, permanent, err);
    if (r < 0)
        return r;
    free(s->control.policy);
    s->control.policy = ASYM_TAKE(copy);
    snprintf(s->control.policy_reason, sizeof s->control.policy_reason, "set by uid %u over the bus%s", (unsigned)by,
             permanent ? " and in rules.d/" POLICY_FILE ", which the command line overrides at the next start" : "");
    asym_log_say(&s->run->log, LOG_NOTICE, "policy %s, set by uid %u%s%s", s->run->policy->name, (unsigned)by,
                 s->run->policy_why ? "; chosen by auto: " : "", s->run->policy_why ? s->run->policy_why : "");
    take_effect(s);
    return 0;
}

/* Processes */

/*
 * The process that has the thread pid. /proc/TID exists for each thread, and its directory task begins with the leader. The file
 * status would name the process too, but for one with tens of thousands of groups the kernel writes that file for milliseconds.
 */
static int process_of(int32_t pid, int32_t *ret_tgid)
{
    char path[64];
    const struct dirent *e;
    snprintf(path, sizeof path, "/proc/%" PRId32 "/task", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? -ESRCH : -errno;
    while ((e = readdir(dir)) && e->d_name[0] == '.')
        ;
    const int32_t tgid = e ? (int32_t)strtol(e->d_name, NULL, 10) : 0;
    closedir(dir);
    const int r = tgid > 0 ? asym_thread_is_of(tgid, pid) : -ESRCH;
    if (r >= 0)
        *ret_tgid = tgid;
    return r;
}

/* A process that asymd does not know yet may be a new child of one that --pid names. */
static bool is_outside(struct asym_service *s, const struct asym_taskid *id)
{
    struct asym_proc proc;
    return s->run->cli->n_pids > 0 && asym_observer_rule_of(&s->observer, id, &proc) >= 0 &&
           (proc.flags & ASYM_PROC_OUTSIDE);
}

static int identify(struct asym_service *s, int32_t pid, struct asym_taskid *ret, struct asym_error *err)
{
    struct asym_stat stat;
    int32_t tgid = 0;
    if (pid <= 0)
        return asym_fail(err, -EINVAL, "%" PRId32 " is no PID", pid);
    int r = process_of(pid, &tgid);
    if (r >= 0)
        r = asym_thread_get_stat(tgid, tgid, &stat);
    if (r < 0)
        return asym_fail(err, r, "process %" PRId32 ": %s", pid, strerror(-r));
    if (tgid == getpid())
        return asym_fail(err, -EPERM, "process %" PRId32 " is asymd itself", pid);
    if (is_outside(s, &(struct asym_taskid){.tid = tgid, .tgid = tgid, .start = stat.start}))
        return asym_fail(err, -EPERM,
                         "process %" PRId32 " is not among those of --pid: asymd was started for those only", pid);
    if (stat.flags & ASYM_PF_KTHREAD)
        return asym_fail(err, -EPERM, "process %" PRId32 " is a kernel thread: asymd steers none", pid);
    *ret = (struct asym_taskid){.tid = tgid, .tgid = tgid, .start = stat.start};
    return 0;
}

static bool has_ended(const struct asym_taskid *proc)
{
    struct asym_stat stat;
    return asym_thread_get_stat_of(proc, &stat) == -ESRCH;
}

void asym_service_control_housekeeping(struct asym_service *s, asym_usec now)
{
    if (now - s->control.checked < CHECK_PERIOD)
        return;
    asym_overrides_forget(s->control.overrides, has_ended);
    s->control.checked = now;
}

/* An order of a user, for a process or for each process of a job. */
struct order {
    struct asym_service *s;
    int (*give)(const struct order *o, const struct asym_taskid *proc);
    const char *what;           /* for the journal */
    enum asym_rule_action rule; /* this and the next one: of give_rule */
    uid_t by;
    size_t n;     /* processes that have taken it */
    int32_t tgid; /* the last one of them */
    int r;        /* the first failure: 0, or -errno with err */
    struct asym_error *err;
};

/* known: as the observer saw it; start 0: a number of the user. */
static void give_to(void *ctx, const struct asym_taskid *known)
{
    struct order *o = ctx;
    struct asym_taskid proc;
    struct asym_error err = {""};
    int r = identify(o->s, known->tgid, &proc, &err);
    if (r >= 0 && known->start > 0 && known->start != proc.start)
        r = asym_fail(&err, -ESRCH, "process %" PRId32 " has ended", known->tgid);
    if (r >= 0)
        r = o->give(o, &proc);
    if (r == -ENOSPC)
        asym_fail(&err, r, "%d processes have an order already: wait until one of them has ended", ASYM_OVERRIDES_MAX);
    if (r >= 0) {
        o->n++;
        o->tgid = proc.tgid;
    } else if (o->r == 0) {
        o->r = r;
        *o->err = err;
    }
}

/* The number of a job is that of its leader, which may have ended. An order by it is for each process that the job has now. */
static int give_order(struct asym_service *s, int32_t pid, struct order *o, struct asym_error *err)
{
    o->s = s;
    o->err = err;
    asym_observer_job_each(&s->observer, pid, give_to, o);
    if (o->n == 0 && o->r == 0)
        give_to(o, &(struct asym_taskid){.tid = pid, .tgid = pid});
    if (o->n > 1)
        asym_log_say(&s->run->log, LOG_NOTICE, "job %" PRId32 ", %zu processes: %s", pid, o->n, o->what);
    else if (o->n == 1)
        asym_log_say(&s->run->log, LOG_NOTICE, "process %" PRId32 ": %s", o->tgid, o->what);
    if (o->n > 0)
        take_effect(s);
    return o->n == 0 || o->r == -ENOSPC ? o->r : 0;
}

int asym_service_parse_action(const char *text, enum asym_rule_action *ret, struct asym_error *err)
{
    static const enum asym_rule_action actions[] = {ASYM_RULE_STEER, ASYM_RULE_IGNORE, ASYM_RULE_FAST, ASYM_RULE_SLOW};
    for (size_t i = 0; i < ASYM_LENGTH(actions); i++)
        if (strcmp(text, asym_rule_action_name(actions[i])) == 0) {
            *ret = actions[i];
            return 0;
        }
    return asym_fail(err, -EINVAL, "the action is not known; accepted are fast, slow, ignore, steer and auto");
}

static int give_rule(const struct order *o, const struct asym_taskid *proc)
{
    return asym_overrides_set_rule(o->s->control.overrides, proc, o->rule, o->by);
}

int asym_service_set_program(struct asym_service *s, int32_t pid, enum asym_rule_action action, uid_t by,
                             struct asym_error *err)
{
    char what[64];
    struct order o = {.give = give_rule, .what = what, .rule = action, .by = by};
    snprintf(what, sizeof what, "rule %s, set by uid %u", asym_rule_action_name(action), (unsigned)by);
    return give_order(s, pid, &o, err);
}

static int give_no_rule(const struct order *o, const struct asym_taskid *proc)
{
    return asym_overrides_unset_rule(o->s->control.overrides, proc, asym_clock_now());
}

int asym_service_unset_program(struct asym_service *s, int32_t pid, struct asym_error *err)
{
    struct order o = {.give = give_no_rule,
                      .what = "the rules of the configuration decide again, whatever masks its threads have"};
    return give_order(s, pid, &o, err);
}

/* A lasting rule for a program, as it goes into a file. */
struct lasting {
    char file[64], name[ASYM_LASTING_NAME + 5];
    char comm[ASYM_COMM_LEN], exe[4096]; /* of the process */
    char matches[256];                   /* the lines of the text that name the program */
    char text[1024];
    char before[4096]; /* the file as it was; "": there was none */
};

/* Turns a text into a glob: '?' stands for each byte that has a meaning there, or in the file. */
static void make_glob(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~' || strchr("*?[\"\\;#", *c))
            *c = '?';
}

/* Writes the name of the program as a part of the name of a file and of a rule. */
static void name_of_file(const char *program, struct lasting *l)
{
    char name[ASYM_LASTING_NAME + 1];
    snprintf(name, sizeof name, "%.*s", ASYM_LASTING_NAME, program);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-+", *c))
            *c = '_';
    snprintf(l->name, sizeof l->name, "set %s", name);
    snprintf(l->file, sizeof l->file, "50-set-%s.conf", name);
}

static int describe(const struct asym_taskid *proc, const char *action, struct lasting *ret, struct asym_error *err)
{
    char path[64], exe[LONGEST_GLOB + 1], comm[ASYM_COMM_LEN];
    static const char deleted[] = " (deleted)";
    struct asym_stat stat;
    snprintf(path, sizeof path, "/proc/%" PRId32 "/exe", proc->tgid);
    const ssize_t n = readlink(path, ret->exe, sizeof ret->exe - 1);
    const int r = n < 0 ? -errno : asym_thread_get_stat(proc->tgid, proc->tgid, &stat);
    if (n < 0 || r < 0)
        return asym_fail(err, r, "process %" PRId32 ": %s", proc->tgid, strerror(-r));
    if (stat.start != proc->start)
        return asym_fail(err, -ESRCH, "process %" PRId32 " has ended", proc->tgid);
    ret->exe[n] = '\0';
    if ((size_t)n > strlen(deleted) && strcmp(ret->exe + n - strlen(deleted), deleted) == 0)
        ret->exe[(size_t)n - strlen(deleted)] = '\0';
    if (snprintf(exe, sizeof exe, "%s", ret->exe) >= (int)sizeof exe)
        return asym_fail(err, -ENAMETOOLONG,
                         "a rule takes %d bytes, and the path is longer: write a rule with match_exe = */%.60s",
                         LONGEST_GLOB, strrchr(ret->exe, '/') + 1);
    memcpy(ret->comm, stat.comm, sizeof ret->comm);
    memcpy(comm, stat.comm, sizeof comm);
    const char *slash = strrchr(ret->exe, '/'), *base = slash ? slash + 1 : ret->exe;
    const bool is_other = strncmp(stat.comm, base, ASYM_COMM_LEN - 1) != 0;
    name_of_file(is_other ? stat.comm : base, ret);
    make_glob(exe);
    make_glob(comm);
    snprintf(ret->matches, sizeof ret->matches, "match_exe = \"%s\"\n%s%s%s", exe, is_other ? "match_comm = \"" : "",
             is_other ? comm : "", is_other ? "\"\n" : "");
    snprintf(ret->text, sizeof ret->text,
             "# asymctl set has written this file. Remove it, or: asymctl set PID auto --permanent\n"
             "[rule \"%s\"]\n%saction = %s\n",
             ret->name, ret->matches, action);
    return 0;
}

/* A program chooses its name: one that takes the name of another program must not change the rule of that. */
static int read_before(const struct asym_service *s, struct lasting *l, struct asym_error *err)
{
    char path[ASYM_PATH_SIZE];
    const int r = asym_run_read_drop_in(s->run->cli, l->file, l->before, sizeof l->before, path, err);
    if (r < 0 || !*l->before || strstr(l->before, l->matches))
        return r;
    return asym_fail(err, -EEXIST, "%.300s is of another program with this name, and stays: change it by hand", path);
}

/* The file is read after asymd.conf, whose rules come first. */
static void name_first_rule(const struct asym_service *s, const struct lasting *l, struct asym_set_rule *ret)
{
    const struct asym_rule_subject subject = {.comm = l->comm, .exe = l->exe, .uid = (uid_t)-1};
    const struct asym_rule_match found = asym_rules_match(s->run->settings->rules, &subject);
    if (found.name && strcmp(found.name, l->name) != 0)
        snprintf(ret->before, sizeof ret->before, "%s", found.name);
}

int asym_service_set_rule(struct asym_service *s, int32_t pid, const char *action, uid_t by, struct asym_set_rule *ret,
                          struct asym_error *err)
{
    const bool removes = strcmp(action, "auto") == 0;
    ASYM_AUTO_FREE struct lasting *l = malloc(sizeof *l);
    struct asym_error ignored = {""};
    enum asym_rule_action parsed;
    struct asym_taskid proc;
    ret->before[0] = '\0';
    int r = l ? 0 : asym_fail(err, -ENOMEM, "no memory");
    if (r >= 0 && !removes)
        r = asym_service_parse_action(action, &parsed, err);
    if (r >= 0)
        r = identify(s, pid, &proc, err);
    if (r >= 0)
        r = describe(&proc, action, l, err);
    if (r >= 0)
        r = read_before(s, l, err);
    if (r >= 0)
        r = asym_run_write_drop_in(s->run->cli, l->file, removes ? NULL : l->text, ret->file, err);
    if (r < 0)
        return r;
    asym_log_say(&s->run->log, LOG_NOTICE, "uid %u has %s %s", (unsigned)by, removes ? "removed" : "written",
                 ret->file);
    r = asym_service_reload(s, err);
    if (r < 0)
        asym_run_write_drop_in(s->run->cli, l->file, *l->before ? l->before : NULL, ret->file, &ignored);
    else if (!removes)
        name_first_rule(s, l, ret);
    return r;
}
