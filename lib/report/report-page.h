/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of the dry run on a terminal: where report-text.c and report-apps.c print. */
#ifndef ASYM_REPORT_PAGE_H
#define ASYM_REPORT_PAGE_H

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

#endif
