/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of the dry run as JSON: asymd.plan/1, a promise. */
#ifndef ASYM_REPORT_REPORT_JSON_H
#define ASYM_REPORT_REPORT_JSON_H

#include <stdio.h>

#include "report/report.h"

/** Print one JSON object and a newline. Returns 0; -ENOMEM, -EIO. */
int asym_report_json(const struct asym_report *report, FILE *out);

#endif
