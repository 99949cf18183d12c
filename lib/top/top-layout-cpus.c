/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs: a heading for each type of core with a cell for each CPU, or one row for each type. */
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "report/columns.h"
#include "top/top.h"

#define CELL_COLUMNS       26u /* the least, for a number, a bar and most of a name */
#define CELL_COLUMNS_SHARE 32u /* with the share as a number, too */
#define CELL_COLUMNS_MAX   40u
#define BUSY               0.05 /* a CPU that is busy for less runs nothing that the user looks for */
#define N_COMMANDS         64

struct command {
    const char *comm;
    unsigned cpus;
};

struct type {
    const struct asym_top_cpu *first;
    unsigned n, n_busy, n_cores, threads;
    double busy; /* sum */
    struct asym_mask cpus;
    struct command commands[N_COMMANDS]; /* what runs on them */
    size_t n_commands;
};

static void count_command(struct type *t, const char *comm)
{
    size_t i = 0;
    while (i < t->n_commands && strcmp(t->commands[i].comm, comm) != 0)
        i++;
    if (i == N_COMMANDS)
        return;
    if (i == t->n_commands)
        t->commands[t->n_commands++] = (struct command){.comm = comm};
    t->commands[i].cpus++;
}

static void count_cpu(struct type *t, const struct asym_top_cpu *cpu)
{
    if (t->n++ == 0)
        t->first = cpu;
    t->n_cores += cpu->smt_rank == 0;
    t->busy += cpu->busy;
    t->threads += cpu->threads;
    if (cpu->cpu < ASYM_MAX_CPUS)
        asym_mask_set(&t->cpus, cpu->cpu);
    if (cpu->busy < BUSY)
        return;
    t->n_busy++;
    if (*cpu->comm)
        count_command(t, cpu->comm);
}

/* Collects the CPUs of that type. Returns false if the frame has none. */
static bool collect(const struct asym_top_frame *frame, unsigned type, struct type *ret_type)
{
    *ret_type = (struct type){.first = NULL};
    for (size_t i = 0; i < frame->n_cpus; i++)
        if (frame->cpus[i].type == type)
            count_cpu(ret_type, &frame->cpus[i]);
    return ret_type->n > 0;
}

/* Returns the lowest type of the frame that is at least that; UINT_MAX: there is none. */
static unsigned type_from(const struct asym_top_frame *frame, unsigned from)
{
    unsigned lowest = ~0u;
    for (size_t i = 0; i < frame->n_cpus; i++)
        if (frame->cpus[i].type >= from)
            lowest = ASYM_MIN(lowest, frame->cpus[i].type);
    return lowest;
}

static unsigned cells_in(unsigned width)
{
    return ASYM_MAX(width / CELL_COLUMNS, 1u);
}

static size_t rows_with_cells(const struct asym_top_frame *frame, unsigned width)
{
    size_t rows = 0;
    for (unsigned t = type_from(frame, 0); t != ~0u; t = type_from(frame, t + 1)) {
        size_t n = 0;
        for (size_t i = 0; i < frame->n_cpus; i++)
            n += frame->cpus[i].type == t;
        rows += 1 + (n + cells_in(width) - 1) / cells_in(width);
    }
    return rows;
}

/* Writes "[|||  ]", of that many columns, at least 3. */
static unsigned put_bar(struct asym_top_page *page, unsigned column, unsigned columns, double share)
{
    char bar[CELL_COLUMNS_MAX + 1];
    const unsigned inner = ASYM_MIN(columns, CELL_COLUMNS_MAX) - 2;
    const double clamped = share > 0 ? ASYM_MIN(share, 1.0) : 0;
    memset(bar, ' ', inner);
    memset(bar, '|', (size_t)(clamped * inner + 0.5));
    bar[inner] = '\0';
    asym_top_put(page, column, 1, ASYM_TOP_PLAIN, "[");
    asym_top_put(page, column + 1, inner, ASYM_TOP_BUSY, bar);
    return asym_top_put(page, column + 1 + inner, 1, ASYM_TOP_PLAIN, "]");
}

/* The word for the speed of a type. A type without a name of its own is called fast or slow already. */
static const char *kind(const struct asym_top_frame *frame, const struct type *t)
{
    const char *word = t->first->fast ? "fast" : "slow";
    return *frame->slow_cpus == '\0' || strcmp(word, t->first->type_name) == 0 ? "" : word;
}

static unsigned put_name(struct asym_top_page *page, const struct asym_top_frame *frame, const struct type *t,
                         unsigned columns)
{
    const enum asym_top_style style = t->first->fast && *frame->slow_cpus ? ASYM_TOP_FAST : ASYM_TOP_PLAIN;
    return asym_top_put(page, 0, columns, style, *t->first->type_name ? t->first->type_name : "cores");
}

static void put_heading(struct asym_top_page *page, const struct asym_top_frame *frame, const struct type *t)
{
    char list[64], cores[32] = "", text[256];
    const char *word = kind(frame, t);
    const unsigned column = put_name(page, frame, t, page->width);
    if (t->n_cores < t->n)
        snprintf(cores, sizeof cores, "%u core%s, ", t->n_cores, t->n_cores == 1 ? "" : "s");
    snprintf(text, sizeof text, "%s%s %.2fx, %s%u CPU%s %s, %.0f%% busy, %u thread%s steered here", *word ? ", " : "",
             word, t->first->speed, cores, t->n, t->n == 1 ? "" : "s",
             asym_columns_cpus(&t->cpus, 24, list, sizeof list), 100 * t->busy / t->n, t->threads,
             t->threads == 1 ? "" : "s");
    asym_top_put(page, column, page->width, ASYM_TOP_PLAIN, text);
    asym_top_next_row(page);
}

static void put_cell(struct asym_top_page *page, const struct asym_top_cpu *cpu, unsigned column, unsigned columns)
{
    unsigned at = asym_top_format(page, column, columns, ASYM_TOP_PLAIN, "%3u ", cpu->cpu);
    at = put_bar(page, at, 7, cpu->busy);
    if (columns >= CELL_COLUMNS_SHARE)
        at = asym_top_format(page, at, columns, ASYM_TOP_PLAIN, "%4.0f%%", 100 * cpu->busy);
    if (cpu->busy >= BUSY && at + 2 < column + columns)
        asym_top_put(page, at + 1, column + columns - 2 - at, ASYM_TOP_PLAIN, cpu->comm);
}

static void put_cells(struct asym_top_page *page, const struct asym_top_frame *frame, unsigned type)
{
    const unsigned across = cells_in(page->width);
    const unsigned columns = ASYM_MIN(page->width / across, CELL_COLUMNS_MAX);
    unsigned n = 0;
    for (size_t i = 0; i < frame->n_cpus; i++) {
        if (frame->cpus[i].type != type)
            continue;
        if (n > 0 && n % across == 0)
            asym_top_next_row(page);
        put_cell(page, &frame->cpus[i], n++ % across * columns, columns);
    }
    asym_top_next_row(page);
}

/* Takes the command with the most CPUs out of the list. */
static struct command take_most(struct type *t)
{
    size_t most = 0;
    for (size_t i = 1; i < t->n_commands; i++)
        if (t->commands[i].cpus > t->commands[most].cpus)
            most = i;
    const struct command taken = t->commands[most];
    memmove(&t->commands[most], &t->commands[most + 1], (--t->n_commands - most) * sizeof taken);
    return taken;
}

/* Writes "stockfish on 8, gzip on 1", as far as it fits. */
static void put_commands(struct asym_top_page *page, unsigned column, struct type *t)
{
    for (bool first = true; t->n_commands > 0 && column + 14 < page->width; first = false) {
        const struct command c = take_most(t);
        column = asym_top_put(page, column, 2, ASYM_TOP_PLAIN, first ? "" : ", ");
        column = asym_top_put(page, column, 16, ASYM_TOP_PLAIN, c.comm);
        column = asym_top_format(page, column, page->width, ASYM_TOP_PLAIN, " on %u", c.cpus);
    }
}

/* The pieces from the left, as far as they fit: the narrowest screen still has the name, the number and the share. */
static void put_summary(struct asym_top_page *page, const struct asym_top_frame *frame, struct type *t)
{
    char list[32];
    const unsigned name = page->width >= 80 ? 16 : 14;
    put_name(page, frame, t, name - 1);
    unsigned at = name;
    if (page->width >= 60)
        at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%-4s %5.2fx ", kind(frame, t), t->first->speed);
    at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%4u CPU%s ", t->n, t->n == 1 ? " " : "s");
    if (page->width >= 120) {
        asym_top_put(page, at, 20, ASYM_TOP_PLAIN, asym_columns_cpus(&t->cpus, 20, list, sizeof list));
        at = put_bar(page, at + 21, 22, t->busy / t->n);
    }
    at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%3.0f%% %4u busy  ", 100 * t->busy / t->n, t->n_busy);
    if (page->width >= 120)
        at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%4u steered  ", t->threads);
    if (page->width >= 120 && t->n_cores < t->n)
        at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%u core%s  ", t->n_cores,
                             t->n_cores == 1 ? "" : "s");
    put_commands(page, at, t);
    asym_top_next_row(page);
}

void asym_top_put_cpus(struct asym_top_page *page, const struct asym_top_frame *frame, size_t rows)
{
    const bool cells = rows_with_cells(frame, page->width) <= rows;
    const size_t end = page->row + rows;
    struct type t;
    for (unsigned type = type_from(frame, 0); type != ~0u && page->row < end; type = type_from(frame, type + 1)) {
        if (!collect(frame, type, &t))
            break;
        if (!cells) {
            put_summary(page, frame, &t);
            continue;
        }
        put_heading(page, frame, &t);
        put_cells(page, frame, type);
    }
}
