/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define GAP 2

void asym_text_table_add(struct asym_text_table *table, const char *text)
{
    if (table->n_cells == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 64;
        char **cells = reallocarray(table->cells, capacity, sizeof *cells);
        if (cells) {
            table->cells = cells;
            table->capacity = capacity;
        }
    }
    char *cell = table->n_cells < table->capacity ? strdup(text) : NULL;
    if (cell)
        table->cells[table->n_cells++] = cell;
    else
        table->error = -ENOMEM;
}

/* A layout says which columns are shown, and how wide they are. */
struct layout {
    bool shown[ASYM_TEXT_TABLE_MAX_COLUMNS];
    size_t width[ASYM_TEXT_TABLE_MAX_COLUMNS];
};

static void measure(const struct asym_text_table *t, struct layout *ret)
{
    for (size_t c = 0; c < t->n_columns; c++) {
        ret->shown[c] = t->columns[c].rank == 0;
        ret->width[c] = asym_columns_of(t->columns[c].title);
        for (size_t i = c; i < t->n_cells; i += t->n_columns) {
            ret->shown[c] = ret->shown[c] || strcmp(t->cells[i], "-") != 0;
            ret->width[c] = asym_columns_wider(ret->width[c], t->cells[i]);
        }
    }
}

static size_t width_of(const struct asym_text_table *t, const struct layout *l)
{
    size_t width = 0;
    for (size_t c = 0; c < t->n_columns; c++)
        width += l->shown[c] ? l->width[c] + GAP : 0;
    return width - GAP;
}

/* Hides one column. Returns false if all that are left stay. */
static bool hide_one(const struct asym_text_table *t, struct layout *l, struct asym_text *hidden)
{
    size_t found = 0;
    for (size_t c = 1; c < t->n_columns; c++)
        if (l->shown[c] && (!l->shown[found] || t->columns[c].rank > t->columns[found].rank))
            found = c;
    if (t->columns[found].rank == 0)
        return false;
    l->shown[found] = false;
    asym_text_add(hidden, "%s%s", hidden->used ? ", " : "", t->columns[found].title);
    return true;
}

static void print_row(const struct asym_text_table *t, const struct layout *l, size_t row, FILE *out)
{
    size_t pad = 0;
    for (size_t c = 0; c < t->n_columns; c++) {
        if (!l->shown[c])
            continue;
        const char *cell = row == 0 ? t->columns[c].title : t->cells[(row - 1) * t->n_columns + c];
        fprintf(out, "%*s%s", (int)pad, "", cell);
        pad = l->width[c] + GAP - asym_columns_of(cell);
    }
    fputc('\n', out);
}

int asym_text_table_print(const struct asym_text_table *table, const struct asym_terminal *terminal, char *hidden,
                          size_t size)
{
    struct asym_text lost = asym_text_in(hidden, size);
    struct layout l;
    if (table->error < 0)
        return table->error;
    measure(table, &l);
    while (width_of(table, &l) > terminal->columns && hide_one(table, &l, &lost))
        ;
    for (size_t row = 0; row <= table->n_cells / table->n_columns; row++)
        print_row(table, &l, row, terminal->out);
    return ferror(terminal->out) ? -EIO : 0;
}

void asym_text_table_done(struct asym_text_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
    table->n_cells = table->capacity = 0;
}
