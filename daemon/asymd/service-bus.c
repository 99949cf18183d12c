/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/settings-setup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "bus/bus.h"
#include "daemon/asymd/bus-report.h"
#include "daemon/asymd/service-control.h"
#include "daemon/asymd/service-internal.h"
#include "linux/observe/proc-owner.h"
#include "linux/sys/cgroup-mounts.h"

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

/* Write the properties whose changes the bus announces. Their texts are copies: a change frees the originals. */
static void read_announced(const struct asym_service *s, struct asym_bus_announced *ret)
{
    struct asym_service_facts f;
    asym_service_facts(s, &f);
    *ret = (struct asym_bus_announced){
        .paused = f.paused, .paused_until = f.paused_until, .threads_steered = f.threads_steered};
    snprintf(ret->policy, sizeof ret->policy, "%s", f.policy);
    snprintf(ret->policy_reason, sizeof ret->policy_reason, "%s", f.policy_reason);
}

static void announce_changes(struct asym_service *s)
{
    struct asym_bus_announced now;
    const struct asym_bus_announced *before = &s->announced;
    read_announced(s, &now);
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
    read_announced(s, &s->announced);
    asym_service_listen(s, on_change);
}

void asym_service_bus_close(struct asym_service *s)
{
    if (!s->bus)
        return;
    asym_service_listen(s, NULL);
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
