/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The signals that end a verb early, as a flag: the verb checks it, and prints or keeps the results so far. */
#ifndef ASYM_DAEMON_ASYMCTL_INTERRUPTION_H
#define ASYM_DAEMON_ASYMCTL_INTERRUPTION_H

#include <signal.h>
#include <stdbool.h>

/** Catch SIGINT and SIGTERM. The first sets the flag. The second of the same kind ends asymctl at once. */
void asym_interruption_catch(void);

/**
 * Catch SIGINT and SIGTERM, and SIGHUP if hangup, each as often as it comes, and block them. Writes the signal mask with which
 * the caller waits, as in ppoll(2): only that wait receives them, so none can come between a check of the flag and the wait.
 */
void asym_interruption_hold(bool hangup, sigset_t *ret_waiting);

/**
 * Receive held signals outside the wait, too, or no longer: for a call that can block for ever, and that no signal may leave
 * half done. also is called in the signal handler, so that the call ends; it must be async-signal-safe.
 */
void asym_interruption_admit(void (*also)(void));
void asym_interruption_hold_again(void);

/** Has a caught signal come? */
bool asym_interrupted(void);

/** The same for functions that check the flag themselves: not 0 after a caught signal. */
const volatile sig_atomic_t *asym_interruption_flag(void);

#endif
