/* SPDX-License-Identifier: GPL-2.0-or-later */
/** asymctl policies: every policy, where it comes from, what it needs, whether it can run here. */
#ifndef ASYM_DAEMON_POLICIES_H
#define ASYM_DAEMON_POLICIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <asym/policy.h>
#include <asym/snapshot.h>

/** Does nothing speak against running it: neither its own row nor a signal that is missing? */
bool asym_policies_can_run(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS]);

/** missing[signal]: NULL, or why this machine does not give it. At most 100 columns wide. 0; -EIO. */
int asym_policies_text(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       FILE *out);

/**
 * { "schema": "asymd.policies/1", "policies": [ { "name", "summary", "source", "needs": [ "ipc" ], "pin": "type",
 * "can_run", "refuses": null, "missing": [ { "name", "why" } ] } ] }. 0; -ENOMEM, -EIO.
 */
int asym_policies_json(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       FILE *out);

#endif
