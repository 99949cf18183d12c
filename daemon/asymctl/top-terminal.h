/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Finds out whether the terminal can show a screen. Apart from top-screen.c: <term.h> has macros of usual words (columns). */
#ifndef ASYM_DAEMON_ASYMCTL_TOP_TERMINAL_H
#define ASYM_DAEMON_ASYMCTL_TOP_TERMINAL_H

#include <asym/error.h>

/**
 * Returns 0; -ENOTTY with err if standard input or output is no terminal, or if terminfo knows no terminal of the name TERM, or
 * one whose cursor cannot be moved.
 */
int asym_top_terminal_check(struct asym_error *err);

#endif
