/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A progress bar. The caller prints it on standard error, if that is a terminal, after a carriage return. */
#ifndef ASYM_REPORT_PROGRESS_H
#define ASYM_REPORT_PROGRESS_H

#include <stddef.h>

/** A caller shows nothing before this many seconds. */
#define ASYM_PROGRESS_AFTER 1.0

/**
 * Write "[####......] 12 of 60 trials, 40 s left". elapsed: seconds since the beginning; done, at most all (above 0): how many
 * units are done; a part of a unit shows in the bar only. Says nothing of the time left before the first is done. The text has
 * fewer than `columns` (at least 40) columns. Returns buf.
 */
const char *asym_progress_text(double elapsed, double done, double all, const char *unit, size_t columns, char *buf,
                               size_t size);

#endif
