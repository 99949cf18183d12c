/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The actuator for a live machine. It sets affinity by sched_setaffinity, and nice by sched_setattr with
 * SCHED_FLAG_RESET_ON_FORK. It writes each change to the ledger first.
 */
#ifndef ASYM_LINUX_ENFORCE_ACTUATOR_H
#define ASYM_LINUX_ENFORCE_ACTUATOR_H

#include <asym/port.h>

#include "linux/enforce/ledger.h"

/** Returns 0; -ENOMEM. ledger: borrowed; it must outlive the actuator. */
int asym_actuator_linux_new(struct asym_ledger *ledger, struct asym_actuator **ret_actuator);

#endif
