/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/policy-setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/run.h"
#include "base/mask.h"
#include "base/text.h"
#include "config/config.h"
#include "linux/observe/procfs.h"
#include "linux/sys/thread.h"
#include "report/report.h"

/* Sets why counters are missing: the probe failed, or the PMU lacks some of them. */
static void probe_counters(const struct asym_root *root, const char *missing[ASYM_N_SIGNALS])
{
    struct asym_counters_coverage coverage;
    const char *remedy;
    const unsigned ipc = 1u << ASYM_COUNTER_INSTRUCTIONS | 1u << ASYM_COUNTER_CYCLES;
    if (!root->live) {
        missing[ASYM_SIGNAL_IPC] = missing[ASYM_SIGNAL_STALL] = "a captured machine has no counters";
        return;
    }
    asym_counters_probe(root, NULL, &coverage);
    if (coverage.error < 0) {
        asym_counters_why(coverage.error, &missing[ASYM_SIGNAL_IPC], &remedy);
        missing[ASYM_SIGNAL_STALL] = missing[ASYM_SIGNAL_IPC];
        return;
    }
    missing[ASYM_SIGNAL_IPC] =
        (coverage.counters & ipc) == ipc
            ? NULL
            : "its PMU does not count instructions and cycles now: other programs may hold its counters";
    missing[ASYM_SIGNAL_STALL] = coverage.counters & 1u << ASYM_COUNTER_LLC_MISSES
                                     ? NULL
                                     : "its PMU does not count misses of the last-level cache now";
}

static int load_profiles(struct asym_capabilities *s, const char *file, struct asym_error *err)
{
    struct asym_error said = {""};
    int r = asym_profiles_load(file, &s->profiles, &said);
    s->missing[ASYM_SIGNAL_PROFILE] =
        "there are no profiles in the file of counters.profiles: asymctl profile measures programs";
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return asym_fail(err, r, "%s", said.text);
    while (asym_profiles_at(s->profiles, s->n_resolved))
        s->n_resolved++;
    s->resolved = calloc(s->n_resolved + 1, sizeof *s->resolved);
    if (!s->resolved)
        return asym_fail(err, -ENOMEM, "no memory for the profiles");
    if (s->n_resolved > 0)
        s->missing[ASYM_SIGNAL_PROFILE] = NULL;
    return 0;
}

int asym_capabilities_read(struct asym_capabilities *s, const struct asym_root *root,
                           const struct asym_machine *machine, const struct asym_settings *settings,
                           struct asym_error *err)
{
    struct asym_capabilities fresh = {.root = root};
    asym_procfs_missing(machine, fresh.missing);
    if (asym_procfs_lacks_schedstat(root))
        fresh.missing[ASYM_SIGNAL_RUNNABLE] = ASYM_PROCFS_NO_SCHEDSTAT;
    probe_counters(root, fresh.missing);
    int r = load_profiles(&fresh, settings->counters.profiles, err);
    if (r < 0) {
        asym_capabilities_done(&fresh);
        return r;
    }
    asym_capabilities_resolve(&fresh, machine);
    asym_capabilities_done(s);
    *s = fresh;
    return 0;
}

void asym_capabilities_done(struct asym_capabilities *s)
{
    asym_profiles_free(s->profiles);
    free(s->resolved);
    *s = (struct asym_capabilities){.root = NULL};
}

void asym_capabilities_resolve(struct asym_capabilities *s, const struct asym_machine *machine)
{
    for (size_t i = 0; i < s->n_resolved; i++)
        s->resolved[i] = asym_profile_of(asym_profiles_at(s->profiles, i), machine);
}

/* asymd opens an executable only if a profile has a build id to compare with. */
bool asym_capabilities_wants_build_id(void *capabilities, const char *exe)
{
    const struct asym_capabilities *s = capabilities;
    const struct asym_profile_entry *found = s->profiles ? asym_profiles_find(s->profiles, exe, NULL) : NULL;
    return found && *found->build_id;
}

const struct asym_profile *asym_capabilities_profile_of(void *capabilities, const char *exe, const char *build_id)
{
    const struct asym_capabilities *s = capabilities;
    const struct asym_profile_entry *found = s->profiles ? asym_profiles_find(s->profiles, exe, build_id) : NULL;
    for (size_t i = 0; found && i < s->n_resolved; i++)
        if (asym_profiles_at(s->profiles, i) == found)
            return &s->resolved[i];
    return NULL;
}

int asym_capabilities_counters(const struct asym_capabilities *s, const struct asym_settings *settings,
                               struct asym_counters **ret, struct asym_error *err)
{
    const struct asym_counters_config config = {
        .root = s->root, .set = ASYM_COUNTERS_HARDWARE, .max_fds = settings->counters.max_fds};
    *ret = NULL;
    return s->missing[ASYM_SIGNAL_IPC] && s->missing[ASYM_SIGNAL_STALL] ? 0 : asym_counters_new(&config, ret, err);
}

void asym_capabilities_policies(const char *const missing[ASYM_N_SIGNALS], char *buf, size_t size)
{
    struct asym_text names = asym_text_in(buf, size);
    for (size_t i = 0; asym_policy_at(i); i++)
        if (asym_policy_can_run(asym_policy_at(i), missing))
            asym_text_add(&names, "%s%s", names.used ? ", " : "", asym_policy_at(i)->name);
}

int asym_capabilities_check(const char *const missing[ASYM_N_SIGNALS], const struct asym_policy *policy,
                            struct asym_error *err)
{
    char others[512];
    asym_capabilities_policies(missing, others, sizeof others);
    if (policy->refuses)
        return asym_fail(err, -ENODATA, "policy %s cannot run on a live machine: %s. Policies that can run here: %s",
                         policy->name, policy->refuses, others);
    const enum asym_signal lacks = asym_policy_lacks(policy, missing, 0);
    if (lacks == ASYM_N_SIGNALS)
        return 0;
    return asym_fail(
        err, -ENODATA,
        "policy %s needs the signal %s, which this machine does not give: %s. Policies that can run here: %s",
        policy->name, asym_signal_name(lacks), missing[lacks], others);
}

/* A configuration can be shared by machines, and CPUs come and go: CPUs that are missing are no error. */
static void note_cpus(const struct asym_run *run)
{
    char named[128], usable[128];
    struct asym_rule_view rule;
    for (size_t i = 0; asym_rules_at(run->settings->rules, i, NULL, &rule); i++) {
        const struct asym_mask *cpus = &rule.facts->cpus;
        if (asym_mask_within(cpus, &run->machine->usable))
            continue;
        asym_mask_format_list(cpus, named, sizeof named);
        asym_mask_format_list(&run->machine->usable, usable, sizeof usable);
        asym_log_say(&run->log, LOG_NOTICE,
                     asym_mask_meets(cpus, &run->machine->usable)
                         ? "%s: the rule \"%s\" names CPUs %s, and asymd can use CPUs %s only: it leaves the others out"
                         : "%s: the rule \"%s\" names CPUs %s, and asymd can use CPUs %s only: it ignores the cpus of "
                           "this rule",
                     rule.origin, rule.name, named, usable);
    }
}

static void note_speeds(const struct asym_run *run)
{
    double speed[ASYM_MAX_CPUS];
    struct asym_mask cpus;
    char named[128];
    if (asym_speeds_parse(run->settings->machine.speeds, speed, &cpus) < 0)
        return;
    for (unsigned c = 0; c < run->machine->n_cpus; c++)
        asym_mask_clear(&cpus, c);
    if (!asym_mask_empty(&cpus))
        asym_log_say(&run->log, LOG_NOTICE, "%s: machine.speeds names CPUs %s, which this machine does not have",
                     asym_settings_origin(run->settings, "machine", "speeds"),
                     asym_mask_format_list(&cpus, named, sizeof named));
}

/* Rules know the CPUs that they name by their cache only when the machine is known. Returns how many find none. */
static size_t name_cpus(struct asym_run *run)
{
    struct asym_mask big_cache, high_clock;
    asym_machine_caches_differ(run->machine, &big_cache, &high_clock);
    return asym_rules_name_cpus(run->settings->rules, &big_cache, &high_clock, &run->machine->slow);
}

struct asym_policy_choice asym_run_choose(const struct asym_run *run, const char *name)
{
    const struct asym_alike *alike = asym_describe_alike(run->machine, &run->notes);
    const struct asym_policy_facts facts = {
        .alike = alike ? alike->why : NULL,
        .kernel_knows = asym_machine_kernel_knows(run->machine),
        .missing = run->capabilities.missing,
    };
    return asym_policy_select(name, &facts);
}

int asym_run_policy_changed(struct asym_run *run, struct asym_error *err)
{
    int r = asym_capabilities_read(&run->capabilities, &run->root, run->machine, run->settings, err);
    if (r < 0)
        return r;
    const struct asym_policy_choice choice = asym_run_choose(run, run->settings->daemon.policy);
    run->policy = choice.policy;
    run->policy_why = choice.why;
    name_cpus(run);
    return 0;
}

int asym_run_policy(struct asym_run *run, struct asym_error *err)
{
    int r = asym_run_policy_changed(run, err);
    if (r < 0)
        return r;
    note_cpus(run);
    if (name_cpus(run) > 0)
        asym_log_say(
            &run->log, LOG_NOTICE,
            "rules name big-cache or high-clock, and the L3 caches of this machine's fast cores are of one size: asymd "
            "ignores the cpus of these rules");
    note_speeds(run);
    if (!*run->settings->asymmetry.slow && asym_mask_empty(&run->slow) &&
        !asym_settings_is_default(run->settings, "asymmetry", "slow_speed"))
        asym_log_say(&run->log, LOG_NOTICE, "%s: asymmetry.slow_speed has no effect: asymmetry.slow names no CPU",
                     asym_settings_origin(run->settings, "asymmetry", "slow_speed"));
    return 0;
}

struct asym_engine_config asym_run_engine_config(const struct asym_run *run)
{
    struct asym_engine_config config = asym_settings_engine_config(run->settings, run->policy);
    config.keep_nice = run->keep_nice;
    return config;
}

/* The first option of the policy that changes nice values and is not 0; NULL: none. */
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

/* The first rule with a nice value. Returns false if there is none. */
static bool find_nice_rule(const struct asym_run *run, struct asym_rule_view *ret)
{
    for (size_t i = 0; asym_rules_at(run->settings->rules, i, NULL, ret); i++)
        if (ret->facts->has_nice)
            return true;
    return false;
}

void asym_run_check_boost(struct asym_run *run)
{
    struct asym_rule_view rule;
    const char *option = boosting_option(run);
    const int r = asym_thread_may_boost();
    run->keep_nice = r < 0;
    if (r < 0 && option)
        asym_log_say(&run->log, LOG_WARNING,
                     "policy.%s.%s has no effect, and asymd changes no nice value: it could not restore them (%s%s)",
                     run->policy->name, option, strerror(-r), r == -EPERM ? ": CAP_SYS_NICE is needed" : "");
    if (r < 0 && find_nice_rule(run, &rule))
        asym_log_say(&run->log, LOG_WARNING,
                     "%s: nice of the rule \"%s\" has no effect, and asymd changes no nice value: it could not restore "
                     "them (%s%s)",
                     rule.origin, rule.name, strerror(-r), r == -EPERM ? ": CAP_SYS_NICE is needed" : "");
}

void asym_run_done(struct asym_run *run)
{
    asym_settings_free(run->settings);
    asym_capabilities_done(&run->capabilities);
    asym_root_done(&run->root);
    asym_speed_cap_close(run->speed_cap);
    free(run->machine);
    asym_log_done(&run->log);
}
