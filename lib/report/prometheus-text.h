/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Prometheus' text format 0.0.4, for readers that know no OpenMetrics: promtool check metrics is one. */
#ifndef ASYM_REPORT_PROMETHEUS_TEXT_H
#define ASYM_REPORT_PROMETHEUS_TEXT_H

#include <stdio.h>

#define ASYM_PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/**
 * Print a text of asym_openmetrics_print() in that format: the family of a counter has the name of its samples, with "_total",
 * and there is no unit and no end. Returns 0; -EIO.
 */
int asym_prometheus_text_print(const char *openmetrics, FILE *out);

#endif
