/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes while asymd runs: of its settings, of which it uses all of the new ones or none, and of the CPUs. */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/policy-setup.h"
#include "app/crash-recovery.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"

/* After hotplug, reapply or release frequency caps, then select the policy again. */
static void update_speeds(struct asym_service *s)
{
    struct asym_error err = {""};
    const struct asym_policy *before = s->run->policy;
    asym_speeds_update(s->run);
    int r = asym_speeds_hold(s->run, &err);
    if (r >= 0)
        r = asym_run_policy_changed(s->run, &err);
    if (r >= 0 && s->run->policy != before) {
        const struct asym_engine_config config = asym_run_engine_config(s->run);
        r = asym_engine_configure(s->cycle.engine, &config);
        asym_log_say(&s->run->log, LOG_NOTICE, "policy %s: %s", s->run->policy->name, s->run->policy_why);
    }
    if (r < 0)
        asym_log_say(&s->run->log, LOG_ERR, "CPUs changed: %s", *err.text ? err.text : strerror(-r));
    /* Processes point to profiles, and asym_run_policy_changed has read these again. */
    asym_observer_set_rules(&s->observer, s->run->settings);
    asym_service_changed(s);
}

/* The engine sees the new generation of the machine and plans with it in the next cycle. */
void asym_service_update_cpus(struct asym_service *s)
{
    char usable[256];
    struct asym_error err = {""};
    const uint64_t abilities = asym_watch_abilities(&s->run->root);
    const bool others = asym_watch_facts_changed(&s->cpu_facts, &s->run->root, &s->run->machine->online,
                                                 asym_clock_now()) ||
                        s->abilities != abilities;
    const bool came_or_went = asym_watch_changed(&s->run->root, s->run->machine);
    if (!came_or_went && !others)
        return;
    s->abilities = abilities;
    if (asym_run_machine(s->run, false, &err) < 0) {
        if (!s->cpus_failed)
            asym_log_say(&s->run->log, LOG_ERR, "CPUs changed, and asymd cannot read the machine: %s", err.text);
        s->cpus_failed = true;
        return;
    }
    s->cpus_failed = false;
    update_speeds(s);
    if (others)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "the abilities of CPUs have changed: turbo, driver, rank, capacity or maximum frequency");
    if (came_or_went)
        asym_watch_read_facts(&s->cpu_facts, &s->run->root, &s->run->machine->online, asym_clock_now());
    asym_log_say(&s->run->log, LOG_NOTICE, "the usable CPUs are now %s",
                 asym_mask_format_list(&s->run->machine->usable, usable, sizeof usable));
}

/* Roll back to the previous configuration; log what cannot be restored. */
static void go_back(struct asym_service *s, struct asym_settings *old, const struct asym_policy *policy,
                    const char *why)
{
    struct asym_error err = {""};
    s->run->settings = old;
    int r = asym_run_machine(s->run, true, &err);
    if (r >= 0)
        r = asym_capabilities_read(&s->run->capabilities, &s->run->root, s->run->machine, old, &err);
    if (r >= 0)
        r = asym_speeds_hold(s->run, &err);
    if (r < 0)
        asym_log_say(&s->run->log, LOG_ERR, "cannot restore the previous configuration: %s", err.text);
    /* The engine keeps its policy, even if auto would select another one now. */
    s->run->policy = policy;
    s->run->policy_why = why;
    /* Processes point to profiles, and asymd may have read these again. */
    asym_observer_set_rules(&s->observer, old);
}

/*
 * Applies the settings to the machine, the policy, the frequency caps, the counters, then the engine. Each step can fail. select:
 * asym_run_policy for a new configuration, else asym_run_policy_changed.
 */
static int put_in_force(struct asym_service *s, int (*select)(struct asym_run *run, struct asym_error *err),
                        struct asym_counters **ret_counters, struct asym_error *err)
{
    int r = asym_run_machine(s->run, true, err);
    if (r >= 0)
        r = select(s->run, err);
    if (r >= 0)
        r = asym_capabilities_check(s->run->capabilities.missing, s->run->policy, err);
    if (r >= 0)
        r = asym_speeds_hold(s->run, err);
    if (r >= 0)
        r = asym_capabilities_counters(&s->run->capabilities, s->run->settings, ret_counters, err);
    if (r < 0)
        return r;
    asym_run_check_boost(s->run);
    const struct asym_engine_config config = asym_run_engine_config(s->run);
    r = asym_engine_configure(s->cycle.engine, &config);
    if (r < 0 && *ret_counters)
        (*ret_counters)->close(*ret_counters);
    return r < 0 ? asym_fail(err, r, "no memory for the new configuration") : 0;
}

/* On any failure asymd keeps the old settings. */
static int adopt(struct asym_service *s, struct asym_settings *fresh, struct asym_error *err)
{
    struct asym_settings *old = s->run->settings;
    const struct asym_policy *policy = s->run->policy;
    const char *why = s->run->policy_why;
    struct asym_counters *counters = NULL;
    if (strcmp(fresh->daemon.state_dir, old->daemon.state_dir) != 0)
        return asym_fail(err, -EINVAL, "asymd.state_dir cannot change while asymd runs: restart it");
    if (fresh->daemon.observer != old->daemon.observer)
        return asym_fail(err, -EINVAL, "asymd.observer cannot change while asymd runs: restart it");
    if (fresh->rtx.listen != old->rtx.listen)
        return asym_fail(err, -EINVAL, "rtx.listen cannot change while asymd runs: restart it");
    s->run->settings = fresh;
    int r = put_in_force(s, asym_run_policy, &counters, err);
    if (r < 0) {
        go_back(s, old, policy, why);
        return r;
    }
    asym_log_set_level(&s->run->log, fresh->daemon.log_level);
    asym_observer_adopt(&s->observer, s->run, counters);
    asym_settings_free(old);
    return 0;
}

/* name: a policy or "auto", so that the assignment is well formed. */
static int set_policy(struct asym_settings *settings, const char *name, const char *origin, struct asym_error *err)
{
    char text[128];
    snprintf(text, sizeof text, "asymd.policy=%.100s", name);
    return asym_settings_set(settings, text, origin, err);
}

int asym_service_switch_policy(struct asym_service *s, const char *name, const char *origin, struct asym_error *err)
{
    struct asym_settings *settings = s->run->settings;
    const struct asym_policy *policy = s->run->policy;
    const char *why = s->run->policy_why;
    struct asym_counters *counters = NULL;
    struct asym_error ignored = {""};
    ASYM_AUTO_FREE char *before = strdup(settings->daemon.policy);
    ASYM_AUTO_FREE char *origin_before = strdup(asym_settings_origin(settings, "asymd", "policy"));
    if (!before || !origin_before)
        return asym_fail(err, -ENOMEM, "no memory for the name of the policy");
    int r = set_policy(settings, name, origin, err);
    if (r >= 0)
        r = put_in_force(s, asym_run_policy_changed, &counters, err);
    if (r < 0) {
        set_policy(settings, before, origin_before, &ignored);
        go_back(s, settings, policy, why);
        return r;
    }
    asym_observer_adopt(&s->observer, s->run, counters);
    return 0;
}

/* A policy that the user has set while asymd runs outlives a reload. */
static int read_settings(struct asym_service *s, struct asym_error *err)
{
    struct asym_settings *fresh = NULL;
    int r = asym_run_settings(s->run->cli, false, &fresh, err);
    if (r >= 0 && s->control.policy)
        r = set_policy(fresh, s->control.policy, ASYM_ORIGIN_OF_ORDERS, err);
    if (r >= 0)
        r = adopt(s, fresh, err);
    if (r < 0)
        asym_settings_free(fresh);
    return r;
}

int asym_service_on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
    struct asym_error err = {""};
    asym_service_reload(userdata, &err);
    return 0;
}

static void log_reload(const struct asym_service *s)
{
    const size_t n = asym_overrides_count(s->control.overrides);
    struct asym_service_facts facts;
    char orders[96] = "";
    asym_service_facts(s, &facts);
    if (n > 0)
        snprintf(orders, sizeof orders, "; orders for %zu process%s still hold", n, n == 1 ? "" : "es");
    asym_log_say(&s->run->log, LOG_NOTICE, "asymd has read the configuration again; policy %s (%s)%s%s", facts.policy,
                 facts.policy_reason, orders, facts.paused ? "; asymd is still paused" : "");
    asym_service_log_rules(s);
}

int asym_service_reload(struct asym_service *s, struct asym_error *err)
{
    char state[ASYM_NOTIFY_STATE_SIZE];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, asym_clock_now());
    asym_notify_state(&s->notify, state);
    int r = read_settings(s, err);
    snprintf(s->reload_error, sizeof s->reload_error, "%.255s", r < 0 ? err->text : "");
    if (r < 0)
        asym_log_say(&s->run->log, LOG_ERR, "%s; asymd keeps the previous configuration", err->text);
    else
        log_reload(s);
    asym_notify_state(&s->notify, "READY=1");
    asym_service_status(s);
    asym_service_changed(s);
    return r;
}
