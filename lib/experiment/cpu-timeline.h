/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The timeline of a figure: which kind of program kept each CPU busy, in equal bins of time. */
#ifndef ASYM_EXPERIMENT_CPU_TIMELINE_H
#define ASYM_EXPERIMENT_CPU_TIMELINE_H

#include <stdio.h>

#include <asym/machine.h>

#include "report/chart.h"

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
