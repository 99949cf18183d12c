/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A verb that takes long: it shows a line of progress, and the user may end it early. */
#ifndef ASYM_DAEMON_ASYMCTL_LONG_VERB_H
#define ASYM_DAEMON_ASYMCTL_LONG_VERB_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

/** Catch SIGINT and SIGTERM. The first sets the flag. The second of the same kind ends asymctl at once. */
void asym_interruption_catch(void);

/**
 * Catch SIGINT and SIGTERM, and SIGHUP if hangup, each as often as it comes, and block them. Writes the signal mask with which
 * the caller waits, as in ppoll(2): only that wait receives them, so none can come between a check of the flag and the wait.
 */
void asym_interruption_block(bool hangup, sigset_t *ret_waiting);

/**
 * Receive the blocked signals outside the wait, too, or no longer: for a call that can block for ever, and that no signal may leave
 * half done. also is called in the signal handler, so that the call ends; it must be async-signal-safe.
 */
void asym_interruption_unblock(void (*also)(void));
void asym_interruption_block_again(void);

/** Not 0 after a caught signal. Only its handler writes it. */
extern volatile sig_atomic_t asym_interrupted;

/** A verb shows no progress before this many seconds. */
#define ASYM_PROGRESS_AFTER 1.0

struct asym_progress_line {
    asym_usec begun;
    size_t columns; /**< of the terminal */
    bool wanted, shown;
};

/** The work begins now. */
struct asym_progress_line asym_progress_line_begin(void);

/** Seconds since the beginning. */
double asym_progress_line_elapsed(const struct asym_progress_line *p);

/**
 * Write "[####......] 12 of 60 trials, 40 s left". elapsed: seconds since the beginning; done, at most all (above 0): how many
 * units are done; a part of a unit shows in the bar only. Says nothing of the time left before the first is done. The text has
 * fewer than `columns` (at least 40) columns. Returns buf.
 */
const char *asym_progress_text(double elapsed, double done, double all, const char *unit, size_t columns, char *buf,
                               size_t size);

/** Show a bar, as asym_progress_text: done, of all (above 0). done counts as all if it is more. */
void asym_progress_line_show(struct asym_progress_line *p, double done, double all, const char *unit);

/** Show a text in place of a bar. It is cut to the terminal. */
void asym_progress_line_say(struct asym_progress_line *p, const char *text);

/** Remove the line. */
void asym_progress_line_end(struct asym_progress_line *p);

#endif
