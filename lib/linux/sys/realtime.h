/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The real-time priority of the first thread, SCHED_FIFO 1, and the time of its work. A timer of the kernel runs while the thread
 * is awake: its signal takes the priority away in any loop of asymd, however long others make that. Only a system call ends first.
 */
#ifndef ASYM_LINUX_SYS_REALTIME_H
#define ASYM_LINUX_SYS_REALTIME_H

#include <stdbool.h>

#include <asym/types.h>

/**
 * Limits, us: of the begin of a sample and of an action with the priority; and of work without, between whose pieces the loop
 * handles signals and tells the watchdog that asymd lives. The timer costs 1 us a wakeup, one shorter than a tick of the kernel 10.
 */
#define ASYM_REALTIME_SAMPLE 300
#define ASYM_REALTIME_ACT    4000
#define ASYM_REALTIME_NONE   100000

/** So long after its limit the priority goes, us. */
#define ASYM_REALTIME_GRACE 700

/** Returns whether the calling thread has the policy SCHED_OTHER: the one that it has without the priority. */
bool asym_realtime_is_other(void);

/** Work with the priority until this limit; 0: sleep with it. Children have none. Returns 0; -EPERM: not permitted; -errno. */
int asym_realtime_take(asym_usec limit);

/** The same without it, by the nice value. */
void asym_realtime_do_without(asym_usec limit);

/** Give it up before the limit. If the kernel refuses that, each signal of the timer tries again. */
void asym_realtime_give_up(void);

/** Returns whether the limit has passed. */
bool asym_realtime_is_over(void);

#endif
