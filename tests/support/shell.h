/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Commands of the shell, and what they print. */
#ifndef ASYM_TEST_SUPPORT_SHELL_H
#define ASYM_TEST_SUPPORT_SHELL_H

#include <stddef.h>

/** Run a command. ret gets its standard output, as much as fits. Returns its exit status. */
int shell_run(char *ret, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Fail with the text, unless it has that part. */
void assert_has(const char *text, const char *part);

/** Fail if a line is wider than that, or the last one does not end. */
void assert_fits_in(const char *text, size_t columns);

/**
 * Run a verb of asymctl in a terminal of 80 columns, which is its input and both outputs. ret gets what it writes, as much as fits.
 * Returns its exit status.
 */
int shell_run_in_terminal(const char *verb, char *ret, size_t size);

#endif
