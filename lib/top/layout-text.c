/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of text, wrapped. */
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "report/columns.h"
#include "top/layout.h"

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
        const char *rest = asym_top_printable(line, printable, sizeof printable);
        text += length + (text[length] == '\n');
        do {
            const size_t bytes = row_of(rest, width);
            if (page && n >= first && n - first < rows) {
                asym_top_format(page, 0, width, ASYM_TOP_PLAIN, "%.*s", (int)bytes, rest);
                asym_top_next_row(page);
            }
            rest += bytes;
            rest += *rest == ' ';
            n++;
        } while (*rest);
    }
    return n;
}

size_t asym_top_text_rows(const struct asym_top_page *page, const char *text)
{
    return wrap(NULL, page->width, text, 0, 0);
}

void asym_top_put_text(struct asym_top_page *page, const char *text, size_t first, size_t rows)
{
    wrap(page, page->width, text, first, rows);
}
