/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/macro.h"

const char *asym_units_duration(asym_usec t, char *buf)
{
    static const struct {
        const char *name;
        asym_usec usec;
    } units[] = {{"d", 86400 * ASYM_SEC}, {"h", 3600 * ASYM_SEC}, {"min", 60 * ASYM_SEC},
                 {"s", ASYM_SEC},         {"ms", ASYM_MSEC},      {"us", 1}};
    size_t i = 0;
    while (i + 1 < ASYM_LENGTH(units) && t < units[i].usec)
        i++;
    const uint64_t n = t / units[i].usec;
    /* Minutes go with hours, hours with days; seconds and less stand alone. */
    const uint64_t rest = i < 2 ? t % units[i].usec / units[i + 1].usec : 0;
    if (rest > 0)
        snprintf(buf, ASYM_UNITS_SIZE, "%" PRIu64 " %s %" PRIu64 " %s", n, units[i].name, rest, units[i + 1].name);
    else
        snprintf(buf, ASYM_UNITS_SIZE, "%" PRIu64 " %s", n, units[i].name);
    return buf;
}

const char *asym_units_bytes(uint64_t bytes, char *buf)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t i = 0;
    for (; value >= 1024 && i + 1 < ASYM_LENGTH(units); i++)
        value /= 1024;
    snprintf(buf, ASYM_UNITS_SIZE, i == 0 ? "%.0f %s" : "%.1f %s", value, units[i]);
    return buf;
}

static void put_time(asym_usec t, const char *format, char *buf, size_t size)
{
    const time_t seconds = (time_t)(t / ASYM_SEC);
    struct tm tm;
    buf[0] = '\0';
    if (localtime_r(&seconds, &tm))
        strftime(buf, size, format, &tm);
}

const char *asym_units_date(asym_usec t, char *buf)
{
    put_time(t, "%Y-%m-%d %H:%M:%S", buf, ASYM_UNITS_SIZE);
    return buf;
}

const char *asym_units_time_ms(asym_usec t, char *buf)
{
    char time[16];
    put_time(t, "%H:%M:%S", time, sizeof time);
    snprintf(buf, ASYM_UNITS_SIZE, "%s.%03u", time, (unsigned)(t % ASYM_SEC / ASYM_MSEC));
    return buf;
}
