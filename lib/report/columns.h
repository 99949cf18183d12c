/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Formats text for the columns of a terminal. Texts must be valid UTF-8 without control characters (asym_text_escape). */
#ifndef ASYM_REPORT_COLUMNS_H
#define ASYM_REPORT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <asym/types.h>

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

/**
 * Print a text of several paragraphs, each wrapped as wide as the terminal. In a paragraph a newline counts as a space. A line
 * that begins with a space, and an empty one, stay as they are. The text ends in a newline.
 */
void asym_columns_text(const struct asym_terminal *terminal, const char *text);

/** Print the text and pad it to that many columns. style: the parameters of an escape sequence ("33"); NULL: plain. */
void asym_columns_cell(FILE *out, const char *text, size_t columns, const char *style);

#endif
