/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Limits the time of one interruptible system call that has no timeout of its own. */
#ifndef ASYM_LINUX_SYS_SYSCALL_TIMEOUT_H
#define ASYM_LINUX_SYS_SYSCALL_TIMEOUT_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include <asym/types.h>

struct asym_syscall_timeout {
    timer_t timer;
    struct sigaction action;
    sigset_t mask;
    bool armed;
};

/**
 * After this time, in us, and every 10 ms from then on, SIGALRM interrupts the system call of the calling thread, which then
 * fails with EINTR. asymd uses SIGALRM for nothing else. Returns 0; -errno: no timer is armed, and the caller may still call
 * asym_syscall_timeout_end.
 */
int asym_syscall_timeout_begin(struct asym_syscall_timeout *t, asym_usec time);

/** Stop the timer and restore handler and signal mask. Does not change errno. */
void asym_syscall_timeout_end(struct asym_syscall_timeout *t);

#endif
