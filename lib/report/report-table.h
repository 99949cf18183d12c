/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A table of texts that fits the terminal: it drops columns, and cuts one, before a line becomes too wide. */
#ifndef ASYM_REPORT_REPORT_TABLE_H
#define ASYM_REPORT_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/columns.h"

/** The most columns of a table. */
#define ASYM_REPORT_TABLE_COLUMNS 16

struct asym_report_table_column {
    const char *heading; /**< printable */
    unsigned drop;       /**< 0: always there; else the column with the highest number is dropped first */
    bool right;          /**< numbers end in the same column */
    size_t cut;          /**< the least width to which the cells are cut, in one column of the table; 0: not cut */
};

/** Two spaces stand between columns. All but the columns is zero in an empty table. */
struct asym_report_table {
    const struct asym_report_table_column *columns; /**< borrowed */
    size_t n_columns;                               /**< 1 to ASYM_REPORT_TABLE_COLUMNS */
    char **cells;                                   /**< owned, row by row */
    size_t n_cells, capacity;
    int error;      /**< -ENOMEM: a cell is missing */
    char lost[160]; /**< the headings of the columns that the last print has dropped for lack of room: "a, b" */
};

/** Add the next cell, a printable text (asym_text_escape), which is copied. "-": there is no value. */
void asym_report_table_add(struct asym_report_table *table, const char *text);

/** Add a row of n_columns cells. */
void asym_report_table_row(struct asym_report_table *table, const char *const *cells);

/**
 * Print the rows. The first line begins at column at, where the caller has stopped; further lines begin at column indent, which
 * is not less. headings: print a line of headings first. A column that may be dropped is not there if none of its cells has a
 * value. Returns 0; -EIO; table->error.
 */
int asym_report_table_print(struct asym_report_table *table, const struct asym_terminal *terminal, size_t at,
                            size_t indent, bool headings);

/** Returns the columns that a line needs at least so that none is dropped, with headings. */
size_t asym_report_table_width(const struct asym_report_table *table);

void asym_report_table_done(struct asym_report_table *table);

#endif
