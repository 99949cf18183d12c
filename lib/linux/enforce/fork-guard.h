/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The fork guard keeps new threads and processes from inheriting what asymd has set. */
#ifndef ASYM_LINUX_ENFORCE_FORK_GUARD_H
#define ASYM_LINUX_ENFORCE_FORK_GUARD_H

#include "linux/observe/process-events.h"

/**
 * Pass it to asym_process_events_watch as the hook, with the ledger (struct asym_ledger) as ctx. It acts at once, in the
 * calling thread:
 * - A thread of a steered process forks. The child gets the creator's original mask and nice value. Then every steered
 *   thread of the creator's process is released (fork hold-off).
 * - A steered process creates a thread. A new thread that has the mask or nice value of a steered one gets the
 *   original mask and nice value of that one.
 * - A thread of a steered process calls exec. The new program gets the original mask and nice value, and the process is
 *   released.
 * Later actions on a thread that was released here end in RETRY, not in HANDS_OFF.
 */
void asym_fork_guard_on_event(void *ledger, const struct asym_process_event *event);

#endif
