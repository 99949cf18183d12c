/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "daemon/policies.h"
#include "linux/procfs.h"

/* Why no counters: of the probe, or that some are there and others not. */
static void probe_counters(const struct asym_root *root, const char *missing[ASYM_N_SIGNALS])
{
    struct asym_counters_sight sight;
    const char *remedy;
    const unsigned ipc = 1u << ASYM_COUNTER_INSTRUCTIONS | 1u << ASYM_COUNTER_CYCLES;
    if (!root->live) {
        missing[ASYM_SIGNAL_IPC] = missing[ASYM_SIGNAL_STALL] = "a captured machine has no counters";
        return;
    }
    asym_counters_probe(root, &sight);
    if (sight.error < 0) {
        asym_counters_why(sight.error, &missing[ASYM_SIGNAL_IPC], &remedy);
        missing[ASYM_SIGNAL_STALL] = missing[ASYM_SIGNAL_IPC];
        return;
    }
    missing[ASYM_SIGNAL_IPC] = (sight.counters & ipc) == ipc
                                   ? NULL
                                   : "its PMU does not count instructions and cycles now: others may hold its counters";
    missing[ASYM_SIGNAL_STALL] = sight.counters & 1u << ASYM_COUNTER_LLC_MISSES
                                     ? NULL
                                     : "its PMU does not count misses of the last-level cache now";
}

static int load_profiles(struct asym_signals *s, const char *file, struct asym_error *err)
{
    struct asym_error said = {""};
    int r = asym_profiles_load(file, &s->profiles, &said);
    s->missing[ASYM_SIGNAL_PROFILE] = "there are no profiles: asymctl profile measures programs";
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

int asym_signals_read(struct asym_signals *s, const struct asym_root *root, const struct asym_machine *machine,
                      const struct asym_settings *settings, struct asym_error *err)
{
    struct asym_signals fresh = {.root = root};
    asym_procfs_missing(machine, fresh.missing);
    if (asym_procfs_lacks_schedstat(root))
        fresh.missing[ASYM_SIGNAL_RUNNABLE] = ASYM_PROCFS_NO_SCHEDSTAT;
    probe_counters(root, fresh.missing);
    int r = load_profiles(&fresh, settings->counters.profiles, err);
    if (r < 0) {
        asym_signals_done(&fresh);
        return r;
    }
    asym_signals_resolve(&fresh, machine);
    asym_signals_done(s);
    *s = fresh;
    return 0;
}

void asym_signals_done(struct asym_signals *s)
{
    asym_profiles_free(s->profiles);
    free(s->resolved);
    *s = (struct asym_signals){.root = NULL};
}

void asym_signals_resolve(struct asym_signals *s, const struct asym_machine *machine)
{
    for (size_t i = 0; i < s->n_resolved; i++)
        s->resolved[i] = asym_profile_of(asym_profiles_at(s->profiles, i), machine);
}

/* The executable is opened only where there is something to compare with. */
bool asym_signals_wants_build_id(void *signals, const char *exe)
{
    const struct asym_signals *s = signals;
    const struct asym_profile_entry *found = s->profiles ? asym_profiles_find(s->profiles, exe, NULL) : NULL;
    return found && *found->build_id;
}

const struct asym_profile *asym_signals_profile_of(void *signals, const char *exe, const char *build_id)
{
    const struct asym_signals *s = signals;
    const struct asym_profile_entry *found = s->profiles ? asym_profiles_find(s->profiles, exe, build_id) : NULL;
    for (size_t i = 0; found && i < s->n_resolved; i++)
        if (asym_profiles_at(s->profiles, i) == found)
            return &s->resolved[i];
    return NULL;
}

int asym_signals_counters(const struct asym_signals *s, const struct asym_settings *settings,
                          struct asym_counters **ret, struct asym_error *err)
{
    const struct asym_counters_config config = {
        .root = s->root, .set = ASYM_COUNTERS_HARDWARE, .max_fds = settings->counters.max_fds};
    *ret = NULL;
    return s->missing[ASYM_SIGNAL_IPC] && s->missing[ASYM_SIGNAL_STALL] ? 0 : asym_counters_new(&config, ret, err);
}

void asym_signals_policies(const char *const missing[ASYM_N_SIGNALS], char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; asym_policy_at(i); i++) {
        const struct asym_policy *policy = asym_policy_at(i);
        int n = asym_policies_can_run(policy, missing)
                    ? snprintf(buf + used, size - used, "%s%s", used ? ", " : "", policy->name)
                    : 0;
        if (n > 0 && (size_t)n < size - used)
            used += (size_t)n;
    }
    buf[used] = '\0';
}

int asym_signals_check(const char *const missing[ASYM_N_SIGNALS], const struct asym_policy *policy,
                       struct asym_error *err)
{
    char others[512];
    asym_signals_policies(missing, others, sizeof others);
    if (policy->refuses)
        return asym_fail(err, -ENODATA, "policy %s cannot run on a live machine: %s. Policies that can run here: %s",
                         policy->name, policy->refuses, others);
    for (int k = 0; k < ASYM_N_SIGNALS; k++) {
        if (!(policy->needs >> k & 1) || !missing[k])
            continue;
        return asym_fail(
            err, -ENODATA,
            "policy %s needs the signal %s, which this machine does not give: %s. Policies that can run here: %s",
            policy->name, asym_signal_name((enum asym_signal)k), missing[k], others);
    }
    return 0;
}
