/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Text in columns of a terminal. Texts are valid UTF-8 without control characters (asym_text_escape). */
#ifndef ASYM_DAEMON_COLUMNS_H
#define ASYM_DAEMON_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <asym/types.h>

/** No line of ours is wider. */
#define ASYM_COLUMNS 100

/** Columns it takes; not wcwidth(3), which knows only the locale's characters. */
size_t asym_columns_of(const char *text);

/** The text, or as much of it as fits with "..." behind it into so many columns. Returns buf. */
const char *asym_columns_cut(const char *text, size_t columns, char *buf, size_t size);

/** A CPU list that fits: whole, or its first ranges and the number of CPUs, "0,2,4,...(128)". columns >= 12. */
const char *asym_columns_cpus(const struct asym_mask *mask, size_t columns, char *buf, size_t size);

/**
 * Print the text from column at on, breaking between words so that no line exceeds ASYM_COLUMNS; further lines begin at
 * column indent. Words wider than a line are broken anywhere. No newline at the end. Returns the column reached.
 */
size_t asym_columns_wrap(FILE *out, const char *text, size_t at, size_t indent);

/** Print the text and pad it to so many columns; style: an escape sequence's parameters ("33"), NULL: plain. */
void asym_columns_cell(FILE *out, const char *text, size_t columns, const char *style);

#endif
