/* SPDX-License-Identifier: GPL-2.0-or-later */
/** [asymmetry] on a live machine: slows CPUs, and restores their speed. */
#ifndef ASYM_APP_SPEEDS_H
#define ASYM_APP_SPEEDS_H

#include <stdbool.h>

#include "app/run.h"
#include "report/check.h"

/** Open the ledger of speeds, with what an earlier asymd has left to restore, and lock it. Returns 0; -errno with err. */
int asym_speeds_open(struct asym_run *run, struct asym_error *err);

/**
 * Slow the CPUs as the settings say, or restore them if the settings name none. The machine then has the speeds obtained, and
 * the log names them. Returns 0; -errno with err, after restoring every CPU.
 */
int asym_speeds_hold(struct asym_run *run, struct asym_error *err);

/** Check the limits that asymd has set. Returns true if speeds have changed; then it has read the machine again. Logs. */
bool asym_speeds_update(struct asym_run *run);

/** Restore all speeds, and log the result; when: a phrase such as "stopped". Returns 0 (also if not open); -errno. */
int asym_speeds_restore(struct asym_run *run, const char *when);

/** Add a line for each method of [asymmetry] to check. */
void asym_speeds_check(struct asym_check *check, const struct asym_run *run);

#endif
