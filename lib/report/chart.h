/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A figure as SVG: bars with their intervals and, below them, a timeline. It suits light and dark pages. */
#ifndef ASYM_REPORT_CHART_H
#define ASYM_REPORT_CHART_H

#include <stddef.h>
#include <stdio.h>

/** Kinds of a timeline that have a colour each. */
enum { ASYM_CHART_MAX_KINDS = 10, ASYM_CHART_MAX_ROWS = 128 };

struct asym_chart_bar {
    const char *label;
    double value; /**< not negative; NAN: not known */
    double half;  /**< half the width of its interval; NAN: none */
};

struct asym_chart_bars {
    const char *title, *axis; /**< axis: what the values are, with their unit; printable */
    const struct asym_chart_bar *bars;
    size_t n;
};

struct asym_chart_timeline {
    const char *title;
    double seconds;             /**< the length of the axis, above 0 */
    const char *const *labels;  /**< of the rows */
    size_t n_rows, n_bins;      /**< 1 to ASYM_CHART_MAX_ROWS; above 0 */
    const unsigned char *cells; /**< n_rows * n_bins: 0: empty; k: kinds[k - 1] */
    const char *const *kinds;   /**< the legend */
    size_t n_kinds;             /**< at most ASYM_CHART_MAX_KINDS */
};

/** Print one SVG document. Titles, labels and kinds may have any bytes. timeline: NULL: none. Returns 0; -EIO. */
int asym_chart_write(const struct asym_chart_bars *bars, const struct asym_chart_timeline *timeline, FILE *out);

#endif
