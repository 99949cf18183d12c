/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/chart.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "report/columns.h"

/* A figure as SVG: bars with their intervals and, below them, a timeline. It suits light and dark pages. */

/* Pixels. A character of the font is 7 wide on average, and at most 9. */
enum {
    WIDTH = 800,
    LEFT = 190,   /* where the plots begin; the labels end before it */
    VALUES = 130, /* at the right of the bars: their values */
    TITLE = 40,   /* from the top of a plot to its first row */
    AXIS = 48,    /* below the last row: ticks and the name of the axis */
    BAR = 26,     /* a row of the bars */
    LEGEND = 20,  /* a line of the legend */
    CHARACTER = 9,
    LABEL_COLUMNS = 20,
    TIMELINE = 400, /* what the rows of a timeline take at most, if they are not thinner than THIN */
    THIN = 4,
    THICK = 18,
    LABEL_HEIGHT = 14,
};

static const char *const colours[ASYM_CHART_MAX_KINDS] = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f",
                                                          "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#8a8a8a"};

static const char style[] = "<style>\n"
                            "text { font: 12px sans-serif; fill: #222; }\n"
                            ".title { font-weight: bold; }\n"
                            ".paper { fill: #fff; }\n"
                            ".grid { stroke: #ddd; }\n"
                            ".interval { stroke: #222; fill: none; }\n"
                            ".bar { fill: #4e79a7; }\n"
                            ".row { fill: #f0f0f0; }\n"
                            "@media (prefers-color-scheme: dark) {\n"
                            "text { fill: #eee; }\n"
                            ".paper { fill: #1b1b1b; }\n"
                            ".grid { stroke: #444; }\n"
                            ".interval { stroke: #eee; }\n"
                            ".row { fill: #2b2b2b; }\n"
                            "}\n"
                            "</style>\n";

/* Prints a text that asym_text_escape has cleaned: it has no character that XML has not. */
static void put_clean(FILE *out, const char *text)
{
    for (const char *at = text; *at; at++) {
        const char *entity = *at == '&'   ? "&amp;"
                             : *at == '<' ? "&lt;"
                             : *at == '>' ? "&gt;"
                             : *at == '"' ? "&quot;"
                                          : NULL;
        if (entity)
            fputs(entity, out);
        else
            fputc(*at, out);
    }
}

/* anchor: start, middle or end. text: clean. */
static void put_text(FILE *out, double x, double y, const char *anchor, const char *class, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s%s%s>", x, y, anchor, *class ? " class=\"" : "",
            class, *class ? "\"" : "");
    put_clean(out, text);
    fputs("</text>\n", out);
}

/* A title of a plot. */
static void put_title(FILE *out, double y, const char *text)
{
    char clean[512];
    put_text(out, 8, y, "start", "title", asym_text_escape(text, strlen(text), clean, sizeof clean));
}

static void put_label(FILE *out, double y, const char *text)
{
    char clean[256], cut[128];
    asym_text_escape(text, strlen(text), clean, sizeof clean);
    put_text(out, LEFT - 8, y, "end", "", asym_columns_cut(clean, LABEL_COLUMNS, cut, sizeof cut));
}

/* Returns 1, 2 or 5 times a power of ten, so that most / step is at most 8. */
static double step_of(double most)
{
    const double power = pow(10, floor(log10(most / 8)));
    return most / 8 <= power       ? power
           : most / 8 <= 2 * power ? 2 * power
           : most / 8 <= 5 * power ? 5 * power
                                   : 10 * power;
}

/* Draws the vertical lines from top to bottom, with their figures, and the name of the axis below. */
static void put_axis(FILE *out, double top, double bottom, double width, double most, const char *name)
{
    const double step = step_of(most);
    char text[32];
    for (double at = 0; at <= most * 1.0001; at += step) {
        const double x = LEFT + width * at / most;
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", x, top, bottom);
        snprintf(text, sizeof text, "%.6g", at);
        put_text(out, x, bottom + 16, "middle", "", text);
    }
    put_text(out, LEFT + width / 2, bottom + 34, "middle", "", name);
}

static void put_bar(FILE *out, const struct asym_chart_bar *bar, double y, double width, double most)
{
    char text[64] = "not known";
    put_label(out, y + 17, bar->label);
    if (!isnan(bar->value)) {
        const double half = isnan(bar->half) ? 0 : bar->half;
        const double end = LEFT + width * bar->value / most, low = LEFT + width * ASYM_MAX(bar->value - half, 0) / most;
        snprintf(text, sizeof text, "%.3f", bar->value);
        fprintf(out, "<rect class=\"bar\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", LEFT, y + 5,
                end - LEFT, BAR - 10);
        if (half > 0) {
            const double high = LEFT + width * (bar->value + half) / most, middle = y + BAR / 2.0;
            fprintf(out, "<path class=\"interval\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"/>\n", low, middle,
                    high, low, middle - 4, high, middle - 4);
            snprintf(text, sizeof text, "%.3f +-%.3f", bar->value, half);
        }
    }
    put_text(out, WIDTH - 8, y + 17, "end", "", text);
}

static double bars_height(const struct asym_chart_bars *bars)
{
    return TITLE + (double)bars->n * BAR + AXIS;
}

static void put_bars(FILE *out, const struct asym_chart_bars *bars)
{
    const double width = WIDTH - LEFT - VALUES, bottom = TITLE + (double)bars->n * BAR;
    double most = 0;
    for (size_t i = 0; i < bars->n; i++)
        if (!isnan(bars->bars[i].value))
            most = ASYM_MAX(most, bars->bars[i].value + (isnan(bars->bars[i].half) ? 0 : bars->bars[i].half));
    most = most > 0 ? most : 1;
    put_title(out, 22, bars->title);
    put_axis(out, TITLE, bottom, width, most, bars->axis);
    for (size_t i = 0; i < bars->n; i++)
        put_bar(out, &bars->bars[i], TITLE + (double)i * BAR, width, most);
}

static double row_height(const struct asym_chart_timeline *t)
{
    return ASYM_MAX(ASYM_MIN((double)TIMELINE / (double)t->n_rows, (double)THICK), (double)THIN);
}

/* Draws the runs of equal cells. */
static void put_row(FILE *out, const struct asym_chart_timeline *t, size_t row, double y, double height)
{
    const unsigned char *cells = t->cells + row * t->n_bins;
    const double width = (double)(WIDTH - LEFT - 16) / (double)t->n_bins;
    fprintf(out, "<rect class=\"row\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", LEFT, y, WIDTH - LEFT - 16,
            height - 1);
    for (size_t from = 0, to; from < t->n_bins; from = to) {
        for (to = from + 1; to < t->n_bins && cells[to] == cells[from]; to++)
            ;
        if (cells[from] > 0)
            fprintf(out, "<rect fill=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                    colours[cells[from] - 1], LEFT + width * (double)from, y, width * (double)(to - from), height - 1);
    }
}

/* Draws the legend, or only counts its lines if out is NULL. Returns how many lines it takes. */
static size_t put_legend(FILE *out, const struct asym_chart_timeline *t, double y)
{
    size_t lines = 1;
    double x = LEFT;
    for (size_t k = 0; k < t->n_kinds; k++) {
        char clean[256], cut[128];
        asym_text_escape(t->kinds[k], strlen(t->kinds[k]), clean, sizeof clean);
        asym_columns_cut(clean, 32, cut, sizeof cut);
        const double width = 24 + CHARACTER * (double)asym_columns_of(cut);
        if (x + width > WIDTH && x > LEFT) {
            x = LEFT;
            lines++;
        }
        if (out) {
            const double top = y + LEGEND * (double)(lines - 1);
            fprintf(out, "<rect fill=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\"/>\n", colours[k], x, top);
            put_text(out, x + 16, top + 10, "start", "", cut);
        }
        x += width;
    }
    return lines;
}

static double timeline_height(const struct asym_chart_timeline *t)
{
    return TITLE + (double)t->n_rows * row_height(t) + AXIS + LEGEND * (double)put_legend(NULL, t, 0) + 8;
}

static void put_timeline(FILE *out, const struct asym_chart_timeline *t, double top)
{
    const double height = row_height(t), first = top + TITLE, bottom = first + height * (double)t->n_rows;
    const size_t each = (size_t)ceil(LABEL_HEIGHT / height);
    put_title(out, top + 22, t->title);
    put_axis(out, first, bottom, WIDTH - LEFT - 16, t->seconds, "time in s");
    for (size_t row = 0; row < t->n_rows; row++) {
        const double y = first + height * (double)row;
        put_row(out, t, row, y, height);
        if (row % each == 0)
            put_label(out, y + ASYM_MIN(height, (double)LABEL_HEIGHT) / 2 + 4, t->labels[row]);
    }
    put_legend(out, t, bottom + AXIS);
}

int asym_chart_write(const struct asym_chart_bars *bars, const struct asym_chart_timeline *timeline, FILE *out)
{
    char title[512];
    const double height = bars_height(bars) + (timeline ? timeline_height(timeline) : 0);
    fprintf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" role=\"img\">\n"
        "<title>",
        WIDTH, height, WIDTH, height);
    put_clean(out, asym_text_escape(bars->title, strlen(bars->title), title, sizeof title));
    fprintf(out, "</title>\n%s<rect class=\"paper\" width=\"%d\" height=\"%.0f\"/>\n", style, WIDTH, height);
    put_bars(out, bars);
    if (timeline)
        put_timeline(out, timeline, bars_height(bars));
    fputs("</svg>\n", out);
    return ferror(out) ? -EIO : 0;
}

/* The timeline of a figure: which kind of program kept each CPU busy, in equal bins of time. */

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
