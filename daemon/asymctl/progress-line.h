/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The progress of a verb as a line on standard error, if that is a terminal. Shows nothing before ASYM_PROGRESS_AFTER. */
#ifndef ASYM_DAEMON_ASYMCTL_PROGRESS_LINE_H
#define ASYM_DAEMON_ASYMCTL_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

struct asym_progress_line {
    asym_usec begun;
    size_t columns; /**< of the terminal */
    bool wanted, shown;
};

/** The work begins now. */
struct asym_progress_line asym_progress_line_begin(void);

/** Seconds since the beginning. */
double asym_progress_line_elapsed(const struct asym_progress_line *p);

/** Show a bar, as asym_progress_text: done, of all (above 0). done counts as all if it is more. */
void asym_progress_line_show(struct asym_progress_line *p, double done, double all, const char *unit);

/** Show a text in place of a bar. It is cut to the terminal. */
void asym_progress_line_say(struct asym_progress_line *p, const char *text);

/** Remove the line. */
void asym_progress_line_end(struct asym_progress_line *p);

#endif
