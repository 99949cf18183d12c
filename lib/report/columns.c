/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/columns.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

#define ELLIPSIS "..."

/* Characters that do not take one column: combining and invisible ones take none, East Asian wide ones and emoji take two. */
static const struct {
    uint32_t first, last;
    unsigned char columns;
} ranges[] = {
    {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},   {0x0610, 0x061a, 0},   {0x064b, 0x065f, 0},
    {0x1100, 0x115f, 2},   {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},   {0x202a, 0x202e, 0},
    {0x2060, 0x2064, 0},   {0x20d0, 0x20f0, 0},   {0x231a, 0x231b, 2},   {0x23e9, 0x23f3, 2},   {0x25fd, 0x25fe, 2},
    {0x2614, 0x2615, 2},   {0x2648, 0x2653, 2},   {0x267f, 0x267f, 2},   {0x2693, 0x2693, 2},   {0x26a1, 0x26a1, 2},
    {0x26aa, 0x26ab, 2},   {0x26bd, 0x26be, 2},   {0x26c4, 0x26c5, 2},   {0x26ce, 0x26ce, 2},   {0x26d4, 0x26d4, 2},
    {0x26ea, 0x26ea, 2},   {0x26f2, 0x26fd, 2},   {0x2705, 0x2705, 2},   {0x270a, 0x270b, 2},   {0x2728, 0x2728, 2},
    {0x274c, 0x274e, 2},   {0x2753, 0x2757, 2},   {0x2795, 0x2797, 2},   {0x27b0, 0x27bf, 2},   {0x2b1b, 0x2b1c, 2},
    {0x2b50, 0x2b55, 2},   {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},   {0xa960, 0xa97c, 2},   {0xac00, 0xd7a3, 2},
    {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},   {0xfeff, 0xfeff, 0},
    {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x16fe0, 0x18dff, 2}, {0x1b000, 0x1b2ff, 2}, {0x1f000, 0x1faff, 2},
    {0x20000, 0x3fffd, 2}, {0xe0001, 0xe01ef, 0},
};

static size_t columns_of_code(uint32_t code)
{
    if (code < ranges[0].first)
        return 1;
    for (size_t i = 0; i < ASYM_LENGTH(ranges) && code >= ranges[i].first; i++)
        if (code <= ranges[i].last)
            return ranges[i].columns;
    return 1;
}

/* Returns the bytes of the character at text, which must not be empty, and its columns in *ret_columns. */
static size_t character(const char *text, size_t *ret_columns)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0xc0 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4, i = 1;
    uint32_t code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (; i < n && (s[i] & 0xc0) == 0x80; i++)
        code = code << 6 | (s[i] & 0x3f);
    *ret_columns = columns_of_code(code);
    return i;
}

/* Returns how many bytes from the start of text fit into that many columns and bytes, in whole characters. */
static size_t fitting(const char *text, size_t columns, size_t bytes, size_t *ret_used)
{
    size_t used = 0, at = 0, width;
    while (text[at]) {
        size_t n = character(text + at, &width);
        if (used + width > columns || at + n > bytes)
            break;
        used += width;
        at += n;
    }
    *ret_used = used;
    return at;
}

size_t asym_columns_of(const char *text)
{
    size_t used;
    fitting(text, SIZE_MAX, SIZE_MAX, &used);
    return used;
}

size_t asym_columns_wider(size_t width, const char *text)
{
    const size_t columns = asym_columns_of(text);
    return ASYM_MAX(width, columns);
}

const char *asym_columns_cut(const char *text, size_t columns, char *buf, size_t size)
{
    size_t used;
    size_t n = fitting(text, columns, size - 1, &used);
    if (text[n] == '\0') {
        memcpy(buf, text, n + 1);
        return buf;
    }
    size_t dots = ASYM_MIN(sizeof ELLIPSIS - 1, ASYM_MIN(columns, size - 1));
    n = fitting(text, columns - dots, size - 1 - dots, &used);
    memcpy(buf, text, n);
    memcpy(buf + n, ELLIPSIS, dots);
    buf[n + dots] = '\0';
    return buf;
}

const char *asym_columns_cpus(const struct asym_mask *mask, size_t columns, char *buf, size_t size)
{
    char list[ASYM_MASK_LIST_MAX], tail[24];
    asym_mask_format_list(mask, list, sizeof list);
    size_t fits = ASYM_MIN(columns, size - 1);
    if (strlen(list) <= fits) {
        snprintf(buf, size, "%s", *list ? list : "-");
        return buf;
    }
    size_t n = (size_t)snprintf(tail, sizeof tail, "%s(%u)", ELLIPSIS, asym_mask_count(mask));
    /* Keeps whole ranges only, each with its comma. */
    size_t keep = fits > n ? fits - n : 0;
    while (keep > 0 && list[keep - 1] != ',')
        keep--;
    snprintf(buf, size, "%.*s%s", (int)keep, list, tail);
    return buf;
}

/* Prints the words up to end. Their separators are spaces and newlines. */
static size_t wrap(const struct asym_terminal *terminal, const char *text, const char *end, size_t at, size_t indent)
{
    const size_t columns = terminal->columns;
    bool first = true;
    while (text < end) {
        size_t len = ASYM_MIN(strcspn(text, " \n"), (size_t)(end - text)), used = 0;
        size_t whole = fitting(text, SIZE_MAX, len, &used);
        size_t gap = first ? 0 : 1;
        if (at + gap + used > columns && at > indent) {
            fprintf(terminal->out, "\n%*s", (int)indent, "");
            at = indent;
            gap = 0;
        }
        if (at + gap + used > columns) {
            whole = fitting(text, columns - at - gap, len, &used);
            len = whole;
        }
        fprintf(terminal->out, "%s%.*s", gap ? " " : "", (int)whole, text);
        at += gap + used;
        text += len;
        /* A broken word continues on the next line without a gap. */
        first = text < end && *text != ' ' && *text != '\n';
        while (text < end && (*text == ' ' || *text == '\n'))
            text++;
    }
    return at;
}

size_t asym_columns_wrap(const struct asym_terminal *terminal, const char *text, size_t at, size_t indent)
{
    return wrap(terminal, text, text + strlen(text), at, indent);
}

void asym_columns_line(const struct asym_terminal *terminal, const char *text, size_t at, size_t indent)
{
    asym_columns_wrap(terminal, text, at, indent);
    fputc('\n', terminal->out);
}

void asym_columns_say(const struct asym_terminal *terminal, size_t at, size_t indent, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(terminal->out, "%*s", (int)at, "");
    asym_columns_line(terminal, text, at, indent);
}

/* The end of the paragraph: the newline before an empty line or one that begins with a space, or the end of the text. */
static const char *paragraph_end(const char *text)
{
    const char *end = text + strcspn(text, "\n");
    while (!strchr(" \n", *text) && *end && end[1] && !strchr("\n ", end[1]))
        end += 1 + strcspn(end + 1, "\n");
    return end;
}

void asym_columns_text(const struct asym_terminal *terminal, const char *text)
{
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = paragraph_end(text);
        if (*text == ' ')
            fprintf(terminal->out, "%.*s", (int)(end - text), text);
        else
            wrap(terminal, text, end, 0, 0);
        fputc('\n', terminal->out);
    }
}

void asym_columns_cell(FILE *out, const char *text, size_t columns, const char *style)
{
    size_t used = asym_columns_of(text);
    if (style)
        fprintf(out, "\033[%sm%s\033[0m", style, text);
    else
        fputs(text, out);
    if (used < columns)
        fprintf(out, "%*s", (int)(columns - used), "");
}

#define GAP 2

/* The widths of the columns; 0: the column is dropped. */
struct layout {
    size_t width[ASYM_REPORT_TABLE_COLUMNS];
};

void asym_report_table_add(struct asym_report_table *table, const char *text)
{
    const int r = asym_grow(&table->cells, table->n_cells, &table->capacity, sizeof *table->cells);
    char *cell = r < 0 ? NULL : strdup(text);
    if (cell)
        table->cells[table->n_cells++] = cell;
    else
        table->error = -ENOMEM;
}

void asym_report_table_row(struct asym_report_table *table, const char *const *cells)
{
    for (size_t c = 0; c < table->n_columns; c++)
        asym_report_table_add(table, cells[c]);
}

/* Returns 0 for a column without a value that may be dropped. */
static size_t natural_width(const struct asym_report_table *table, size_t column, bool headings)
{
    size_t width = headings ? asym_columns_of(table->columns[column].heading) : 1;
    bool has_value = table->columns[column].drop == 0;
    for (size_t i = column; i < table->n_cells; i += table->n_columns) {
        width = asym_columns_wider(width, table->cells[i]);
        has_value |= strcmp(table->cells[i], "-") != 0;
    }
    return has_value ? width : 0;
}

static size_t total_width(const struct layout *l, size_t n)
{
    size_t total = 0;
    for (size_t c = 0; c < n; c++)
        total += l->width[c] > 0 ? l->width[c] + (total > 0 ? GAP : 0) : 0;
    return total;
}

/* Makes the column that may be cut narrower by at most excess. */
static void cut(const struct asym_report_table *table, struct layout *l, size_t excess)
{
    for (size_t c = 0; c < table->n_columns; c++)
        if (table->columns[c].cut > 0 && l->width[c] > table->columns[c].cut)
            l->width[c] -= ASYM_MIN(excess, l->width[c] - table->columns[c].cut);
}

/* Returns false if no column may be dropped any more. */
static bool drop_one(const struct asym_report_table *table, struct layout *l, struct asym_text *lost)
{
    size_t worst = table->n_columns;
    for (size_t c = 0; c < table->n_columns; c++)
        if (l->width[c] > 0 && table->columns[c].drop > 0 &&
            (worst == table->n_columns || table->columns[c].drop > table->columns[worst].drop))
            worst = c;
    if (worst == table->n_columns)
        return false;
    l->width[worst] = 0;
    asym_text_add(lost, "%s%s", lost->used ? ", " : "", table->columns[worst].heading);
    return true;
}

static struct layout lay_out(struct asym_report_table *table, size_t columns, bool headings)
{
    struct layout whole = {{0}}, l;
    struct asym_text lost = asym_text_in(table->lost, sizeof table->lost);
    for (size_t c = 0; c < table->n_columns; c++)
        whole.width[c] = natural_width(table, c, headings);
    for (;;) {
        l = whole;
        const size_t total = total_width(&l, table->n_columns);
        if (total > columns)
            cut(table, &l, total - columns);
        if (total_width(&l, table->n_columns) <= columns || !drop_one(table, &whole, &lost))
            return l;
    }
}

static void print_row(const struct asym_report_table *table, const struct layout *l, const char *const *cells,
                      FILE *out)
{
    size_t gap = 0, pending = 0;
    for (size_t c = 0; c < table->n_columns; c++) {
        char text[1024];
        if (l->width[c] == 0)
            continue;
        asym_columns_cut(cells[c], l->width[c], text, sizeof text);
        const size_t used = asym_columns_of(text), pad = l->width[c] - ASYM_MIN(used, l->width[c]);
        /* The blanks after a cell wait for the next cell, so that no line ends in blanks. */
        if (*text)
            fprintf(out, "%*s%s", (int)(pending + gap + (table->columns[c].right ? pad : 0)), "", text);
        pending = !*text ? pending + gap + l->width[c] : table->columns[c].right ? 0 : pad;
        gap = GAP;
    }
    fputc('\n', out);
}

int asym_report_table_print(struct asym_report_table *table, const struct asym_terminal *terminal, size_t at,
                            size_t indent, bool headings)
{
    if (table->error < 0)
        return table->error;
    const size_t room = terminal->columns > indent ? terminal->columns - indent : 0;
    const struct layout l = lay_out(table, room, headings);
    const char *names[ASYM_REPORT_TABLE_COLUMNS];
    for (size_t c = 0; c < table->n_columns; c++)
        names[c] = table->columns[c].heading;
    for (size_t i = headings ? 0 : 1; i <= table->n_cells / table->n_columns; i++) {
        const char *const *row = i == 0 ? names : (const char *const *)(table->cells + (i - 1) * table->n_columns);
        fprintf(terminal->out, "%*s", (int)(indent - at), "");
        at = 0;
        print_row(table, &l, row, terminal->out);
    }
    return ferror(terminal->out) ? -EIO : 0;
}

size_t asym_report_table_width(const struct asym_report_table *table)
{
    struct layout l = {{0}};
    for (size_t c = 0; c < table->n_columns; c++)
        l.width[c] = natural_width(table, c, true);
    cut(table, &l, SIZE_MAX);
    return total_width(&l, table->n_columns);
}

void asym_report_table_done(struct asym_report_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct asym_report_table){.columns = table->columns, .n_columns = table->n_columns};
}
