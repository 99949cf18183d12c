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
#include "settings/nearest.h"

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

static void list_values(const struct asym_option *row, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; row->values[i] && used < size; i++) {
        bool last = !row->values[i + 1] && !row->allow_auto;
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i == 0 ? "" : last ? " or " : ", ", row->values[i]);
    }
    if (row->allow_auto && used < size)
        snprintf(buf + used, size - used, " or auto");
}

const char *asym_option_accepted(const struct asym_option *row, char *buf, size_t size)
{
    const char *or_auto = row->allow_auto ? " or auto" : "";
    char lo[32], hi[32];
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
    case ASYM_OPTION_SHARE:
        snprintf(buf, size, "a share from %g%% to %g%%", row->min * 100, row->max * 100);
        break;
    case ASYM_OPTION_DURATION:
        snprintf(buf, size, "a time with unit (us, ms, s) from %s to %s", duration_text(row->min, lo, sizeof lo),
                 duration_text(row->max, hi, sizeof hi));
        break;
    case ASYM_OPTION_CPUS:
        snprintf(buf, size, "a CPU list such as 0-3,8");
        break;
    case ASYM_OPTION_ENUM:
        list_values(row, buf, size);
        break;
    case ASYM_OPTION_TEXT:
        snprintf(buf, size, "text of at most %d bytes", ASYM_VALUE_MAX);
        break;
    }
    return buf;
}

static int refuse(const struct asym_option *row, const char *section, const char *value, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = value};
    char what[256], shown[128], hint[96];
    asym_text_escape(value, strlen(value), shown, sizeof shown);
    for (size_t i = 0; row->type == ASYM_OPTION_ENUM && row->values[i]; i++)
        asym_nearest_consider(&n, row->values[i]);
    return asym_fail(err, -EINVAL, "%s.%s: '%s' is not accepted%s; accepted is %s", section, row->key, shown,
                     asym_nearest_hint(&n, hint, sizeof hint), asym_option_accepted(row, what, sizeof what));
}

/* A text that a line of a file cannot say, because it would be cut or taken for a comment, would not be read back. */
static const char *text_fault(const char *text)
{
    size_t n = strlen(text);
    if (n > ASYM_VALUE_MAX)
        return "is too long";
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return "holds a control character";
        if (text[i] == ';' && (i == 0 || text[i - 1] == ' '))
            return "holds ';' behind a space, which begins a comment";
    }
    return n > 0 && (text[0] == ' ' || text[n - 1] == ' ') ? "begins or ends with a space" : NULL;
}

static int take_text(const struct asym_option *row, const char *section, char **field, const char *value,
                     struct asym_error *err)
{
    char what[64];
    const char *fault = text_fault(value);
    if (fault)
        return asym_fail(err, -EINVAL, "%s.%s: the value %s; accepted is %s", section, row->key, fault,
                         asym_option_accepted(row, what, sizeof what));
    char *text = strdup(value);
    if (!text)
        return asym_fail(err, -ENOMEM, "no memory");
    free(*field);
    *field = text;
    return 0;
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

static int take_whole(const struct asym_option *row, const char *value, int64_t *ret)
{
    return asym_parse_i64(value, strlen(value), ret) == 0 && in_range(row, (double)*ret) ? 0 : -EINVAL;
}

/* "80%" to 0.8. */
static int parse_share(const char *value, double *ret)
{
    const size_t len = strlen(value);
    double percent;
    if (len == 0 || value[len - 1] != '%' || asym_parse_number(value, len - 1, &percent) < 0)
        return -EINVAL;
    *ret = percent / 100;
    return 0;
}

/* The rows whose "auto" is a value of their type that no text gives. */
static void take_auto(const struct asym_option *row, void *field)
{
    if (row->type == ASYM_OPTION_COUNT)
        *(unsigned *)field = UINT_MAX;
    else if (row->type == ASYM_OPTION_NUMBER)
        *(double *)field = (double)NAN;
    else
        *(int *)field = -1;
}

static int take_value(const struct asym_option *row, void *field, const char *value)
{
    const size_t len = strlen(value);
    int64_t whole = 0;
    double number = 0;
    asym_usec duration = 0;
    int r = -EINVAL;
    switch (row->type) {
    case ASYM_OPTION_BOOL:
        return asym_parse_bool(value, len, field);
    case ASYM_OPTION_COUNT:
        r = take_whole(row, value, &whole);
        if (r == 0)
            *(unsigned *)field = (unsigned)whole;
        return r;
    case ASYM_OPTION_NICE:
        r = take_whole(row, value, &whole);
        if (r == 0)
            *(int *)field = (int)whole;
        return r;
    case ASYM_OPTION_NUMBER:
    case ASYM_OPTION_SHARE:
        r = row->type == ASYM_OPTION_SHARE ? parse_share(value, &number) : asym_parse_number(value, len, &number);
        if (r == 0 && in_range(row, number))
            *(double *)field = number;
        return r == 0 && in_range(row, number) ? 0 : -EINVAL;
    case ASYM_OPTION_DURATION:
        r = asym_parse_duration(value, len, &duration) == 0 && in_range(row, (double)duration) ? 0 : -EINVAL;
        if (r == 0)
            *(asym_usec *)field = duration;
        return r;
    case ASYM_OPTION_CPUS:
        return asym_mask_parse_list(value, len, field);
    case ASYM_OPTION_ENUM:
        r = find_value(row, value);
        if (r >= 0)
            *(int *)field = r;
        return r < 0 ? -EINVAL : 0;
    case ASYM_OPTION_TEXT:
        break;
    }
    return r;
}

int asym_option_parse(const struct asym_option *row, const char *section, void *base, const char *value,
                      struct asym_error *err)
{
    void *field = (char *)base + row->offset;
    if (row->type == ASYM_OPTION_TEXT)
        return take_text(row, section, field, value, err);
    if (row->allow_auto && strcmp(value, "auto") == 0) {
        take_auto(row, field);
        return 0;
    }
    return take_value(row, field, value) < 0 ? refuse(row, section, value, err) : 0;
}

/* The fewest decimals that are read back as the same number: no exponent, which asym_parse_number does not take. */
static void format_number(double x, char *buf, size_t size)
{
    double back;
    for (int decimals = 0; decimals <= 15; decimals++) {
        snprintf(buf, size, "%.*f", decimals, x);
        if (asym_parse_number(buf, strlen(buf), &back) == 0 && !(back < x) && !(back > x))
            return;
    }
}

static void format_share(double x, char *buf, size_t size)
{
    double back;
    for (int decimals = 0; decimals <= 15; decimals++) {
        snprintf(buf, size, "%.*f%%", decimals, x * 100);
        if (parse_share(buf, &back) == 0 && !(back < x) && !(back > x))
            return;
    }
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
            format_number(*(const double *)field, buf, size);
        break;
    case ASYM_OPTION_SHARE:
        format_share(*(const double *)field, buf, size);
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

int asym_option_copy(const struct asym_option *row, void *base, const void *from)
{
    static const size_t sizes[] = {
        [ASYM_OPTION_BOOL] = sizeof(bool),
        [ASYM_OPTION_COUNT] = sizeof(unsigned),
        [ASYM_OPTION_NUMBER] = sizeof(double),
        [ASYM_OPTION_DURATION] = sizeof(asym_usec),
        [ASYM_OPTION_SHARE] = sizeof(double),
        [ASYM_OPTION_NICE] = sizeof(int),
        [ASYM_OPTION_CPUS] = sizeof(struct asym_mask),
        [ASYM_OPTION_ENUM] = sizeof(int),
    };
    void *field = (char *)base + row->offset;
    const void *source = (const char *)from + row->offset;
    if (row->type != ASYM_OPTION_TEXT) {
        memcpy(field, source, sizes[row->type]);
        return 0;
    }
    *(char **)field = strdup(*(char *const *)source);
    return *(char **)field ? 0 : -ENOMEM;
}
