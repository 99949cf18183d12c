/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the parts of the dry run's text share; for report_text.c and report_apps.c alone. */
#ifndef ASYM_DAEMON_REPORT_PAGE_H
#define ASYM_DAEMON_REPORT_PAGE_H

#include <stddef.h>

#include "daemon/report.h"

#define ASYM_STYLE_HEADING "1"
#define ASYM_STYLE_CHANGE  "33"

struct asym_page {
    const struct asym_report *report;
    FILE *out;
    bool colour;
};

/** The first word of a block, 13 columns wide. */
void asym_page_heading(const struct asym_page *p, const char *title);

/** A paragraph from column at, further lines from column indent. */
void asym_page_say(const struct asym_page *p, size_t at, size_t indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Would the mask (as far as CPUs are online) or the nice value of this task change? */
bool asym_page_changes(const struct asym_report *r, size_t task);

/** The third block. */
void asym_page_apps(const struct asym_page *p);

#endif
