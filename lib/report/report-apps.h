/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The third block of the report of the dry run: the applications. */
#ifndef ASYM_REPORT_REPORT_APPS_H
#define ASYM_REPORT_REPORT_APPS_H

#include "report/report-page.h"

/** Print the third block: the applications. */
void asym_page_apps(const struct asym_page *p);

/** Returns true if the plan changes the mask (of online CPUs) or the nice value of this task. */
bool asym_page_changes(const struct asym_report *r, size_t task);

#endif
