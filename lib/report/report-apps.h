/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The third block of the report of the dry run: the applications. */
#ifndef ASYM_REPORT_REPORT_APPS_H
#define ASYM_REPORT_REPORT_APPS_H

#include <stddef.h>

#include "report/report.h"

#define ASYM_STYLE_HEADING "1"
#define ASYM_STYLE_CHANGE  "33"

struct asym_page {
    const struct asym_report *report;
    const struct asym_terminal *terminal;
    FILE *out; /* that of the terminal */
    bool colour;
};

/** Print the first word of a block, 13 columns wide. */
void asym_page_heading(const struct asym_page *p, const char *title);

/** Print a paragraph that starts at column at; further lines start at column indent. */
void asym_page_say(const struct asym_page *p, size_t at, size_t indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Print the third block: the applications. */
void asym_page_apps(const struct asym_page *p);

/** Returns true if the plan changes the mask (of online CPUs) or the nice value of this task. */
bool asym_page_changes(const struct asym_report *r, size_t task);

#endif
