/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/trace-text.h"

#include <string.h>

#include "base/text.h"

void asym_trace_text(FILE *out, const char *text)
{
    char clean[256];
    asym_text_escape(text, strlen(text), clean, sizeof clean);
    fputc('"', out);
    for (const char *c = clean; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', out);
        fputc(*c, out);
    }
    fputc('"', out);
}
