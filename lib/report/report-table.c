/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report-table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define GAP 2

/* The widths of the columns; 0: the column is dropped. */
struct layout {
    size_t width[ASYM_REPORT_TABLE_COLUMNS];
};

static const char *cell_at(const struct asym_report_table *table, size_t row, size_t column)
{
    return table->cells[row * table->n_columns + column];
}

int asym_report_table_add(struct asym_report_table *table, const char *const *cells)
{
    if (table->n_rows == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 16;
        char **grown = reallocarray(table->cells, capacity * table->n_columns, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        table->cells = grown;
        table->capacity = capacity;
    }
    char **row = table->cells + table->n_rows * table->n_columns;
    size_t n = 0;
    while (n < table->n_columns && (row[n] = strdup(cells[n])))
        n++;
    if (n == table->n_columns) {
        table->n_rows++;
        return 0;
    }
    while (n > 0)
        free(row[--n]);
    return -ENOMEM;
}

static size_t natural_width(const struct asym_report_table *table, size_t column, bool headings)
{
    size_t width = headings ? asym_columns_of(table->columns[column].heading) : 1;
    for (size_t i = 0; i < table->n_rows; i++) {
        const size_t columns = asym_columns_of(cell_at(table, i, column));
        width = ASYM_MAX(width, columns);
    }
    return width;
}

static size_t total_width(const struct layout *l, size_t n)
{
    size_t total = 0;
    for (size_t c = 0; c < n; c++)
        total += l->width[c] > 0 ? l->width[c] + (total > 0 ? GAP : 0) : 0;
    return total;
}

/* Makes the column that may be cut narrower by at most excess. */
static void cut(const struct asym_report_table *table, struct layout *l, size_t excess)
{
    for (size_t c = 0; c < table->n_columns; c++)
        if (table->columns[c].cut > 0 && l->width[c] > table->columns[c].cut)
            l->width[c] -= ASYM_MIN(excess, l->width[c] - table->columns[c].cut);
}

/* Returns false if no column may be dropped any more. */
static bool drop_one(const struct asym_report_table *table, struct layout *l)
{
    size_t worst = table->n_columns;
    for (size_t c = 0; c < table->n_columns; c++)
        if (l->width[c] > 0 && table->columns[c].drop > 0 &&
            (worst == table->n_columns || table->columns[c].drop > table->columns[worst].drop))
            worst = c;
    if (worst < table->n_columns)
        l->width[worst] = 0;
    return worst < table->n_columns;
}

static struct layout lay_out(const struct asym_report_table *table, size_t columns, bool headings)
{
    struct layout whole = {{0}}, l;
    for (size_t c = 0; c < table->n_columns; c++)
        whole.width[c] = natural_width(table, c, headings);
    for (;;) {
        l = whole;
        const size_t total = total_width(&l, table->n_columns);
        if (total > columns)
            cut(table, &l, total - columns);
        if (total_width(&l, table->n_columns) <= columns || !drop_one(table, &whole))
            return l;
    }
}

static void print_row(const struct asym_report_table *table, const struct layout *l, const char *const *cells,
                      FILE *out)
{
    size_t gap = 0, pending = 0;
    for (size_t c = 0; c < table->n_columns; c++) {
        char text[1024];
        if (l->width[c] == 0)
            continue;
        asym_columns_cut(cells[c], l->width[c], text, sizeof text);
        const size_t used = asym_columns_of(text), pad = l->width[c] - ASYM_MIN(used, l->width[c]);
        /* The blanks after a cell wait for the next cell, so that no line ends in blanks. */
        if (*text)
            fprintf(out, "%*s%s", (int)(pending + gap + (table->columns[c].right ? pad : 0)), "", text);
        pending = !*text ? pending + gap + l->width[c] : table->columns[c].right ? 0 : pad;
        gap = GAP;
    }
    fputc('\n', out);
}

int asym_report_table_print(const struct asym_report_table *table, const struct asym_terminal *terminal, size_t at,
                            size_t indent, bool headings)
{
    const size_t room = terminal->columns > indent ? terminal->columns - indent : 0;
    const struct layout l = lay_out(table, room, headings);
    const char *names[ASYM_REPORT_TABLE_COLUMNS];
    for (size_t c = 0; c < table->n_columns; c++)
        names[c] = table->columns[c].heading;
    for (size_t i = headings ? 0 : 1; i <= table->n_rows; i++) {
        const char *const *row = i == 0 ? names : (const char *const *)(table->cells + (i - 1) * table->n_columns);
        fprintf(terminal->out, "%*s", (int)(indent - at), "");
        at = 0;
        print_row(table, &l, row, terminal->out);
    }
    return ferror(terminal->out) ? -EIO : 0;
}

size_t asym_report_table_width(const struct asym_report_table *table)
{
    struct layout l = {{0}};
    for (size_t c = 0; c < table->n_columns; c++)
        l.width[c] = natural_width(table, c, true);
    cut(table, &l, SIZE_MAX);
    return total_width(&l, table->n_columns);
}

void asym_report_table_done(struct asym_report_table *table)
{
    for (size_t i = 0; i < table->n_rows * table->n_columns; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct asym_report_table){.columns = table->columns, .n_columns = table->n_columns};
}
