/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of the dry run as text. */
#ifndef ASYM_REPORT_REPORT_TEXT_H
#define ASYM_REPORT_REPORT_TEXT_H

#include "report/columns.h"
#include "report/report.h"

/**
 * Print four blocks: the machine, the policy, the applications with their threads, and a summary of
 * what would change and what asymd could not see. Returns 0; -EIO.
 */
int asym_report_text(const struct asym_report *report, const struct asym_terminal *terminal);

#endif
