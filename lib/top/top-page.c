/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/text.h"
#include "report/columns.h"

/* The bytes of the longest piece. The end of a longer text is missing. */
#define PIECE_MAX 2048

void asym_top_page_start(struct asym_top_page *page, unsigned width)
{
    page->width = ASYM_MAX(width, 1u);
    page->row = 0;
    page->error = 0;
    page->n_pieces = 0;
    page->used = 0;
}

unsigned asym_top_put(struct asym_top_page *page, unsigned column, unsigned columns, enum asym_top_style style,
                      const char *text)
{
    char printable[PIECE_MAX], cut[PIECE_MAX];
    if (column >= page->width || columns == 0)
        return column;
    columns = ASYM_MIN(columns, page->width - column);
    asym_columns_cut(asym_text_printable(text, printable, sizeof printable), columns, cut, sizeof cut);
    const size_t bytes = strlen(cut) + 1;
    if (bytes == 1)
        return column;
    if (asym_grow(&page->pieces, page->n_pieces, &page->pieces_size, sizeof *page->pieces) < 0 ||
        asym_grow(&page->text, page->used + bytes, &page->text_size, 1) < 0) {
        page->error = -ENOMEM;
        return column;
    }
    columns = (unsigned)asym_columns_of(cut);
    page->pieces[page->n_pieces++] = (struct asym_top_piece){
        .row = page->row, .column = column, .columns = columns, .style = style, .text = page->used};
    memcpy(page->text + page->used, cut, bytes);
    page->used += bytes;
    return column + columns;
}

unsigned asym_top_format(struct asym_top_page *page, unsigned column, unsigned columns, enum asym_top_style style,
                         const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return asym_top_put(page, column, columns, style, text);
}

/* Prints the text without the blanks at its end. Returns how many columns it has printed. */
static unsigned print_trimmed(const char *text, FILE *out)
{
    size_t n = strlen(text);
    const size_t whole = n;
    while (n > 0 && text[n - 1] == ' ')
        n--;
    fwrite(text, 1, n, out);
    return (unsigned)(asym_columns_of(text) - (whole - n));
}

int asym_top_print(const struct asym_top_page *page, FILE *out)
{
    unsigned row = 0, column = 0;
    for (size_t i = 0; i < page->n_pieces; i++) {
        const struct asym_top_piece *piece = &page->pieces[i];
        for (; row < piece->row; row++, column = 0)
            fputc('\n', out);
        const char *text = page->text + piece->text;
        if (text[strspn(text, " ")] == '\0')
            continue;
        fprintf(out, "%*s", (int)(piece->column - column), "");
        column = piece->column + print_trimmed(text, out);
    }
    for (; row < page->row; row++)
        fputc('\n', out);
    return page->error;
}

void asym_top_page_done(struct asym_top_page *page)
{
    free(page->pieces);
    free(page->text);
    *page = (struct asym_top_page){.pieces = NULL};
}
