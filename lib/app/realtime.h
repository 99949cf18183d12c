/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The real-time priority of the calling thread: SCHED_FIFO 1. Children do not inherit it (reset on fork). The nice value stays,
 * and applies again without the priority.
 */
#ifndef ASYM_APP_REALTIME_H
#define ASYM_APP_REALTIME_H

#include <stdbool.h>

/** Returns whether the calling thread has the policy SCHED_OTHER: the one that it has without the priority. */
bool asym_realtime_is_other(void);

/** Give the calling thread the priority, or SCHED_OTHER. Returns 0; -EPERM: not permitted; another -errno. */
int asym_realtime_set(bool realtime);

#endif
