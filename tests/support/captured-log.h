/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Standard error of this process in memory, for tests of what is logged. A call that fails ends in an assertion. */
#ifndef ASYM_TESTS_SUPPORT_CAPTURED_LOG_H
#define ASYM_TESTS_SUPPORT_CAPTURED_LOG_H

#include <stddef.h>

/** Keep what is written to standard error from now on. Only one capture at a time. */
void captured_log_begin(void);

/** End the capture, and write what was kept to text, at most size - 1 bytes. */
void captured_log_end(char *text, size_t size);

/** Returns how often part occurs in text. */
unsigned captured_log_count(const char *text, const char *part);

#endif
