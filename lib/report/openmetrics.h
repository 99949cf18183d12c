/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The counters of asymd as OpenMetrics text, which Prometheus reads: HELP, TYPE and UNIT of each family, its samples, and # EOF
 * at the end. The content type is ASYM_OPENMETRICS_TYPE.
 */
#ifndef ASYM_REPORT_OPENMETRICS_H
#define ASYM_REPORT_OPENMETRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define ASYM_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define ASYM_PROMETHEUS_TYPE  "text/plain; version=0.0.4; charset=utf-8"

/** A family of counters. The value is its index. */
enum asym_metric_id {
#define ASYM_METRIC(id, kind, name, unit, help) ASYM_METRIC_##id,
#include "report/metrics.def"
#undef ASYM_METRIC
    ASYM_N_METRICS,
};

/** A family: what its samples are. */
struct asym_metric_row {
    const char *name; /**< of the family: without "asymd_", and without the "_total" of a counter */
    const char *kind; /**< "counter", "gauge" */
    const char *unit; /**< the end of the name: "seconds", "bytes"; "": none */
    const char *help; /**< one sentence, without a backslash or a newline */
};

/** A sample. The texts are borrowed. */
struct asym_metric {
    const char *name;                  /**< without "asymd_"; labels may follow: "actions_total{kind=\"steer\"}" */
    const struct asym_metric_row *row; /**< of its family; NULL: this version does not know it */
    bool is_counter;                   /**< else a gauge */
    double value;
};

/** The row at index i; NULL after the last. */
const struct asym_metric_row *asym_metric_row_at(size_t i);

/** Append a sample to the list of a report of asymd on its counters. labels: in braces; NULL: none. */
void asym_metric_add(json_t **list, enum asym_metric_id id, const char *labels, double value);

/**
 * Returns the samples of such a report, those of a family together: the families of the table first, then those that it does not
 * know. They borrow the texts of the report. Free the array; NULL: no memory.
 */
struct asym_metric *asym_metrics_read(const json_t *report, size_t *ret_n);

/** Write the value of a sample, 15 digits at most unless it is whole. Returns buf. 32 bytes are enough. */
const char *asym_metric_value(const struct asym_metric *metric, char *buf, size_t size);

/**
 * Print the samples as OpenMetrics text. A family that the table does not know has no HELP. is_open false: in Prometheus' text
 * format 0.0.4, for readers that know no OpenMetrics: the family of a counter has the name of its samples, with "_total", and there
 * is no unit and no end. Returns 0; -EIO.
 */
int asym_openmetrics_print(const struct asym_metric *metrics, size_t n, bool is_open, FILE *out);

/**
 * Returns an array with an object for each family that asym_openmetrics_print prints: { "name", "type": "counter", "unit", "help",
 * "samples": [ { "name", "labels": { "kind": "steer" }, "value" } ] }. unit and help are null where the text has no such line, a
 * value where it is not finite. It is a new reference; NULL: no memory.
 */
json_t *asym_openmetrics_json(const struct asym_metric *metrics, size_t n);

#endif
