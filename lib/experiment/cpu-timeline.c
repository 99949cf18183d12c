/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/cpu-timeline.h"

#include "base/macro.h"
#include "base/mask.h"

enum { BINS = ASYM_CPU_TIMELINE_BINS, ROWS = ASYM_CHART_MAX_ROWS, KINDS = ASYM_CHART_MAX_KINDS };

static double bin_of(const struct asym_cpu_timeline *t)
{
    return t->length / BINS;
}

void asym_cpu_timeline_add(struct asym_cpu_timeline *t, int cpu, unsigned kind, double from, double to, double share)
{
    const double width = bin_of(t);
    double at = from;
    if (cpu < 0 || cpu >= ROWS)
        return;
    for (size_t bin = (size_t)(at / width); at < to; bin++) {
        const size_t b = ASYM_MIN(bin, (size_t)BINS - 1);
        const double end = bin + 1 < BINS ? width * (double)(bin + 1) : to;
        const double until = ASYM_MAX(at, ASYM_MIN(end, to));
        t->busy[cpu][b][kind] += (float)((until - at) * share);
        at = until;
    }
}

void asym_cpu_timeline_label(struct asym_cpu_timeline *t, const struct asym_machine *machine)
{
    ASYM_MASK_FOREACH (c, &machine->usable)
        if (c < ROWS)
            snprintf(t->labels[c], sizeof t->labels[c], "CPU %d, %.3gx", c, machine->cpus[c].speed);
}

/* A cell is empty if its CPU was idle for more than half of the bin; else it has the kind that ran for longest. */
static void fill_cells(struct asym_cpu_timeline *t, unsigned n_cpus)
{
    for (unsigned c = 0; c < n_cpus; c++)
        for (unsigned b = 0; b < BINS; b++) {
            double sum = 0;
            unsigned most = 0;
            for (unsigned k = 0; k < KINDS; k++) {
                sum += (double)t->busy[c][b][k];
                most = t->busy[c][b][k] > t->busy[c][b][most] ? k : most;
            }
            t->cells[c * BINS + b] = (unsigned char)(sum * 2 < bin_of(t) ? 0 : 1 + most);
        }
}

int asym_cpu_timeline_write(struct asym_cpu_timeline *t, const struct asym_chart_bars *bars,
                            const struct asym_cpu_timeline_text *text, FILE *out)
{
    const unsigned n_cpus = ASYM_MIN(text->n_cpus, (unsigned)ROWS);
    const char *labels[ROWS];
    char title[256], some[48] = "";
    fill_cells(t, n_cpus);
    for (unsigned c = 0; c < n_cpus; c++)
        labels[c] = t->labels[c];
    if (text->n_cpus > n_cpus)
        snprintf(some, sizeof some, "; the first %u of %u CPUs", n_cpus, text->n_cpus);
    snprintf(title, sizeof title, "%.160s (for longest in 1/%d of the time)%s", text->title, BINS, some);
    const struct asym_chart_timeline timeline = {.title = title,
                                                 .seconds = text->seconds,
                                                 .labels = labels,
                                                 .n_rows = n_cpus,
                                                 .n_bins = BINS,
                                                 .cells = t->cells,
                                                 .kinds = text->kinds,
                                                 .n_kinds = text->n_kinds};
    return asym_chart_write(bars, &timeline, out);
}
