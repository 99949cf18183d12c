/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Finds the signals that this run has beyond /proc (counters and profiles), selects the policy by them (core/machine-situation.h),
 * and makes the engine's configuration.
 */
#ifndef ASYM_APP_POLICY_SETUP_H
#define ASYM_APP_POLICY_SETUP_H

#include <stddef.h>

#include <asym/engine.h>
#include <asym/types.h>
#include <asym/machine.h>
#include <asym/policy.h>
#include <asym/signal.h>

#include "config/settings.h"
#include "core/machine-situation.h"
#include "linux/perf/counters.h"
#include "linux/sys/root.h"
#include "profile/profiles.h"

struct asym_run;

/** All zero: not read yet. */
struct asym_capabilities {
    const char *missing[ASYM_N_SIGNALS]; /**< NULL: the machine gives the signal; else why not. Static */
    const struct asym_root *root;        /**< borrowed */
    struct asym_profiles *profiles;      /**< NULL: there are none */
    struct asym_profile *resolved;       /**< for the machine's core types, in the order of the file; addresses stay */
    size_t n_resolved;
};

/**
 * Read which signals this machine gives. The file of profiles may be missing. Returns 0; -errno with err, and leaves *s as it
 * was: the file exists, but asymd cannot parse it.
 */
int asym_capabilities_read(struct asym_capabilities *s, const struct asym_root *root,
                           const struct asym_machine *machine, const struct asym_settings *settings,
                           struct asym_error *err);
void asym_capabilities_done(struct asym_capabilities *s);

/** Resolve the profiles again after a change of the core types of the machine. */
void asym_capabilities_resolve(struct asym_capabilities *s, const struct asym_machine *machine);

/** Callbacks for asym_procfs_config.profile_of and wants_build_id. s is a struct asym_capabilities. */
const struct asym_profile *asym_capabilities_profile_of(void *s, const char *exe, const char *build_id);
bool asym_capabilities_wants_build_id(void *s, const char *exe);

/** Open counters for as many threads as counters.max_fds allows; *ret is NULL if there are none. Returns 0; -errno with err. */
int asym_capabilities_counters(const struct asym_capabilities *s, const struct asym_settings *settings,
                               struct asym_counters **ret, struct asym_error *err);

/** Returns 0; -ENODATA with err: why the policy cannot run (it refuses, or lacks a signal), and which policies can. */
int asym_capabilities_check(const char *const missing[ASYM_N_SIGNALS], const struct asym_policy *policy,
                            struct asym_error *err);

/** Write the names of the policies that lack no signal, separated by commas. */
void asym_capabilities_policies(const char *const missing[ASYM_N_SIGNALS], char *buf, size_t size);

/**
 * Read which signals this machine gives, and select the policy. Logs the notices on the configuration, such as CPUs of rules
 * that the machine does not have: call it once for each configuration. Returns 0; -errno with err: asymd cannot parse the file
 * of profiles, and *run is unchanged.
 */
int asym_run_policy(struct asym_run *run, struct asym_error *err);

/** Returns the policy that asymd chooses for run by that name: "auto", or the name of a policy. */
struct asym_policy_choice asym_run_choose(const struct asym_run *run, const char *name);

/** Do the same after hotplug or a change of the policy. Logs nothing: asymd has logged the notices on the configuration before. */
int asym_run_policy_changed(struct asym_run *run, struct asym_error *err);

/**
 * Check whether asymd may restore nice values; call this before asymd changes anything. If it may not, asymd changes no nice
 * value, and logs this if the policy or a rule would change one. Without CAP_SYS_NICE asymd may be able to lower a nice value
 * and to set SCHED_RESET_ON_FORK, but can undo neither.
 */
void asym_run_check_boost(struct asym_run *run);

/** Returns the engine's configuration for the policy and the settings of run. It points into them. */
struct asym_engine_config asym_run_engine_config(const struct asym_run *run);

/** Free what the run owns. It may be set up in part. */
void asym_run_done(struct asym_run *run);

#endif
