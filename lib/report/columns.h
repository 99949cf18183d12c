/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Texts and tables for the columns of a terminal. Texts must be valid UTF-8 without control characters (asym_text_escape). */
#ifndef ASYM_REPORT_COLUMNS_H
#define ASYM_REPORT_COLUMNS_H

#include <asym/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** The columns of a line: without a terminal, and the least that the reports are made for. */
enum { ASYM_COLUMNS_DEFAULT = 80, ASYM_COLUMNS_LEAST = 68 };

/** The terminal or file of a report. asym_terminal_of (app/command-line.h) finds it once for each report. */
struct asym_terminal {
    FILE *out;
    size_t columns; /**< the maximum width of a line, at least ASYM_COLUMNS_LEAST */
    bool colour;    /**< the report may use escape sequences */
};

/** The columns that text takes. Does not use wcwidth(3), which knows only the characters of the locale. */
size_t asym_columns_of(const char *text);

/** Returns the larger of width and the columns of text. */
size_t asym_columns_wider(size_t width, const char *text);

/** Write the text, or its beginning with "..." after it, so that it fits into that many columns. Returns buf. */
const char *asym_columns_cut(const char *text, size_t columns, char *buf, size_t size);

/** Write the whole CPU list, or its first ranges and the number of CPUs, "0,2,4,...(128)". columns >= 12. Returns buf. */
const char *asym_columns_cpus(const struct asym_mask *mask, size_t columns, char *buf, size_t size);

/**
 * Print the text, starting at column at. Breaks between words, so that no line exceeds the columns of the
 * terminal; further lines begin at column indent, which must be less than ASYM_COLUMNS_LEAST. Breaks a word that is wider than
 * a line. Prints no newline at the end. Returns the column reached.
 */
size_t asym_columns_wrap(const struct asym_terminal *terminal, const char *text, size_t at, size_t indent);

/** Do the same, and end the line. */
void asym_columns_line(const struct asym_terminal *terminal, const char *text, size_t at, size_t indent);

/** Print a paragraph that starts at column at of a new line; further lines start at column indent. */
void asym_columns_say(const struct asym_terminal *terminal, size_t at, size_t indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/**
 * Print a text of several paragraphs, each wrapped as wide as the terminal. In a paragraph a newline counts as a space. A line
 * that begins with a space, and an empty one, stay as they are. The text ends in a newline.
 */
void asym_columns_text(const struct asym_terminal *terminal, const char *text);

/** Print the text and pad it to that many columns. style: the parameters of an escape sequence ("33"); NULL: plain. */
void asym_columns_cell(FILE *out, const char *text, size_t columns, const char *style);

/* A table of texts that fits the terminal: it drops columns, and cuts one, before a line becomes too wide. */

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
