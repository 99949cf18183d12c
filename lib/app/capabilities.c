/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/capabilities.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "core/policy-select.h"
#include "linux/observe/procfs.h"
#include "linux/perf/counters-live.h"
#include "linux/perf/counters-probe.h"

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
    asym_counters_probe(root, &coverage);
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
