/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The text of a screen: pieces, each with its place. A piece never reaches the place of the next one. */
#ifndef ASYM_TOP_PAGE_H
#define ASYM_TOP_PAGE_H

#include <stddef.h>
#include <stdio.h>

enum asym_top_style {
    ASYM_TOP_PLAIN,
    ASYM_TOP_HEADING,  /**< of the table */
    ASYM_TOP_SELECTED, /**< the application under the cursor */
    ASYM_TOP_ALERT,    /**< paused; asymd does not answer */
    ASYM_TOP_FAST,     /**< a fast type of core */
    ASYM_TOP_BUSY,     /**< a bar */
    ASYM_TOP_N_STYLES,
};

struct asym_top_piece {
    unsigned row, column, columns; /**< from 0; the text takes at most that many columns */
    enum asym_top_style style;
    size_t
        text; /**< where it starts in the page's text. It ends in NUL; it is valid UTF-8 without control characters. */
};

struct asym_top_page {
    unsigned width; /**< columns, 1 or more */
    unsigned row;   /**< the row that is written; at the end: the number of rows */
    int error;      /**< 0; -ENOMEM: some pieces are missing */
    struct asym_top_piece *pieces;
    size_t n_pieces, pieces_size;
    char *text;
    size_t used, text_size;
};

/** Start a page of that width. The memory of the page before is used again. A page of zeros is empty. */
void asym_top_page_start(struct asym_top_page *page, unsigned width);

/**
 * Write text into columns of the current row. Cuts it to them, and to the width of the page; makes it printable. Returns the
 * column after the text.
 */
unsigned asym_top_put(struct asym_top_page *page, unsigned column, unsigned columns, enum asym_top_style style,
                      const char *text);

/** Do the same with a formatted text of up to 511 bytes. */
unsigned asym_top_format(struct asym_top_page *page, unsigned column, unsigned columns, enum asym_top_style style,
                         const char *format, ...) __attribute__((format(printf, 5, 6)));

/** Go to the next row. */
void asym_top_next_row(struct asym_top_page *page);

/** Print the page as text, without styles and without blanks at the ends of lines. Returns 0; -ENOMEM: page->error. */
int asym_top_print(const struct asym_top_page *page, FILE *out);

void asym_top_page_done(struct asym_top_page *page);

/**
 * Returns text if it is valid UTF-8 without control characters, else its printable form in buf. A text that asymd has made
 * printable before keeps its backslashes.
 */
const char *asym_top_printable(const char *text, char *buf, size_t size);

#endif
