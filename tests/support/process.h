/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Signals for processes that a test or a benchmark has started. Nothing here asserts: a benchmark uses it, too. */
#ifndef ASYM_TESTS_PROCESS_H
#define ASYM_TESTS_PROCESS_H

#include <sys/types.h>

/**
 * Send a signal to one process; 0, or -errno. A process id below 2 is refused with -EINVAL, without a system call: 0 is the
 * caller's own group, -1 every process, a negative number a group, 1 the init process, and all of them are what a variable
 * holds whose process was never started.
 */
int asym_process_signal(pid_t pid, int signal);

/** The same for all processes of the group that leader, which was started, has made. */
int asym_process_signal_group(pid_t leader, int signal);

#endif
