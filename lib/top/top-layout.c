/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "report/columns.h"
#include "report/json.h"

/* The table of the applications. */

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
    text = asym_text_printable(text, printable, sizeof printable);
    const unsigned used = (unsigned)ASYM_MIN(asym_columns_of(text), (size_t)room);
    asym_top_put(page, at + (columns[c].right ? room - used : 0), room, style, text);
    return at + room + 1;
}

/* app NULL: the headings. */
static void put_row(struct asym_top_page *page, const struct asym_top_view *view, const json_t *app,
                    enum asym_top_style style)
{
    char text[256];
    unsigned at = 0;
    /* A line in one style is a line of blanks with the cells over it. */
    if (style != ASYM_TOP_PLAIN)
        asym_top_format(page, 0, page->width, style, "%*s", (int)ASYM_MIN(page->width, 500u), "");
    for (unsigned c = 0; c < ASYM_TOP_N_COLUMNS; c++) {
        if (page->width < columns[c].from)
            continue;
        if (app)
            write_cell(app, (enum asym_top_column)c, page->width >= WIDE, text, sizeof text);
        else
            snprintf(text, sizeof text, "%s%s", columns[c].heading, view->rows > 0 && view->sort == c ? "*" : "");
        at = put_cell(page, at, (enum asym_top_column)c, style, text);
    }
    page->row++;
}

static void put_apps(struct asym_top_page *page, const json_t *frame, const struct asym_top_view *view,
                     const struct asym_top_order *order, size_t first, size_t rows)
{
    if (rows == 0)
        return;
    put_row(page, view, NULL, ASYM_TOP_HEADING);
    for (size_t i = first; i < order->n && i - first < rows - 1; i++)
        put_row(page, view, json_array_get(asym_top_apps(frame), order->index[i]),
                view->rows > 0 && i == view->line ? ASYM_TOP_SELECTED : ASYM_TOP_PLAIN);
}

/* Lines of text, wrapped. */

#define LINE_MAX_BYTES 2048

/* Returns the bytes of the character at text, which is valid UTF-8 and not empty. */
static size_t character(const char *text)
{
    size_t n = 1;
    while (((unsigned char)text[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* Returns how many bytes of the line fit into a row. They end before a blank if they can, and are above 0. */
static size_t row_of(const char *line, unsigned width)
{
    char one[8];
    size_t n = 0, blank = 0;
    unsigned used = 0;
    while (line[n]) {
        const size_t bytes = ASYM_MIN(character(line + n), sizeof one - 1);
        snprintf(one, sizeof one, "%.*s", (int)bytes, line + n);
        used += (unsigned)asym_columns_of(one);
        if (used > width)
            return line[n] == ' ' ? n : blank > 0 ? blank : n > 0 ? n : bytes;
        if (line[n] == ' ')
            blank = n;
        n += bytes;
    }
    return n;
}

/* Goes through the rows of the text; writes those from first on, at most so many. Returns the number of all rows. */
static size_t wrap(struct asym_top_page *page, unsigned width, const char *text, size_t first, size_t rows)
{
    size_t n = 0;
    while (*text) {
        char line[LINE_MAX_BYTES], printable[LINE_MAX_BYTES];
        const size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)ASYM_MIN(length, sizeof line - 1), text);
        const char *rest = asym_text_printable(line, printable, sizeof printable);
        text += length + (text[length] == '\n');
        do {
            const size_t bytes = row_of(rest, width);
            if (page && n >= first && n - first < rows) {
                asym_top_format(page, 0, width, ASYM_TOP_PLAIN, "%.*s", (int)bytes, rest);
                page->row++;
            }
            rest += bytes;
            rest += *rest == ' ';
            n++;
        } while (*rest);
    }
    return n;
}

/* With --once the CPUs have as many rows as a large screen gives them. */
#define ONCE_CPU_ROWS 34

static const char help[] =
    "up, down, page up, page down, home, end  move the cursor (also k, j, blank, g, G)\n"
    "enter   why: what asymd knows about the application, and why it runs where it runs\n"
    "/       filter: part of a command, a user, a cgroup or a PID; Esc clears the filter\n"
    "< >     sort by the column to the left or to the right; * marks the column\n"
    "r       reverse the order\n"
    "f s i   keep the process under the cursor on fast or slow CPUs, or leave it alone (top asks first)\n"
    "a       let the rules decide about it again (auto; top asks first)\n"
    "o       switch to another policy (top asks first)\n"
    "p       pause asymd, or resume (top asks first)\n"
    "q       quit\n"
    "\n"
    "CPU%    CPU time in the last interval, in percent of one CPU\n"
    "RUN     runnable threads in the last interval\n"
    "FAST    share of its running time on fast CPUs, in the last minute\n"
    "MOVES   how often asymd gave its threads another CPU in the last minute\n"
    "CLASS   serial: one or two runnable threads. mildly: mildly parallel, up to hp_threshold. "
    "highly: highly parallel, more threads than that. phase: the serial phase of a parallel "
    "program. background: high nice values. idle: no thread runs; the row stays for 10 s.\n";

/* Writes the item with " | " before it. The first is cut. From one that does not fit on, the line has no more items. */
static unsigned put_item(struct asym_top_page *page, unsigned at, enum asym_top_style style, const char *text)
{
    const unsigned gap = at > 0 ? 3 : 0;
    if (*text == '\0')
        return at;
    if (at > 0 && at + gap + strlen(text) > page->width)
        return page->width;
    if (gap > 0)
        asym_top_put(page, at, gap, ASYM_TOP_PLAIN, " | ");
    return asym_top_put(page, at + gap, page->width, style, text);
}

static const char *format_paused(const json_t *frame, char *buf, size_t size)
{
    const int64_t left = asym_json_get_int(frame, "paused_for_us") / (int64_t)ASYM_SEC;
    if (left >= 60)
        snprintf(buf, size, "PAUSED for %" PRId64 " min %" PRId64 " s more", left / 60, left % 60);
    else if (left > 0)
        snprintf(buf, size, "PAUSED for %" PRId64 " s more", left);
    else
        snprintf(buf, size, "PAUSED until you resume");
    return buf;
}

static void put_status(struct asym_top_page *page, const json_t *frame, const struct asym_top_view *view)
{
    char text[160];
    unsigned at = put_item(page, 0, ASYM_TOP_ALERT, view->alert);
    const unsigned steered = (unsigned)asym_json_get_int(frame, "threads_steered"),
                   changes = (unsigned)asym_json_get_int(frame, "changes_last_minute");
    const double memory = asym_json_get_number(frame, "memory_bytes");
    const char *policy = asym_json_get_text(frame, "policy");
    if (asym_json_get_flag(frame, "paused"))
        at = put_item(page, at, ASYM_TOP_ALERT, format_paused(frame, text, sizeof text));
    snprintf(text, sizeof text, "policy %s", *policy ? policy : "unknown");
    at = put_item(page, at, ASYM_TOP_PLAIN, text);
    snprintf(text, sizeof text, "%u thread%s steered", steered, steered == 1 ? "" : "s");
    at = put_item(page, at, ASYM_TOP_PLAIN, text);
    snprintf(text, sizeof text, "%u change%s in 60 s", changes, changes == 1 ? "" : "s");
    at = put_item(page, at, ASYM_TOP_PLAIN, text);
    snprintf(text, sizeof text, "asymd: %.1f%% CPU", 100 * asym_json_get_number(frame, "cpu_usage"));
    at = put_item(page, at, ASYM_TOP_PLAIN, text);
    snprintf(text, sizeof text, "%.1f MiB", memory / (1024 * 1024));
    at = put_item(page, at, ASYM_TOP_PLAIN, memory > 0 ? text : "");
    snprintf(text, sizeof text, "a frame every %.1f s", (double)view->every / ASYM_SEC);
    at = put_item(page, at, ASYM_TOP_PLAIN, view->every ? text : "");
    put_item(page, at, ASYM_TOP_PLAIN, asym_json_get_text(frame, "policy_reason"));
    page->row++;
}

static void put_table_footer(struct asym_top_page *page, const json_t *frame, const struct asym_top_view *view,
                             const struct asym_top_order *order)
{
    char text[160] = "";
    unsigned at = 0;
    if (*view->filter)
        at = asym_top_format(page, 0, page->width, ASYM_TOP_ALERT, "filter %s: %zu of %zu", view->filter, order->n,
                             json_array_size(asym_top_apps(frame)));
    else if (order->n > view->page_lines)
        snprintf(text, sizeof text, "%zu of %zu", view->line + 1, order->n);
    at = put_item(page, at, ASYM_TOP_PLAIN, text);
    static const char *const keys[] = {"q quit", "? help", "enter why", "/ filter", "< > sort", "r reverse"};
    for (size_t i = 0; i < ASYM_LENGTH(keys); i++)
        at = put_item(page, at, ASYM_TOP_PLAIN, keys[i]);
    at = put_item(page, at, ASYM_TOP_PLAIN, asym_json_get_flag(frame, "paused") ? "p resume" : "p pause");
    put_item(page, at, ASYM_TOP_PLAIN, "f fast | s slow | i ignore | a auto | o policy");
}

/* The name that the user types, and the policies that begin with it. */
static void put_policy(struct asym_top_page *page, const struct asym_top_view *view)
{
    unsigned at = asym_top_format(page, 0, page->width, ASYM_TOP_PLAIN, "policy (Esc leaves): %s_", view->policy);
    for (const char *const *name = view->policies; name && *name; name++)
        if (strncmp(*name, view->policy, strlen(view->policy)) == 0)
            at = put_item(page, at, ASYM_TOP_PLAIN, *name);
}

static void put_footer(struct asym_top_page *page, const json_t *frame, const struct asym_top_view *view,
                       const struct asym_top_order *order)
{
    switch (view->mode) {
    case ASYM_TOP_FILTER:
        asym_top_format(page, 0, page->width, ASYM_TOP_PLAIN, "filter (Esc clears): %s_", view->filter);
        break;
    case ASYM_TOP_POLICY:
        put_policy(page, view);
        break;
    case ASYM_TOP_CONFIRM:
        asym_top_put(page, 0, page->width, ASYM_TOP_ALERT, view->question);
        break;
    case ASYM_TOP_WHY:
    case ASYM_TOP_HELP:
        asym_top_put(page, 0, page->width, ASYM_TOP_PLAIN, "q back | up, down");
        break;
    case ASYM_TOP_TABLE:
        if (*view->message)
            asym_top_put(page, 0, page->width, ASYM_TOP_ALERT, view->message);
        else
            put_table_footer(page, frame, view, order);
        break;
    }
    page->row++;
}

/* Moves the table as little as shows the line of the cursor, and leaves no empty rows below while lines are above. */
static size_t first_line(const struct asym_top_view *view, size_t n, size_t lines)
{
    size_t first = view->first;
    if (lines == 0)
        return 0;
    if (view->line < first)
        first = view->line;
    if (view->line >= first + lines)
        first = view->line + 1 - lines;
    return n <= lines ? 0 : ASYM_MIN(first, n - lines);
}

static void put_table(struct asym_top_page *page, const json_t *frame, struct asym_top_view *view,
                      const struct asym_top_order *order)
{
    const size_t end = view->rows ? view->rows - 1 : SIZE_MAX;
    /* The CPUs have three fifths of what the first and the last line leave. */
    asym_top_put_cpus(page, frame, view->rows ? (view->rows - 2) * 3 / 5 : ONCE_CPU_ROWS);
    const size_t rows = end > page->row ? end - page->row : 0;
    view->page_lines = rows > 0 ? rows - 1 : 0;
    view->first = view->rows ? first_line(view, order->n, view->page_lines) : 0;
    put_apps(page, frame, view, order, view->first, rows);
}

static void put_text(struct asym_top_page *page, struct asym_top_view *view)
{
    const char *text = view->mode == ASYM_TOP_WHY ? view->why : help;
    const size_t rows = view->rows - 1 - page->row, n = text ? wrap(NULL, page->width, text, 0, 0) : 0;
    view->page_lines = rows;
    view->first = ASYM_MIN(view->first, n > rows ? n - rows : 0);
    if (text)
        wrap(page, page->width, text, view->first, rows);
}

int asym_top_layout(const json_t *frame, struct asym_top_view *view, const struct asym_top_order *order,
                    struct asym_top_page *page)
{
    asym_top_page_start(page, view->columns);
    put_status(page, frame, view);
    if (view->rows == 1) {
        view->first = view->page_lines = 0;
        return page->error;
    }
    if (view->rows > 2 && (view->mode == ASYM_TOP_WHY || view->mode == ASYM_TOP_HELP))
        put_text(page, view);
    else
        put_table(page, frame, view, order);
    if (view->rows == 0)
        return page->error;
    page->row = view->rows - 1;
    put_footer(page, frame, view, order);
    return page->error;
}
