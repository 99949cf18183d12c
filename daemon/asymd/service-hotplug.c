/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles CPUs that go online or offline, or change their abilities. */
#include "daemon/asymd/service-internal.h"

#include <string.h>

#include "app/machine-setup.h"
#include "base/mask.h"
#include "app/policy-setup.h"
#include "app/speeds.h"
#include "base/clock.h"

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
        r = asym_engine_configure(s->engine, &config);
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
    if (asym_run_machine_changed(s->run, &err) < 0) {
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
