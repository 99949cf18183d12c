/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report-table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/text.h"

#define GAP 2

/* The widths of the columns; 0: the column is dropped. */
struct layout {
    size_t width[ASYM_REPORT_TABLE_COLUMNS];
};

void asym_report_table_add(struct asym_report_table *table, const char *text)
{
    const int r = asym_grow(&table->cells, table->n_cells, &table->capacity, sizeof *table->cells);
    char *cell = r < 0 ? NULL : strdup(text);
    if (cell)
        table->cells[table->n_cells++] = cell;
    else
        table->error = -ENOMEM;
}

void asym_report_table_row(struct asym_report_table *table, const char *const *cells)
{
    for (size_t c = 0; c < table->n_columns; c++)
        asym_report_table_add(table, cells[c]);
}

/* Returns 0 for a column without a value that may be dropped. */
static size_t natural_width(const struct asym_report_table *table, size_t column, bool headings)
{
    size_t width = headings ? asym_columns_of(table->columns[column].heading) : 1;
    bool has_value = table->columns[column].drop == 0;
    for (size_t i = column; i < table->n_cells; i += table->n_columns) {
        width = asym_columns_wider(width, table->cells[i]);
        has_value |= strcmp(table->cells[i], "-") != 0;
    }
    return has_value ? width : 0;
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
static bool drop_one(const struct asym_report_table *table, struct layout *l, struct asym_text *lost)
{
    size_t worst = table->n_columns;
    for (size_t c = 0; c < table->n_columns; c++)
        if (l->width[c] > 0 && table->columns[c].drop > 0 &&
            (worst == table->n_columns || table->columns[c].drop > table->columns[worst].drop))
            worst = c;
    if (worst == table->n_columns)
        return false;
    l->width[worst] = 0;
    asym_text_add(lost, "%s%s", lost->used ? ", " : "", table->columns[worst].heading);
    return true;
}

static struct layout lay_out(struct asym_report_table *table, size_t columns, bool headings)
{
    struct layout whole = {{0}}, l;
    struct asym_text lost = asym_text_in(table->lost, sizeof table->lost);
    for (size_t c = 0; c < table->n_columns; c++)
        whole.width[c] = natural_width(table, c, headings);
    for (;;) {
        l = whole;
        const size_t total = total_width(&l, table->n_columns);
        if (total > columns)
            cut(table, &l, total - columns);
        if (total_width(&l, table->n_columns) <= columns || !drop_one(table, &whole, &lost))
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

int asym_report_table_print(struct asym_report_table *table, const struct asym_terminal *terminal, size_t at,
                            size_t indent, bool headings)
{
    if (table->error < 0)
        return table->error;
    const size_t room = terminal->columns > indent ? terminal->columns - indent : 0;
    const struct layout l = lay_out(table, room, headings);
    const char *names[ASYM_REPORT_TABLE_COLUMNS];
    for (size_t c = 0; c < table->n_columns; c++)
        names[c] = table->columns[c].heading;
    for (size_t i = headings ? 0 : 1; i <= table->n_cells / table->n_columns; i++) {
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
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct asym_report_table){.columns = table->columns, .n_columns = table->n_columns};
}
