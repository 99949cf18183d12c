/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Selects the policy of a run by the signals of this machine (core/policy-select.h), and makes the engine's configuration. */
#ifndef ASYM_APP_POLICY_SETUP_H
#define ASYM_APP_POLICY_SETUP_H

#include <asym/engine.h>
#include <asym/error.h>

#include "app/run.h"

/**
 * Read which signals this machine gives, and select the policy. Logs the notices on the configuration, such as CPUs of rules
 * that the machine does not have: call it once for each configuration. Returns 0; -errno with err: asymd cannot parse the file
 * of profiles, and *run is unchanged.
 */
int asym_run_policy(struct asym_run *run, struct asym_error *err);

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

#endif
