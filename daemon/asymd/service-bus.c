/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymd/service-internal.h"
#include "linux/sys/cgroup-mounts.h"

/* The table of org.asymd.Manager, and the functions behind its rows. tests/unit/asymd/test-service-bus.c has its XML. */

enum { TEXT_SIZE = 1024 };

int asym_bus_manager_fail(sd_bus_error *error, int r, const struct asym_error *err)
{
    const char *name = r == -ESRCH     ? ASYM_BUS_ERROR_NO_SUCH_PROCESS
                       : r == -EINVAL  ? SD_BUS_ERROR_INVALID_ARGS
                       : r == -ENODATA ? ASYM_BUS_ERROR_NO_SIGNAL
                                       : ASYM_BUS_ERROR_NOT_POSSIBLE;
    char text[TEXT_SIZE];
    sd_bus_error_set(error, name, *err->text ? asym_text_show(err->text, text, sizeof text) : strerror(-r));
    return r;
}

/* Properties. */

static int append_text(sd_bus_message *reply, const char *text)
{
    char valid[4096];
    return sd_bus_message_append(reply, "s", asym_text_show(text ? text : "", valid, sizeof valid));
}

/* A getter reads only the facts of its property: any user can call it as often as the user likes. */

static struct asym_service_facts facts(void *link)
{
    struct asym_service_facts f;
    asym_service_facts(asym_bus_userdata(link), &f);
    return f;
}

/* A getter of sd-bus: append the expression. */
#define GETTER(name, append)                                                                                           \
    static int get_##name(sd_bus *bus, const char *path, const char *interface, const char *property,                  \
                          sd_bus_message *reply, void *link, sd_bus_error *error)                                      \
    {                                                                                                                  \
        (void)bus, (void)path, (void)interface, (void)property, (void)link, (void)error;                               \
        return append;                                                                                                 \
    }

GETTER(version, append_text(reply, ASYM_VERSION))
GETTER(policy, append_text(reply, facts(link).policy))
GETTER(policy_reason, append_text(reply, facts(link).policy_reason))
GETTER(threads_steered, sd_bus_message_append(reply, "u", facts(link).threads_steered))
GETTER(paused, sd_bus_message_append(reply, "b", (int)facts(link).paused))
GETTER(paused_until, sd_bus_message_append(reply, "t", facts(link).paused_until))

/* Methods that read. */

/* A number of a process or thread that the kernel could give. */
static int read_id(sd_bus_message *m, int32_t *ret)
{
    uint32_t id;
    int r = sd_bus_message_read(m, "u", &id);
    if (r < 0)
        return r;
    *ret = id > 0 && id <= INT_MAX ? (int32_t)id : -1;
    return 0;
}

/* The same answer for a process that does not exist and for one that the caller may not see. */
static int unknown(const struct asym_service *s, sd_bus_error *error)
{
    return sd_bus_error_set(
        error, ASYM_BUS_ERROR_NO_SUCH_PROCESS,
        s->run->cli->n_pids > 0
            ? "asymd knows no such process or thread: it follows only the processes of its --pid, once they have run"
            : "asymd knows no such process or thread: it has ended, or has not run since asymd "
              "started");
}

/* The texts of a configuration may be no UTF-8, so the answer is bytes. */
static int get_configuration(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller,
                             sd_bus_error *error)
{
    const struct asym_service *s = userdata;
    ASYM_AUTO_FREE char *text = NULL;
    size_t size = 0;
    sd_bus_message *reply = NULL;
    FILE *out = open_memstream(&text, &size);
    int r = out ? asym_settings_print(s->run->settings, out) : -ENOMEM;
    if (out && asym_close_text(out, &text) < 0 && r >= 0)
        r = -ENOMEM;
    if (r >= 0)
        r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = sd_bus_message_append_array(reply, 'y', text, size);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r;
}

static int get_report(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    ASYM_AUTO_FREE char *json = NULL;
    const char *topic;
    uint64_t argument;
    int r = sd_bus_message_read(m, "st", &topic, &argument);
    if (r >= 0)
        r = asym_bus_report(userdata, caller, topic, argument, asym_clock_now(), &json);
    if (r == -EINVAL)
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "there is no report on this topic, or it takes no argument");
    if (r == -ESRCH)
        return unknown(userdata, error);
    return r < 0 ? r : sd_bus_reply_method_return(m, "s", json);
}

/* Methods that change something. */

static int answer(sd_bus_message *m, int r, const struct asym_error *err, sd_bus_error *error)
{
    return r < 0 ? asym_bus_manager_fail(error, r, err) : sd_bus_reply_method_return(m, "");
}

static int set_policy(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    struct asym_error err = {""};
    const char *name;
    int permanent;
    int r = sd_bus_message_read(m, "sb", &name, &permanent);
    if (r >= 0)
        r = asym_service_set_policy(userdata, name, permanent, caller->uid, &err);
    return answer(m, r, &err, error);
}

static int pause_steering(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    struct asym_error err = {""};
    uint64_t seconds;
    int r = sd_bus_message_read(m, "t", &seconds);
    if (r >= 0)
        r = asym_service_pause(userdata, seconds, &err);
    return answer(m, r, &err, error);
}

static int resume(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    asym_service_resume(userdata);
    return sd_bus_reply_method_return(m, "");
}

static int reload(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    struct asym_error err = {""};
    int r = asym_service_reload(userdata, &err);
    if (r >= 0)
        return sd_bus_reply_method_return(m, "");
    /* A bad configuration is no bad argument. */
    return asym_bus_manager_fail(error, r == -EINVAL || r == -ESRCH ? -EOPNOTSUPP : r, &err);
}

static int set_program(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    struct asym_error err = {""};
    enum asym_rule_action action;
    const char *text;
    int32_t pid = -1;
    int r = read_id(m, &pid);
    if (r >= 0)
        r = sd_bus_message_read(m, "s", &text);
    if (r >= 0 && pid < 0)
        return unknown(userdata, error);
    if (r >= 0 && strcmp(text, "auto") == 0)
        return answer(m, asym_service_unset_program(userdata, pid, &err), &err, error);
    if (r >= 0)
        r = asym_service_parse_action(text, &action, &err);
    if (r >= 0)
        r = asym_service_set_program(userdata, pid, action, caller->uid, &err);
    return answer(m, r, &err, error);
}

static int set_rule(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error)
{
    struct asym_error err = {""};
    struct asym_set_rule set;
    char file[4 * sizeof set.file], before[4 * sizeof set.before];
    const char *action;
    int32_t pid;
    int r = read_id(m, &pid);
    if (r >= 0)
        r = sd_bus_message_read(m, "s", &action);
    if (r >= 0 && pid < 0)
        return unknown(userdata, error);
    if (r >= 0)
        r = asym_service_set_rule(userdata, pid, action, caller->uid, &set, &err);
    return r < 0 ? asym_bus_manager_fail(error, r, &err)
                 : sd_bus_reply_method_return(m, "ss", asym_text_show(set.file, file, sizeof file),
                                              asym_text_show(set.before, before, sizeof before));
}

/* The methods: the name, whether it needs a privilege, the function, the arguments and the results. */
/* clang-format off */
#define METHODS(row)                                                                                                   \
    row("SetPolicy", true, set_policy, ("s", name, "b", permanent), (NULL))                                            \
    row("Pause", true, pause_steering, ("t", seconds), (NULL))                                                         \
    row("Resume", true, resume, (NULL), (NULL))                                                                        \
    row("Reload", true, reload, (NULL), (NULL))                                                                        \
    row("SetProgram", true, set_program, ("u", pid, "s", action), (NULL))                                              \
    row("SetRule", true, set_rule, ("u", pid, "s", action), ("s", file, "s", before))                                  \
    row("GetConfiguration", false, get_configuration, (NULL), ("ay", ini))                                             \
    row("GetReport", false, get_report, ("s", topic, "t", argument), ("s", json))
/* clang-format on */

#define RUN(name, manages, run, arguments, results) {name, manages, run},
#define DESCRIBE(name, manages, run, arguments, results)                                                               \
    SD_BUS_METHOD_WITH_ARGS(name, SD_BUS_ARGS arguments, SD_BUS_RESULT results, asym_bus_on_method,                    \
                            SD_BUS_VTABLE_UNPRIVILEGED),

const struct asym_bus_method asym_bus_manager_methods[] = {METHODS(RUN){NULL, false, NULL}};

/* The privileges stand in METHODS: sd-bus would ask the bus daemon, and wait for the answer. */
#define CHANGES                             SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define PROPERTY(name, type, getter, flags) SD_BUS_PROPERTY(name, type, get_##getter, 0, flags)

const sd_bus_vtable asym_bus_manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    PROPERTY("Version", "s", version, SD_BUS_VTABLE_PROPERTY_CONST),
    PROPERTY("Policy", "s", policy, CHANGES),
    PROPERTY("PolicyReason", "s", policy_reason, CHANGES),
    PROPERTY("ThreadsSteered", "u", threads_steered, CHANGES),
    PROPERTY("Paused", "b", paused, CHANGES),
    PROPERTY("PausedUntil", "t", paused_until, CHANGES),
    METHODS(DESCRIBE) SD_BUS_VTABLE_END,
};

/* The format is the kind for the log's rate limit. What users provoke must not push out what happens to the system bus. */
static void say(void *userdata, enum asym_bus_topic topic, int priority, const char *text)
{
    const struct asym_service *s = userdata;
    if (topic == ASYM_BUS_SYSTEM)
        asym_log_say(&s->run->log, priority, "system bus: %s", text);
    else
        asym_log_say(&s->run->log, priority, "bus: %s", text);
}

/* A user can make a read of the mounts wait for seconds: asymd has read them when it started, before it served a user. */
static void note_hidepid(struct asym_service *s)
{
    struct asym_cgroup_mounts mounts;
    asym_cgroup_mounts_read(&s->run->root, &mounts);
    s->hidepid = !mounts.is_known || *mounts.hidepid;
    if (!mounts.is_known)
        asym_log_say(&s->run->log, LOG_WARNING,
                     "asymd cannot read the mount options of /proc: ordinary users see only their own processes");
}

static void announce_changes(struct asym_service *s)
{
    struct asym_service_facts now;
    const struct asym_service_facts *before = &s->announced;
    asym_service_facts(s, &now);
    const struct {
        const char *name;
        bool differs;
    } rows[] = {
        {"Policy", strcmp(now.policy, before->policy) != 0},
        {"PolicyReason", strcmp(now.policy_reason, before->policy_reason) != 0},
        {"ThreadsSteered", now.threads_steered != before->threads_steered},
        {"Paused", now.paused != before->paused},
        {"PausedUntil", now.paused_until != before->paused_until},
    };
    char *names[ASYM_LENGTH(rows) + 1] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].differs)
            names[n++] = (char *)(uintptr_t)rows[i].name;
    s->announced = now;
    if (n > 0)
        asym_bus_emit_changed(s->bus, names);
}

/* An order has changed something: the next report says so. */
static void on_change(struct asym_service *s)
{
    asym_bus_report_forget(s, UINT64_MAX);
    announce_changes(s);
}

static bool hides(void *userdata)
{
    return ((const struct asym_service *)userdata)->hidepid;
}

void asym_service_bus_open(struct asym_service *s)
{
    struct asym_error err = {""};
    const struct asym_bus_config config = {
        .event = s->event,
        .dir = s->run->settings->daemon.state_dir,
        .share = s->run->settings->daemon.cpu_budget / 100,
        .vtable = asym_bus_manager_vtable,
        .methods = asym_bus_manager_methods,
        .userdata = s,
        .hides = hides,
        .say = say,
    };
    if (asym_bus_open(&config, &s->bus, &err) < 0) {
        asym_log_say(&s->run->log, LOG_WARNING, "users cannot ask asymd: %s", err.text);
        return;
    }
    s->owners = calloc(1, sizeof *s->owners);
    note_hidepid(s);
    asym_service_facts(s, &s->announced);
    s->control.changed = on_change;
}

void asym_service_bus_close(struct asym_service *s)
{
    if (!s->bus)
        return;
    s->control.changed = NULL;
    asym_bus_close(ASYM_TAKE(s->bus));
    free(ASYM_TAKE(s->owners));
    asym_bus_report_forget(s, UINT64_MAX);
}

void asym_service_bus_housekeeping(struct asym_service *s, asym_usec now)
{
    if (!s->bus)
        return;
    asym_bus_report_forget(s, now - ASYM_BUS_KEEP);
    announce_changes(s);
    asym_bus_housekeeping(s->bus, now);
}
