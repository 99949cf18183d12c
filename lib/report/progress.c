/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"

#define BAR_MOST 40

static const char *time_left(double seconds, char *buf, size_t size)
{
    if (seconds < 100)
        snprintf(buf, size, ", %.0f s left", seconds);
    else if (seconds < 6000)
        snprintf(buf, size, ", %.0f min left", seconds / 60);
    else
        snprintf(buf, size, ", %.0f h left", seconds / 3600);
    return buf;
}

const char *asym_progress_text(double elapsed, double done, double all, const char *unit, size_t columns, char *buf,
                               size_t size)
{
    char bar[BAR_MOST + 1], left[48] = "", text[160];
    if (done > 0)
        time_left(elapsed * (all - done) / done, left, sizeof left);
    snprintf(text, sizeof text, "%.0f of %.0f %s%s", floor(done), all, unit, left);
    const size_t used = strlen(text) + strlen("[] ") + 1;
    const size_t width = columns > used ? ASYM_MIN(columns - used, (size_t)BAR_MOST) : 0;
    const size_t full = (size_t)((double)width * done / all);
    memset(bar, '.', width);
    memset(bar, '#', full);
    bar[width] = '\0';
    snprintf(buf, ASYM_MIN(size, columns), "[%s] %s", bar, text);
    return buf;
}
