/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The counters of asymd as JSON, with the names of the OpenMetrics text. A file of its own: the exporter links no jansson. */
#ifndef ASYM_REPORT_OPENMETRICS_JSON_H
#define ASYM_REPORT_OPENMETRICS_JSON_H

#include <jansson.h>

#include "report/openmetrics.h"

/** Returns the value of a sample; null in JSON if it is not finite. It is a new reference; NULL: no memory. */
json_t *asym_metric_json(const struct asym_metric *metric);

/**
 * Returns an array with an object for each family that asym_openmetrics_print prints: { "name", "type": "counter", "unit", "help",
 * "samples": [ { "name", "labels": { "kind": "steer" }, "value" } ] }. unit and help are null where the text has no such line.
 * It is a new reference; NULL: no memory.
 */
json_t *asym_openmetrics_json(const struct asym_metric *metrics, size_t n);

#endif
