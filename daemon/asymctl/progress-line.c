/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/progress-line.h"

#include <stdio.h>
#include <unistd.h>

#include "app/command-line.h"
#include "base/clock.h"
#include "base/macro.h"
#include "report/columns.h"
#include "report/progress.h"

struct asym_progress_line asym_progress_line_begin(void)
{
    return (struct asym_progress_line){
        .begun = asym_clock_now(), .columns = asym_terminal_of(stderr).columns, .wanted = isatty(STDERR_FILENO) == 1};
}

double asym_progress_line_elapsed(const struct asym_progress_line *p)
{
    return (double)(asym_clock_now() - p->begun) / ASYM_SEC;
}

static bool is_due(const struct asym_progress_line *p)
{
    return p->wanted && asym_progress_line_elapsed(p) >= ASYM_PROGRESS_AFTER;
}

static void put(struct asym_progress_line *p, const char *text)
{
    fprintf(stderr, "\r\033[K%s", text);
    p->shown = true;
}

void asym_progress_line_show(struct asym_progress_line *p, double done, double all, const char *unit)
{
    char text[200];
    if (is_due(p))
        put(p, asym_progress_text(asym_progress_line_elapsed(p), ASYM_MIN(done, all), all, unit, p->columns, text,
                                  sizeof text));
}

void asym_progress_line_say(struct asym_progress_line *p, const char *text)
{
    char cut[256];
    if (is_due(p))
        put(p, asym_columns_cut(text, p->columns - 1, cut, sizeof cut));
}

void asym_progress_line_end(struct asym_progress_line *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
