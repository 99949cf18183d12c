/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Restores what asymd has set: when asymd stops, or when the next asymd starts after a kill. Sets the speeds of CPUs, too. */
#ifndef ASYM_APP_CRASH_RECOVERY_H
#define ASYM_APP_CRASH_RECOVERY_H

#include <asym/types.h>

#include <stdbool.h>

#include "app/run.h"
#include "linux/enforce/enforce.h"
#include "report/check.h"

/** Open the ledger of the state directory, and log what is wrong with its content. Returns 0; -errno with err. */
int asym_crash_recovery_open(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err);

/** Restore the threads in the ledger, and log the result. when: a phrase for the log. Returns 0; -errno of a failure. */
int asym_crash_recovery_restore(struct asym_run *run, struct asym_ledger *ledger, const char *when);

#define ASYM_RESTORE_COMMAND "asymd --restore (as root)"

/**
 * Write what an asymd that died has left, for which ASYM_RESTORE_COMMAND is the remedy: a clause without a full stop. silent: no
 * asymd answers, so a ledger that this user may not read is of a dead one, too. Returns false if nothing is left.
 */
bool asym_crash_recovery_left(const char *dir, bool silent, char *buf, size_t size);

/** Open the ledger, and restore what it records of threads and of speeds. Returns 0; -errno with err: cannot open it. */
int asym_crash_recovery_clear(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err);

/** Do the same and close the ledger, for a start that fails: a wrong setting must not leave threads steered. */
void asym_crash_recovery_abandon(struct asym_run *run);

/* [asymmetry] on a live machine: slows CPUs, and restores their speed. */

/** Read what an earlier asymd has left in the ledger, which run then borrows, and log a bad record. Returns 0; -ENOMEM with err. */
int asym_speeds_open(struct asym_run *run, struct asym_ledger *ledger, struct asym_error *err);

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
