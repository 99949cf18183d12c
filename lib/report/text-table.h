/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A table whose columns are as wide as their cells. If its lines are longer than those of the terminal, it loses columns.
 *
 * It is for the figures of sim and replay: it leaves out columns without a value, and can name the columns that it lost:
 * their figures are in the JSON. report-table.h is for what a running asymd shows: it also cuts cells, aligns columns right, and
 * goes without headings.
 */
#ifndef ASYM_REPORT_TEXT_TABLE_H
#define ASYM_REPORT_TEXT_TABLE_H

#include "report/columns.h"

enum { ASYM_TEXT_TABLE_MAX_COLUMNS = 16 };

struct asym_text_table_column {
    const char *title;
    unsigned rank; /**< 0: the table never loses it; of the others it loses the one of the highest rank first */
};

/** columns and n_columns (at most ASYM_TEXT_TABLE_MAX_COLUMNS) are borrowed; the rest is zero in an empty table. */
struct asym_text_table {
    const struct asym_text_table_column *columns;
    size_t n_columns;
    char **cells; /**< owned, row by row */
    size_t n_cells, capacity;
    int error; /**< -ENOMEM: a cell is missing */
};

/** Add the next cell: valid UTF-8 without control characters. "-" says that there is no value. */
void asym_text_table_add(struct asym_text_table *table, const char *text);

/**
 * Print the titles and the rows. Leaves out a column of a rank above 0 that has no value. With `hidden` it writes the titles of
 * the columns that the table lost for lack of room, "a, b". Returns 0; -ENOMEM; -EIO.
 */
int asym_text_table_print(const struct asym_text_table *table, const struct asym_terminal *terminal, char *hidden,
                          size_t size);

void asym_text_table_done(struct asym_text_table *table);

#endif
