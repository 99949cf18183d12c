/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Signals for processes that a test or a benchmark has started. No function asserts, because benchmarks use them, too. */
#ifndef ASYM_TESTS_SUPPORT_PROCESS_H
#define ASYM_TESTS_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** That of sched_setattr(2), which the C library does not declare. */
struct asym_process_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};

/**
 * Send a signal to one process. Returns 0; -errno. A process id below 2 fails with -EINVAL, without a system call. For kill(2),
 * 0 is the caller's own group, -1 every process, any other negative number a group, and 1 the init process. A variable holds
 * such a value if its process was never started.
 */
int asym_process_signal(pid_t pid, int signal);

/** The same for all processes of the group whose leader is leader, a process that was started. */
int asym_process_signal_group(pid_t leader, int signal);

/**
 * Like fork(2), but the child ends with its parent, and a failure ends the caller with a message. PR_SET_PDEATHSIG alone is not
 * enough: if the parent is killed before the child sets it, the child lives for ever, and ctest waits for the output that the child
 * holds open. The child leads a process group, as one that a shell starts does: so asymd takes it for a job of its own.
 */
pid_t asym_process_fork(void);

/** The same, but the child leads a session: setsid(2) fails for a process that leads a group already. */
pid_t asym_process_fork_session(void);

/**
 * The same, but the child outlives its parent, because the test needs an orphan, and leads no group. It gets SIGALRM after so many
 * seconds.
 */
pid_t asym_process_fork_orphan(unsigned seconds);

/**
 * Make this child end with parent, or at once if parent has ended. Call it again after a change of user: the kernel clears it.
 */
void asym_process_end_with(pid_t parent);

/**
 * Change to this user for good, as a program that the user has started. Call it in a child of asym_process_fork: it still ends
 * with its parent, although the kernel clears PR_SET_PDEATHSIG. Returns 0; -errno.
 */
int asym_process_become(uid_t uid);

/**
 * Wait at most so many seconds for a child, and reap it. Returns 0 if it has ended, with ret_status from waitpid; -ETIMEDOUT;
 * -errno. A process id below 2 fails with -EINVAL.
 */
int asym_process_wait(pid_t pid, double seconds, int *ret_status);

/**
 * Returns the state of the process's first thread, from /proc/PID/stat: 'D' if it sleeps uninterruptibly, 'T' if it is stopped,
 * ... Returns 0 if there is no such process.
 */
char asym_process_state(pid_t pid);

/** Returns whether the process has a handler for the signal. */
bool asym_process_catches(pid_t pid, int signal);

/**
 * Make so many threads that end at once, one after the other: two process events each. They are bare, because a sanitizer makes
 * pthread_create(3) thirty times as slow. Returns 0; -errno.
 */
int asym_process_make_threads(unsigned n);

/** Send SIGSTOP to a child, and wait until all of its threads have stopped. Returns 0; -ETIMEDOUT after 10 s; -errno. */
int asym_process_stop(pid_t pid);

/** Find the children of the process's first thread, at most max. Returns their number; 0 if there is no such process. */
size_t asym_process_children(pid_t pid, pid_t *ret_children, size_t max);

/** Returns the number of the process's open descriptors; -errno. The one that the call itself opens does not count. */
int asym_process_descriptors(pid_t pid);

/**
 * Write the state of each thread of the process to standard error: status, signals, and its stack in the kernel (this needs
 * root). Tests call it on a process that should have ended.
 */
void asym_process_explain(pid_t pid);

#endif
