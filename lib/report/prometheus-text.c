/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/prometheus-text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define HELP  "# HELP "
#define TYPE  "# TYPE "
#define UNIT  "# UNIT "
#define END   "# EOF"
#define TOTAL "_total"

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* Returns whether a line of TYPE says that its family is a counter. */
static bool is_counter(const char *type)
{
    const char *name = type + strlen(TYPE);
    return begins(type, TYPE) && begins(name + strcspn(name, " \n"), " counter\n");
}

/* line: HELP or TYPE. */
static void print_head(const char *line, bool counter, FILE *out)
{
    const size_t name = strlen(HELP), n = name + strcspn(line + name, " \n");
    fprintf(out, "%.*s%s%.*s", (int)n, line, counter ? TOTAL : "", (int)(next_line(line) - line - (long)n), line + n);
}

int asym_prometheus_text_print(const char *openmetrics, FILE *out)
{
    for (const char *line = openmetrics, *next; *line; line = next) {
        next = next_line(line);
        if (begins(line, UNIT) || begins(line, END))
            continue;
        if (begins(line, HELP))
            print_head(line, is_counter(next), out); /* a line of TYPE follows each HELP */
        else if (begins(line, TYPE))
            print_head(line, is_counter(line), out);
        else
            fprintf(out, "%.*s", (int)(next - line), line);
    }
    return ferror(out) ? -EIO : 0;
}
