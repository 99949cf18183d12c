/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One option: text to field and back. */
#include "settings/internal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "base/parse.h"

static const char *duration_text(double usec, char *buf, size_t size)
{
    if (usec >= 1e6 && fmod(usec, 1e6) == 0)
        snprintf(buf, size, "%.0fs", usec / 1e6);
    else if (usec >= 1e3 && fmod(usec, 1e3) == 0)
        snprintf(buf, size, "%.0fms", usec / 1e3);
    else
        snprintf(buf, size, "%.0fus", usec);
    return buf;
}

/* What the row accepts, in words. */
static const char *accepted(const struct asym_option *row, char *buf, size_t size)
{
    const char *or_auto = row->allow_auto ? ", or auto" : "";
    char lo[32], hi[32];
    size_t used = 0;
    switch (row->type) {
    case ASYM_OPTION_BOOL:
        snprintf(buf, size, "yes or no");
        break;
    case ASYM_OPTION_COUNT:
    case ASYM_OPTION_NICE:
        snprintf(buf, size, "a whole number from %.0f to %.0f%s", row->min, row->max, or_auto);
        break;
    case ASYM_OPTION_NUMBER:
        snprintf(buf, size, "a number from %g to %g%s", row->min, row->max, or_auto);
        break;
    case ASYM_OPTION_DURATION:
        snprintf(buf, size, "a time with unit (us, ms, s) from %s to %s", duration_text(row->min, lo, sizeof lo),
                 duration_text(row->max, hi, sizeof hi));
        break;
    case ASYM_OPTION_CPUS:
        snprintf(buf, size, "a CPU list such as 0-3,8");
        break;
    case ASYM_OPTION_ENUM:
        buf[0] = '\0';
        for (size_t i = 0; row->values[i] && used < size; i++)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", row->values[i]);
        if (used < size)
            snprintf(buf + used, size - used, "%s", or_auto);
        break;
    case ASYM_OPTION_TEXT:
        snprintf(buf, size, "text");
        break;
    }
    return buf;
}

static int refuse(const struct asym_option *row, const char *section, const char *value, struct asym_error *err)
{
    char what[256], shown[128];
    asym_text_escape(value, strlen(value), shown, sizeof shown);
    return asym_fail(err, -EINVAL, "%s.%s: '%s' is not accepted; accepted is %s", section, row->key, shown,
                     accepted(row, what, sizeof what));
}

static int find_value(const struct asym_option *row, const char *value)
{
    for (int i = 0; row->values[i]; i++)
        if (strcmp(row->values[i], value) == 0)
            return i;
    return -1;
}

static bool in_range(const struct asym_option *row, double x)
{
    return x >= row->min && x <= row->max;
}

int asym_option_parse(const struct asym_option *row, const char *section, void *base, const char *value,
                      struct asym_error *err)
{
    void *field = (char *)base + row->offset;
    size_t len = strlen(value);
    bool automatic = row->allow_auto && strcmp(value, "auto") == 0;
    int64_t whole;
    double number;
    asym_usec duration;
    int found;
    char *text;
    switch (row->type) {
    case ASYM_OPTION_BOOL:
        return asym_parse_bool(value, len, field) < 0 ? refuse(row, section, value, err) : 0;
    case ASYM_OPTION_COUNT:
        if (!automatic && (asym_parse_i64(value, len, &whole) < 0 || !in_range(row, (double)whole)))
            return refuse(row, section, value, err);
        *(unsigned *)field = automatic ? UINT_MAX : (unsigned)whole;
        return 0;
    case ASYM_OPTION_NICE:
        if (asym_parse_i64(value, len, &whole) < 0 || !in_range(row, (double)whole))
            return refuse(row, section, value, err);
        *(int *)field = (int)whole;
        return 0;
    case ASYM_OPTION_NUMBER:
        if (!automatic && (asym_parse_number(value, len, &number) < 0 || !in_range(row, number)))
            return refuse(row, section, value, err);
        *(double *)field = automatic ? (double)NAN : number;
        return 0;
    case ASYM_OPTION_DURATION:
        if (asym_parse_duration(value, len, &duration) < 0 || !in_range(row, (double)duration))
            return refuse(row, section, value, err);
        *(asym_usec *)field = duration;
        return 0;
    case ASYM_OPTION_CPUS:
        return asym_mask_parse_list(value, len, field) < 0 ? refuse(row, section, value, err) : 0;
    case ASYM_OPTION_ENUM:
        found = find_value(row, value);
        if (found < 0 && !automatic)
            return refuse(row, section, value, err);
        *(int *)field = found;
        return 0;
    case ASYM_OPTION_TEXT:
        text = strdup(value);
        if (!text)
            return asym_fail(err, -ENOMEM, "no memory");
        free(*(char **)field);
        *(char **)field = text;
        return 0;
    }
    return -EINVAL;
}

const char *asym_option_format(const struct asym_option *row, const void *base, char *buf, size_t size)
{
    const void *field = (const char *)base + row->offset;
    int value;
    switch (row->type) {
    case ASYM_OPTION_BOOL:
        snprintf(buf, size, "%s", *(const bool *)field ? "yes" : "no");
        break;
    case ASYM_OPTION_COUNT:
        if (row->allow_auto && *(const unsigned *)field == UINT_MAX)
            snprintf(buf, size, "auto");
        else
            snprintf(buf, size, "%u", *(const unsigned *)field);
        break;
    case ASYM_OPTION_NICE:
        snprintf(buf, size, "%d", *(const int *)field);
        break;
    case ASYM_OPTION_NUMBER:
        if (isnan(*(const double *)field))
            snprintf(buf, size, "auto");
        else
            snprintf(buf, size, "%g", *(const double *)field);
        break;
    case ASYM_OPTION_DURATION:
        duration_text((double)*(const asym_usec *)field, buf, size);
        break;
    case ASYM_OPTION_CPUS:
        asym_mask_format_list(field, buf, size);
        break;
    case ASYM_OPTION_ENUM:
        value = *(const int *)field;
        snprintf(buf, size, "%s", value < 0 ? "auto" : row->values[value]);
        break;
    case ASYM_OPTION_TEXT:
        snprintf(buf, size, "%s", *(char *const *)field);
        break;
    }
    return buf;
}

void asym_option_done(const struct asym_option *row, void *base)
{
    if (row->type == ASYM_OPTION_TEXT)
        free(*(char **)(void *)((char *)base + row->offset));
}

int asym_option_copy(const struct asym_option *row, void *base)
{
    char **field = (char **)(void *)((char *)base + row->offset);
    if (row->type != ASYM_OPTION_TEXT)
        return 0;
    *field = strdup(*field);
    return *field ? 0 : -ENOMEM;
}
