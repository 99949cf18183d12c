/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report-page.h"

#include <stdarg.h>

void asym_page_heading(const struct asym_page *p, const char *title)
{
    asym_columns_cell(p->out, title, 13, p->colour ? ASYM_STYLE_HEADING : NULL);
}

void asym_page_say(const struct asym_page *p, size_t at, size_t indent, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(p->out, "%*s", (int)at, "");
    asym_columns_wrap(p->terminal, text, at, indent);
    fputc('\n', p->out);
}
