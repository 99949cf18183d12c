/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The enforcement of --once. */
#ifndef ASYM_DAEMON_ASYMD_ONCE_MODE_H
#define ASYM_DAEMON_ASYMD_ONCE_MODE_H

#include "daemon/asymd/oneshot.h"
#include "linux/enforce/enforce.h"

/**
 * Enforce the plan that the cycle holds, record it in the ledger, and print how many threads asymd steered. A
 * thread that has ended or changed since the plan is no error.
 * Returns 0; with err -EPERM: asymd may not steer a single thread of the plan; -errno: the ledger cannot be written, and no
 * thread is steered; -ENOMEM.
 */
int asym_once_enforce(struct asym_oneshot *o, struct asym_run *run, struct asym_ledger *ledger, struct asym_error *err);

#endif
