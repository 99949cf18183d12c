/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A chart of a run in SVG: bars, and the timeline of the CPUs below them. */
#ifndef ASYM_EXPERIMENT_CHART_H
#define ASYM_EXPERIMENT_CHART_H

#include <stdio.h>

#include <asym/machine.h>

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

enum { ASYM_CPU_TIMELINE_BINS = 300 };

/** About 1.6 MB. Zero but for length. CPUs from ASYM_CHART_MAX_ROWS on are left out. */
struct asym_cpu_timeline {
    double length; /**< of the whole time, above 0, in any unit */
    float busy[ASYM_CHART_MAX_ROWS][ASYM_CPU_TIMELINE_BINS][ASYM_CHART_MAX_KINDS]; /**< in the same unit */
    unsigned char cells[ASYM_CHART_MAX_ROWS * ASYM_CPU_TIMELINE_BINS];
    char labels[ASYM_CHART_MAX_ROWS][32];
};

/** Count that programs of that kind ran on the CPU in that share of the time from..to, within 0..length. */
void asym_cpu_timeline_add(struct asym_cpu_timeline *t, int cpu, unsigned kind, double from, double to, double share);

/** Label the usable CPUs with their numbers and speeds. */
void asym_cpu_timeline_label(struct asym_cpu_timeline *t, const struct asym_machine *machine);

struct asym_cpu_timeline_text {
    const char *title;        /**< "What ran on each CPU under pa"; the title goes on with what a cell means */
    double seconds;           /**< the length */
    unsigned n_cpus;          /**< CPUs from 0 on, at least 1 */
    const char *const *kinds; /**< the legend */
    size_t n_kinds;
};

/** Print the figure: the bars, and the timeline below them. Returns 0; -EIO. */
int asym_cpu_timeline_write(struct asym_cpu_timeline *t, const struct asym_chart_bars *bars,
                            const struct asym_cpu_timeline_text *text, FILE *out);

#endif
