/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A table of texts that fits the terminal: it drops columns, and cuts one, before a line becomes too wide.
 *
 * text-table.h is for the figures of sim and replay: its cells are never cut, it leaves out columns without a value, and can name
 * the columns that it lost. This one is for what a running asymd shows: it cuts names that programs choose, can align a column
 * right, and can go without headings, indented behind other text.
 */
#ifndef ASYM_REPORT_REPORT_TABLE_H
#define ASYM_REPORT_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/columns.h"

/** The most columns of a table. */
#define ASYM_REPORT_TABLE_COLUMNS 16

struct asym_report_table_column {
    const char *heading; /**< printable */
    bool right;          /**< numbers end in the same column */
    size_t cut;          /**< the least width to which the cells are cut, in one column of the table; 0: not cut */
    unsigned drop;       /**< 0: always there; else the column with the highest number is dropped first */
};

/** Two spaces stand between columns. */
struct asym_report_table {
    const struct asym_report_table_column *columns; /**< borrowed */
    size_t n_columns;                               /**< 1 to ASYM_REPORT_TABLE_COLUMNS */
    char **cells;                                   /**< owned: n_rows * n_columns */
    size_t n_rows, capacity;                        /**< capacity: in rows */
};

/** Add a row. cells: n_columns printable texts (asym_text_escape), which are copied. Returns 0; -ENOMEM. */
int asym_report_table_add(struct asym_report_table *table, const char *const *cells);

/**
 * Print the rows. The first line begins at column at, where the caller has stopped; further lines begin at column indent, which
 * is not less. headings: print a line of headings first. Returns 0; -EIO.
 */
int asym_report_table_print(const struct asym_report_table *table, const struct asym_terminal *terminal, size_t at,
                            size_t indent, bool headings);

/** Returns the columns that a line needs at least so that none is dropped, with headings. */
size_t asym_report_table_width(const struct asym_report_table *table);

void asym_report_table_done(struct asym_report_table *table);

#endif
