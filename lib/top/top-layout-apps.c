/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the applications. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "report/columns.h"
#include "report/json.h"
#include "top/top.h"

#define WIDE 160u /* columns of a screen that has room for words in place of abbreviations, and for all figures */
#define MOST 40u  /* columns of a command line */

static void write_command(const json_t *app, char *buf, size_t size)
{
    const int64_t processes = asym_json_get_int(app, "processes");
    const char *command = asym_json_get_text(app, "command");
    if (processes > 1)
        snprintf(buf, size, "%s, %" PRId64 " processes", asym_top_name(app), processes);
    else
        snprintf(buf, size, "%s", *command ? command : asym_top_name(app));
}

static void write_class(const json_t *app, bool wide, char *buf, size_t size)
{
    static const struct {
        const char *name, *narrow;
    } words[] = {{"mildly parallel", "mildly"}, {"highly parallel", "highly"}, {"serial phase", "phase"}};
    const char *name = asym_json_get_text(app, "class_name"), *word = name;
    for (size_t i = 0; !wide && i < ASYM_LENGTH(words); i++)
        if (strcmp(name, words[i].name) == 0)
            word = words[i].narrow;
    snprintf(buf, size, "%s", word);
}

static void write_cell(const json_t *app, enum asym_top_column c, bool wide, char *buf, size_t size)
{
    if (c == ASYM_TOP_COMMAND)
        write_command(app, buf, size);
    else if (c == ASYM_TOP_CLASS)
        write_class(app, wide, buf, size);
    else if (c == ASYM_TOP_PID && asym_json_get_int(app, "pid") == 0)
        snprintf(buf, size, "-");
    else
        asym_top_value(app, c, buf, size);
}

/* By enum asym_top_column. */
static const struct {
    const char *heading;
    unsigned columns, wide; /* on narrow and wide screens; 0: what the others leave */
    unsigned from;          /* a screen of fewer columns leaves it out */
    bool right;
} columns[] = {
    [ASYM_TOP_PID] = {"PID", 7, 7, 0, true},
    [ASYM_TOP_USER] = {"USER", 8, 8, 100, false},
    [ASYM_TOP_CPU] = {"CPU%", 5, 5, 48, true},
    [ASYM_TOP_COMMAND] = {"COMMAND", 18, MOST, 0, false},
    [ASYM_TOP_CLASS] = {"CLASS", 10, 15, 40, false},
    [ASYM_TOP_RUNNABLE] = {"RUN", 5, 5, 24, true},
    [ASYM_TOP_THREADS] = {"THREADS", 8, 8, WIDE, true},
    [ASYM_TOP_STEERED] = {"STEERED", 8, 8, WIDE, true},
    [ASYM_TOP_SHARE] = {"FAST", 5, 5, 32, true},
    [ASYM_TOP_MOVES] = {"MOVES", 6, 6, 110, true},
    [ASYM_TOP_REASON] = {"REASON", 0, 0, 72, false},
};

static unsigned columns_of(enum asym_top_column c, unsigned width)
{
    unsigned others = 0;
    /* Below, the reason has the room. */
    if (c == ASYM_TOP_COMMAND && width >= 100)
        return ASYM_MIN(width / 5, MOST);
    if (columns[c].columns > 0 && (c != ASYM_TOP_COMMAND || width >= columns[ASYM_TOP_REASON].from))
        return width >= WIDE ? columns[c].wide : columns[c].columns;
    for (unsigned i = 0; i < ASYM_TOP_N_COLUMNS; i++)
        if (i != c && width >= columns[i].from)
            others += 1 + columns_of((enum asym_top_column)i, width);
    return width > others ? width - others : 1;
}

static unsigned put_cell(struct asym_top_page *page, unsigned at, enum asym_top_column c, enum asym_top_style style,
                         const char *text)
{
    char printable[512];
    const unsigned room = columns_of(c, page->width);
    text = asym_top_printable(text, printable, sizeof printable);
    const unsigned used = (unsigned)ASYM_MIN(asym_columns_of(text), (size_t)room);
    asym_top_put(page, at + (columns[c].right ? room - used : 0), room, style, text);
    return at + room + 1;
}

/* A line in one style is a line of blanks with the cells over it. */
static void put_background(struct asym_top_page *page, enum asym_top_style style)
{
    if (style != ASYM_TOP_PLAIN)
        asym_top_format(page, 0, page->width, style, "%*s", (int)ASYM_MIN(page->width, 500u), "");
}

static void put_headings(struct asym_top_page *page, const struct asym_top_view *view)
{
    char text[32];
    unsigned at = 0;
    put_background(page, ASYM_TOP_HEADING);
    for (unsigned c = 0; c < ASYM_TOP_N_COLUMNS; c++) {
        if (page->width < columns[c].from)
            continue;
        snprintf(text, sizeof text, "%s%s", columns[c].heading, view->rows > 0 && view->sort == c ? "*" : "");
        at = put_cell(page, at, (enum asym_top_column)c, ASYM_TOP_HEADING, text);
    }
    page->row++;
}

static void put_app(struct asym_top_page *page, const json_t *app, enum asym_top_style style)
{
    char text[256];
    unsigned at = 0;
    put_background(page, style);
    for (unsigned c = 0; c < ASYM_TOP_N_COLUMNS; c++) {
        if (page->width < columns[c].from)
            continue;
        write_cell(app, (enum asym_top_column)c, page->width >= WIDE, text, sizeof text);
        at = put_cell(page, at, (enum asym_top_column)c, style, text);
    }
    page->row++;
}

void asym_top_put_apps(struct asym_top_page *page, const json_t *frame, const struct asym_top_view *view,
                       const struct asym_top_order *order, size_t first, size_t rows)
{
    if (rows == 0)
        return;
    put_headings(page, view);
    for (size_t i = first; i < order->n && i - first < rows - 1; i++)
        put_app(page, json_array_get(asym_top_apps(frame), order->index[i]),
                view->rows > 0 && i == view->line ? ASYM_TOP_SELECTED : ASYM_TOP_PLAIN);
}
