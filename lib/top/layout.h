/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The screen of asymctl top, from a frame, the view of the user and the order of the applications. A pure function.
 *
 * From the top: one line about asymd; the CPUs by type of core, with what runs there; the applications as a table; a line with
 * the keys. A screen without room for a line per three CPUs gets one line per type of core. A narrow screen gets fewer columns
 * of the table. Texts of the user's screen replace the table: the help, and why an application is treated as it is.
 */
#ifndef ASYM_TOP_LAYOUT_H
#define ASYM_TOP_LAYOUT_H

#include "top/frame.h"
#include "top/page.h"
#include "top/view.h"

/** The findings of the layout, for the next key: see struct asym_top_view. */
struct asym_top_shown {
    size_t first, page_lines;
};

/**
 * Lay out the page for view->columns and view->rows; with rows = 0 the page has as many rows as it needs. *page must be a page
 * of zeros, or an earlier page. Returns 0; -ENOMEM.
 */
int asym_top_layout(const struct asym_top_frame *frame, const struct asym_top_view *view,
                    const struct asym_top_order *order, struct asym_top_page *page, struct asym_top_shown *ret_shown);

/* The parts of the screen, for layout.c. Each starts at the current row of the page, and ends on a row of its own. */

/** Write the CPUs into that many rows at most. */
void asym_top_put_cpus(struct asym_top_page *page, const struct asym_top_frame *frame, size_t rows);

/** Write the heading of the table, and rows - 1 applications from first on. */
void asym_top_put_apps(struct asym_top_page *page, const struct asym_top_frame *frame, const struct asym_top_view *view,
                       const struct asym_top_order *order, size_t first, size_t rows);

/** Returns how many rows the lines of text take, wrapped to the width of the page. */
size_t asym_top_text_rows(const struct asym_top_page *page, const char *text);

/** Write the lines of text, wrapped to the width of the page: that many rows at most, from row first of them on. */
void asym_top_put_text(struct asym_top_page *page, const char *text, size_t first, size_t rows);

#endif
