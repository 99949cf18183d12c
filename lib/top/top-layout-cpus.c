/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs: a heading for each type of core with a cell for each CPU, or one row for each type. */
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "report/columns.h"
#include "report/json.h"
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

/* The commands that run on the CPUs of a type. */
struct commands {
    unsigned n_busy; /* CPUs */
    struct command list[N_COMMANDS];
    size_t n;
};

static void count_command(struct commands *c, const json_t *cpu)
{
    const char *comm = asym_json_get_text(cpu, "comm");
    size_t i = 0;
    if (asym_json_get_number(cpu, "busy") < BUSY)
        return;
    c->n_busy++;
    while (i < c->n && strcmp(c->list[i].comm, comm) != 0)
        i++;
    if (!*comm || i == N_COMMANDS)
        return;
    if (i == c->n)
        c->list[c->n++] = (struct command){.comm = comm};
    c->list[i].cpus++;
}

static int64_t type_of(const json_t *cpu)
{
    return asym_json_get_int(cpu, "type");
}

static unsigned cells_in(unsigned width)
{
    return ASYM_MAX(width / CELL_COLUMNS, 1u);
}

static size_t rows_with_cells(const json_t *frame, unsigned width)
{
    size_t rows = 0;
    struct asym_top_type type;
    for (int64_t t = asym_top_type_from(frame, 0); asym_top_type(frame, t, &type); t = asym_top_type_from(frame, t + 1))
        rows += 1 + (type.n + cells_in(width) - 1) / cells_in(width);
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

/* Returns whether some CPUs are slow. */
static bool has_slow(const json_t *frame)
{
    return *asym_json_get_text(frame, "slow_cpus") != '\0';
}

/* The word for the speed of a type. A type without a name of its own is called fast or slow already. */
static const char *kind(const json_t *frame, const struct asym_top_type *t)
{
    const char *word = t->fast ? "fast" : "slow";
    return !has_slow(frame) || strcmp(word, t->name) == 0 ? "" : word;
}

static unsigned put_name(struct asym_top_page *page, const json_t *frame, const struct asym_top_type *t,
                         unsigned columns)
{
    return asym_top_put(page, 0, columns, t->fast && has_slow(frame) ? ASYM_TOP_FAST : ASYM_TOP_PLAIN,
                        *t->name ? t->name : "cores");
}

static void put_heading(struct asym_top_page *page, const json_t *frame, const struct asym_top_type *t)
{
    char list[64], cores[32] = "", text[256];
    const char *word = kind(frame, t);
    const unsigned column = put_name(page, frame, t, page->width);
    if (t->n_cores < t->n)
        snprintf(cores, sizeof cores, "%u core%s, ", t->n_cores, t->n_cores == 1 ? "" : "s");
    snprintf(text, sizeof text, "%s%s %.2fx, %s%u CPU%s %s, %.0f%% busy, %u thread%s steered here", *word ? ", " : "",
             word, t->speed, cores, t->n, t->n == 1 ? "" : "s", asym_columns_cpus(&t->cpus, 24, list, sizeof list),
             100 * t->busy / t->n, t->threads, t->threads == 1 ? "" : "s");
    asym_top_put(page, column, page->width, ASYM_TOP_PLAIN, text);
    page->row++;
}

static void put_cell(struct asym_top_page *page, const json_t *cpu, unsigned column, unsigned columns)
{
    const double busy = asym_json_get_number(cpu, "busy");
    unsigned at = asym_top_format(page, column, columns, ASYM_TOP_PLAIN, "%3u ",
                                  (unsigned)asym_json_get_int(cpu, "cpu"));
    at = put_bar(page, at, 7, busy);
    if (columns >= CELL_COLUMNS_SHARE)
        at = asym_top_format(page, at, columns, ASYM_TOP_PLAIN, "%4.0f%%", 100 * busy);
    if (busy >= BUSY && at + 2 < column + columns)
        asym_top_put(page, at + 1, column + columns - 2 - at, ASYM_TOP_PLAIN, asym_json_get_text(cpu, "comm"));
}

static void put_cells(struct asym_top_page *page, const json_t *frame, int64_t type)
{
    const unsigned across = cells_in(page->width);
    const unsigned columns = ASYM_MIN(page->width / across, CELL_COLUMNS_MAX);
    json_t *cpu;
    unsigned n = 0;
    size_t i;
    json_array_foreach(json_object_get(frame, "cpus"), i, cpu)
    {
        if (type_of(cpu) != type)
            continue;
        if (n > 0 && n % across == 0)
            page->row++;
        put_cell(page, cpu, n++ % across * columns, columns);
    }
    page->row++;
}

/* Takes the command with the most CPUs out of the list. */
static struct command take_most(struct commands *c)
{
    size_t most = 0;
    for (size_t i = 1; i < c->n; i++)
        if (c->list[i].cpus > c->list[most].cpus)
            most = i;
    const struct command taken = c->list[most];
    memmove(&c->list[most], &c->list[most + 1], (--c->n - most) * sizeof taken);
    return taken;
}

/* Writes "stockfish on 8, gzip on 1", as far as it fits. */
static void put_commands(struct asym_top_page *page, unsigned column, struct commands *commands)
{
    for (bool first = true; commands->n > 0 && column + 14 < page->width; first = false) {
        const struct command c = take_most(commands);
        column = asym_top_put(page, column, 2, ASYM_TOP_PLAIN, first ? "" : ", ");
        column = asym_top_put(page, column, 16, ASYM_TOP_PLAIN, c.comm);
        column = asym_top_format(page, column, page->width, ASYM_TOP_PLAIN, " on %u", c.cpus);
    }
}

/* The pieces from the left, as far as they fit: the narrowest screen still has the name, the number and the share. */
static void put_summary(struct asym_top_page *page, const json_t *frame, int64_t type, const struct asym_top_type *t)
{
    char list[32];
    struct commands commands = {.n = 0};
    json_t *cpu;
    size_t i;
    json_array_foreach(json_object_get(frame, "cpus"), i, cpu) if (type_of(cpu) == type) count_command(&commands, cpu);
    const unsigned name = page->width >= 80 ? 16 : 14;
    put_name(page, frame, t, name - 1);
    unsigned at = name;
    if (page->width >= 60)
        at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%-4s %5.2fx ", kind(frame, t), t->speed);
    at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%4u CPU%s ", t->n, t->n == 1 ? " " : "s");
    if (page->width >= 120) {
        asym_top_put(page, at, 20, ASYM_TOP_PLAIN, asym_columns_cpus(&t->cpus, 20, list, sizeof list));
        at = put_bar(page, at + 21, 22, t->busy / t->n);
    }
    at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%3.0f%% %4u busy  ", 100 * t->busy / t->n,
                         commands.n_busy);
    if (page->width >= 120)
        at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%4u steered  ", t->threads);
    if (page->width >= 120 && t->n_cores < t->n)
        at = asym_top_format(page, at, page->width, ASYM_TOP_PLAIN, "%u core%s  ", t->n_cores,
                             t->n_cores == 1 ? "" : "s");
    put_commands(page, at, &commands);
    page->row++;
}

void asym_top_put_cpus(struct asym_top_page *page, const json_t *frame, size_t rows)
{
    const bool cells = rows_with_cells(frame, page->width) <= rows;
    const size_t end = page->row + rows;
    struct asym_top_type t;
    for (int64_t type = asym_top_type_from(frame, 0); page->row < end && asym_top_type(frame, type, &t);
         type = asym_top_type_from(frame, type + 1)) {
        if (!cells) {
            put_summary(page, frame, type, &t);
            continue;
        }
        put_heading(page, frame, &t);
        put_cells(page, frame, type);
    }
}
