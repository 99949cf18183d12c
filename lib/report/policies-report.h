/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of asymctl policies: for each policy its source, the signals that it needs, and whether it can run here. */
#ifndef ASYM_REPORT_POLICIES_REPORT_H
#define ASYM_REPORT_POLICIES_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include <asym/policy.h>

#include "report/columns.h"

/** Print all of them. missing[signal]: NULL, or why this machine does not give the signal. Returns 0; -EIO. */
int asym_policies_text(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       const struct asym_terminal *terminal);

/**
 * { "schema": "asymd.policies/1", "policies": [ { "name", "summary", "source", "needs": [ "ipc" ], "pin": "type",
 * "can_run", "refuses": null, "missing": [ { "name", "why" } ] } ] }. Returns 0; -ENOMEM, -EIO.
 */
int asym_policies_json(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       FILE *out);

#endif
