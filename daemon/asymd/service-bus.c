/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/service-bus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/install-paths.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "bus/bus.h"
#include "daemon/asymd/bus-describe.h"
#include "daemon/asymd/bus-manager.h"
#include "daemon/asymd/service-control.h"
#include "daemon/asymd/service-internal.h"
#include "linux/observe/proc-owner.h"

/* The format is the kind for the log's rate limit. What users provoke must not push out what happens to the system bus. */
static void say(void *userdata, enum asym_bus_topic topic, int priority, const char *text)
{
    const struct asym_service *s = userdata;
    if (topic == ASYM_BUS_SYSTEM)
        asym_log_say(&s->run->log, priority, "system bus: %s", text);
    else
        asym_log_say(&s->run->log, priority, "bus: %s", text);
}

/* Where /proc hides processes, only their owners and root get their decisions. */
static uid_t seen_by(const struct asym_service *s, const struct asym_taskid *id)
{
    uint32_t uid;
    if (!s->hidepid.hides)
        return ASYM_BUS_ALL_USERS;
    return asym_proc_owner_of(&s->run->root, id, &uid) < 0 ? 0 : (uid_t)uid;
}

/* The administrator can mount /proc again at any time. */
static void update_hidepid(struct asym_service *s, asym_usec now)
{
    const int r = asym_hidepid_watch_update(&s->hidepid, now);
    if (r < 0 && r != -EAGAIN)
        asym_log_say(&s->run->log, LOG_WARNING, "asymd cannot read the mount options of /proc: %s; ordinary users %s",
                     strerror(-r), s->hidepid.hides ? "see only their own processes" : "see all processes");
}

static void on_decision(void *ctx, const struct asym_monitor_decision *decision)
{
    struct asym_service *s = ctx;
    if (!asym_bus_has_subscribers(s->bus))
        return;
    const struct asym_bus_decision event = {*decision, asym_service_realtime(decision->time)};
    asym_bus_push(s->bus, &event, seen_by(s, &decision->id));
}

/* Write the properties whose changes the bus announces. Their texts are copies: a change frees the originals. */
static void read_announced(const struct asym_service *s, struct asym_bus_announced *ret)
{
    struct asym_service_facts f;
    struct asym_monitor_totals totals;
    asym_service_facts(s, &f);
    asym_monitor_totals(asym_service_monitor(s), &totals);
    *ret = (struct asym_bus_announced){.fast = f.machine->fast,
                                       .slow = f.machine->slow,
                                       .paused = f.paused,
                                       .paused_until = f.paused_until,
                                       .interval = f.interval,
                                       .threads_steered = f.threads_steered,
                                       .changes = totals.changes,
                                       .cpu_usage = f.cpu_usage};
    snprintf(ret->policy, sizeof ret->policy, "%s", f.policy);
    snprintf(ret->policy_reason, sizeof ret->policy_reason, "%s", f.policy_reason);
    snprintf(ret->observer, sizeof ret->observer, "%s", f.observer);
    snprintf(ret->profile, sizeof ret->profile, "%s", f.profile);
}

/* While asymd is about at its CPU budget, the interval changes a little each second: that wakes no client. */
static bool is_other_interval(const struct asym_service *s, asym_usec now, asym_usec before)
{
    const bool is_far = now > before + before / 10 || now < before - before / 10;
    return now != before && (is_far || now == s->run->settings->daemon.interval);
}

/* The usage changes each second: only a change of a tenth of the budget wakes clients. */
static bool is_other_usage(const struct asym_service *s, double now, double before)
{
    return fabs(now - before) >= s->run->settings->daemon.cpu_budget / 100 / 10;
}

/* Write the announced value in the place of one that has changed a little, so that small changes add up. */
static void keep_announced(const struct asym_service *s, struct asym_bus_announced *now)
{
    const struct asym_bus_announced *before = &s->announced;
    if (!is_other_interval(s, now->interval, before->interval))
        now->interval = before->interval;
    if (!is_other_usage(s, now->cpu_usage, before->cpu_usage))
        now->cpu_usage = before->cpu_usage;
}

/*
 * Announce what has changed since the last time: counters only while a client has subscribed, because each signal on the system
 * bus wakes the bus daemon.
 */
static void announce_changes(void *ctx)
{
    struct asym_service *s = ctx;
    struct asym_bus_announced now;
    const struct asym_bus_announced *before = &s->announced;
    read_announced(s, &now);
    keep_announced(s, &now);
    const bool is_heard = asym_bus_has_subscribers(s->bus);
    const struct {
        const char *name;
        bool differs;
    } rows[] = {
        {"Policy", strcmp(now.policy, before->policy) != 0},
        {"PolicyReason", strcmp(now.policy_reason, before->policy_reason) != 0},
        {"FastCPUs", !asym_mask_equal(&now.fast, &before->fast)},
        {"SlowCPUs", !asym_mask_equal(&now.slow, &before->slow)},
        {"ThreadsSteered", is_heard && now.threads_steered != before->threads_steered},
        {"Changes", is_heard && now.changes != before->changes},
        {"Interval", now.interval != before->interval},
        {"CPUUsage", is_heard && is_other_usage(s, now.cpu_usage, before->cpu_usage)},
        {"Paused", now.paused != before->paused},
        {"PausedUntil", now.paused_until != before->paused_until},
        {"Observer", strcmp(now.observer, before->observer) != 0},
        {"Profile", strcmp(now.profile, before->profile) != 0},
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
        .event_size = sizeof(struct asym_bus_decision),
        .signal = "Decision",
        .append = asym_bus_manager_append_decision,
        .say = say,
    };
    if (asym_bus_open(&config, &s->bus, &err) < 0) {
        asym_log_say(&s->run->log, LOG_WARNING, "users cannot ask asymd: %s", err.text);
        return;
    }
    s->owners = calloc(1, sizeof *s->owners);
    const asym_usec now = asym_clock_now();
    asym_hidepid_watch_init(&s->hidepid, asym_path(ASYM_PATH_HELPER, s->helper), now);
    update_hidepid(s, now);
    read_announced(s, &s->announced);
    const struct asym_service_listener listener = {.decision = on_decision, .changed = announce_changes, .ctx = s};
    asym_service_listen(s, &listener);
}

void asym_service_bus_close(struct asym_service *s)
{
    if (!s->bus)
        return;
    asym_service_listen(s, NULL);
    asym_bus_close(ASYM_TAKE(s->bus));
    free(ASYM_TAKE(s->owners));
    asym_hidepid_watch_done(&s->hidepid);
}

void asym_service_bus_housekeeping(struct asym_service *s, asym_usec now)
{
    if (!s->bus)
        return;
    update_hidepid(s, now);
    announce_changes(s);
    asym_bus_housekeeping(s->bus, now);
}
