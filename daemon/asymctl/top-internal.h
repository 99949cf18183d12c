/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The terminal of asymctl top: draws pages, and reads keys. One screen at a time. */
#ifndef ASYM_DAEMON_ASYMCTL_TOP_INTERNAL_H
#define ASYM_DAEMON_ASYMCTL_TOP_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

#include "top/top.h"

/**
 * Can the terminal show a screen? Returns 0; -ENOTTY with err if standard input or output is no terminal, or if terminfo knows no
 * terminal of the name TERM, or one whose cursor cannot be moved.
 */
int asym_top_terminal_check(struct asym_error *err);

/**
 * Take the terminal over, which asym_top_terminal_check has accepted. Uses colours if the terminal has them and NO_COLOR is not
 * set. Blocks SIGWINCH outside asym_top_screen_wait. Returns 0; -ENOTTY with err.
 */
int asym_top_screen_open(struct asym_error *err);

/** Give the terminal back as it was. If Ctrl-S has stopped it, its output goes on. */
void asym_top_screen_close(void);

/** Does the terminal take output? It does not after Ctrl-S, until Ctrl-Q. */
bool asym_top_screen_takes_output(void);

/**
 * Let a blocked asym_top_screen_draw or asym_top_screen_close end: restart the output that Ctrl-S has stopped, and discard what
 * the terminal has not read. Async-signal-safe.
 */
void asym_top_screen_unblock(void);

void asym_top_screen_size(unsigned *ret_columns, unsigned *ret_rows);

/**
 * Draw the page. Writes only the characters that differ from what the terminal shows. Draws nothing while the terminal takes no
 * output, and the next asym_top_screen_wait returns when it takes output again. Blocks if the terminal stops meanwhile.
 */
void asym_top_screen_draw(const struct asym_top_page *page);

/**
 * Wait for a key, a change of the size, or a terminal that takes output again; mask: the blocked signals meanwhile. Returns after
 * timeout or a signal, too. A pending signal is delivered even if a key is there. Returns false: the terminal has hung up or is at
 * its end.
 */
bool asym_top_screen_wait(asym_usec timeout, const sigset_t *mask);

/** Returns the next key, a Unicode character or enum asym_top_special_key; ASYM_TOP_KEY_NONE: no key is left. */
uint32_t asym_top_screen_key(void);

#endif
