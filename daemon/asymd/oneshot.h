/* SPDX-License-Identifier: GPL-2.0-or-later */
/** --dry-run and --once: observe for a while, make one plan, end. Here is what their test uses. */
#ifndef ASYM_DAEMON_ASYMD_ONESHOT_H
#define ASYM_DAEMON_ASYMD_ONESHOT_H

#include "app/cycle.h"
#include "app/observer-setup.h"
#include "daemon/asymd/mode.h"
#include "linux/enforce/enforce.h"

/** The state of such a mode while it observes. */
struct asym_oneshot {
    struct asym_observer observer;
    struct asym_source *ledger_overlay; /* NULL: the plan takes masks and nice values as they are */
    struct asym_cycle cycle;
    asym_usec started; /**< before the first sample */
};

/**
 * Take a sample every interval until the configured duration is over. The last plan stays in the cycle and is not enforced.
 * Returns 0; -errno with err; -ENODATA: the machine does not give a signal that the policy needs.
 */
int asym_oneshot_observe(struct asym_oneshot *o, struct asym_run *run, struct asym_error *err);

/**
 * Enforce the plan that the cycle holds, record it in the ledger, and print how many threads asymd steered. A
 * thread that has ended or changed since the plan is no error.
 * Returns 0; with err -EPERM: asymd may not steer a single thread of the plan; -errno: the ledger cannot be written, and no
 * thread is steered; -ENOMEM.
 */
int asym_once_enforce(struct asym_oneshot *o, struct asym_run *run, struct asym_ledger *ledger, struct asym_error *err);

#endif
