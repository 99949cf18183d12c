/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The parts of the screen, for layout.c. Each starts at the current row of the page, and ends on a row of its own. */
#ifndef ASYM_TOP_LAYOUT_PARTS_H
#define ASYM_TOP_LAYOUT_PARTS_H

#include "top/frame.h"
#include "top/page.h"
#include "top/view.h"

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
