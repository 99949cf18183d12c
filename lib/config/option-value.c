/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/option-value.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/* Returns whether two letters next to each other have changed places. */
static bool is_swapped(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    return a[i] && a[i + 1] && a[i + 1] == b[i] && a[i] == b[i + 1] && strcmp(a + i + 2, b + i + 2) == 0;
}

void asym_nearest_consider(struct asym_nearest *n, const char *word)
{
    char lower[65];
    size_t i = 0;
    for (; i + 1 < sizeof lower && n->wanted[i]; i++)
        lower[i] = (char)tolower((unsigned char)n->wanted[i]);
    lower[i] = '\0';
    /* The beginning of a word is nearer than its distance says: --dry for --dry-run. */
    unsigned d = i > 1 && strncmp(lower, word, i) == 0 ? word[i] != '\0'
                 : is_swapped(lower, word)             ? 1
                                                       : asym_text_distance(lower, word);
    if (!n->best || d < n->distance) {
        n->best = word;
        n->distance = d;
    }
}

void asym_nearest_list(struct asym_nearest *n, const char *word)
{
    const size_t used = strlen(n->list);
    asym_nearest_consider(n, word);
    if (used + strlen(word) + sizeof ", " <= sizeof n->list)
        snprintf(n->list + used, sizeof n->list - used, "%s%s", used ? ", " : "", word);
}

/* At a distance of 2 most words of up to four letters are near another one. */
const char *asym_nearest_hint(const struct asym_nearest *n, char *buf, size_t size)
{
    size_t len = n->best ? strlen(n->best + strspn(n->best, "-")) : 0;
    unsigned near = len <= 4 ? 1 : 2 + (unsigned)(len / 8);
    buf[0] = '\0';
    if (len > 0 && n->distance <= near && n->distance < len)
        snprintf(buf, size, " (did you mean '%s'?)", n->best);
    return buf;
}

#define NS_PER_USEC 1e3

/* A type of options. parse returns 0 and sets the field; on a negative result the field stays as it was. */
struct type {
    size_t size;
    int (*parse)(const struct asym_option *row, void *field, const char *value);
    void (*format)(const struct asym_option *row, const void *field, char *buf, size_t size);
    const char *accepted;                                   /* in words; NULL: the row says it */
    const char *(*bound)(double x, char *buf, size_t size); /* the text of min and max, which go behind accepted */
    const void *keyword; /* the value of size bytes that a row's keyword stands for; NULL: a row cannot have one */
};

static bool in_range(const struct asym_option *row, double x)
{
    return x >= row->min && x <= row->max;
}

static int parse_bool(const struct asym_option *row, void *field, const char *value)
{
    return asym_parse_bool(value, strlen(value), field);
}

static void format_bool(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    snprintf(buf, size, "%s", *(const bool *)field ? "yes" : "no");
}

static int parse_whole(const struct asym_option *row, void *field, const char *value)
{
    uint64_t whole;
    if (asym_parse_u64(value, strlen(value), &whole) < 0 || !in_range(row, (double)whole))
        return -EINVAL;
    *(uint64_t *)field = whole;
    return 0;
}

static int parse_count(const struct asym_option *row, void *field, const char *value)
{
    uint64_t whole;
    const int r = parse_whole(row, &whole, value);
    if (r == 0)
        *(unsigned *)field = (unsigned)whole;
    return r;
}

static void format_count(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    snprintf(buf, size, "%u", *(const unsigned *)field);
}

static void format_whole(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    snprintf(buf, size, "%llu", (unsigned long long)*(const uint64_t *)field);
}

static int parse_nice(const struct asym_option *row, void *field, const char *value)
{
    int64_t whole;
    if (asym_parse_i64(value, strlen(value), &whole) < 0 || !in_range(row, (double)whole))
        return -EINVAL;
    *(int *)field = (int)whole;
    return 0;
}

static void format_nice(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    snprintf(buf, size, "%d", *(const int *)field);
}

static const char *whole_text(double x, char *buf, size_t size)
{
    snprintf(buf, size, "%.0f", x);
    return buf;
}

static int take_number(const struct asym_option *row, void *field, const char *value, size_t len, double unit)
{
    double x;
    if (asym_parse_number(value, len, &x) < 0 || !in_range(row, x / unit))
        return -EINVAL;
    *(double *)field = x / unit;
    return 0;
}

static int parse_number(const struct asym_option *row, void *field, const char *value)
{
    return take_number(row, field, value, strlen(value), 1);
}

/* Write the fewest decimals that read back as the same number. asym_parse_number accepts no exponent. */
static void format_decimals(double x, double unit, char *buf, size_t size)
{
    double back;
    for (int decimals = 0; decimals <= 15; decimals++) {
        const int n = snprintf(buf, size, "%.*f", decimals, x * unit);
        if (asym_parse_number(buf, (size_t)n, &back) == 0 && !(back / unit < x) && !(back / unit > x))
            return;
    }
}

static void format_number(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    format_decimals(*(const double *)field, 1, buf, size);
}

static const char *number_text(double x, char *buf, size_t size)
{
    snprintf(buf, size, "%g", x);
    return buf;
}

static int parse_share(const struct asym_option *row, void *field, const char *value)
{
    const size_t len = strlen(value);
    return len > 0 && value[len - 1] == '%' ? take_number(row, field, value, len - 1, 100) : -EINVAL;
}

static void format_share(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    format_decimals(*(const double *)field, 100, buf, size - 1);
    memcpy(buf + strlen(buf), "%", 2);
}

static const char *share_text(double x, char *buf, size_t size)
{
    snprintf(buf, size, "%g%%", x * 100);
    return buf;
}

/* Use the largest unit that gives a whole number. */
static const char *time_text(double ns, char *buf, size_t size)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t i = 0;
    while (i + 1 < ASYM_LENGTH(units) && (ns < units[i].ns || fmod(ns, units[i].ns) > 0))
        i++;
    snprintf(buf, size, "%.0f%s", ns / units[i].ns, units[i].name);
    return buf;
}

static const char *duration_text(double usec, char *buf, size_t size)
{
    if (usec > 0)
        return time_text(usec * NS_PER_USEC, buf, size);
    snprintf(buf, size, "0s");
    return buf;
}

static int parse_duration(const struct asym_option *row, void *field, const char *value)
{
    asym_usec t;
    if (asym_parse_duration(value, strlen(value), &t) < 0 || !in_range(row, (double)t))
        return -EINVAL;
    *(asym_usec *)field = t;
    return 0;
}

static void format_duration(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    duration_text((double)*(const asym_usec *)field, buf, size);
}

int asym_option_parse_ns(const char *text, size_t len, double *ret)
{
    asym_usec usec;
    if (len > 2 && memcmp(text + len - 2, "ns", 2) == 0)
        return asym_parse_number(text, len - 2, ret);
    int r = asym_parse_duration(text, len, &usec);
    if (r == 0)
        *ret = (double)usec * NS_PER_USEC;
    return r;
}

static int parse_ns(const struct asym_option *row, void *field, const char *value)
{
    double ns;
    if (asym_option_parse_ns(value, strlen(value), &ns) < 0 || !in_range(row, ns))
        return -EINVAL;
    *(uint64_t *)field = (uint64_t)ns;
    return 0;
}

static void format_ns(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    time_text((double)*(const uint64_t *)field, buf, size);
}

static int parse_enum(const struct asym_option *row, void *field, const char *value)
{
    for (int i = 0; row->values[i]; i++) {
        if (strcmp(row->values[i], value) == 0) {
            *(int *)field = i;
            return 0;
        }
    }
    return -EINVAL;
}

static void format_enum(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    snprintf(buf, size, "%s", row->values[*(const int *)field]);
}

static void list_values(const struct asym_option *row, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; row->values[i] && used < size; i++) {
        const bool last = !row->values[i + 1] && !row->keyword;
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i == 0 ? "" : last ? " or " : ", ", row->values[i]);
    }
}

static void format_text(const struct asym_option *row, const void *field, char *buf, size_t size)
{
    snprintf(buf, size, "%s", *(char *const *)field);
}

static int parse_string(const struct asym_option *row, void *field, const char *value)
{
    if (!*value)
        return -EINVAL;
    *(const char **)field = value;
    return 0;
}

static const unsigned keyword_count = UINT_MAX;
static const uint64_t keyword_whole = UINT64_MAX;
static const double keyword_number = (double)NAN;
static const int keyword_enum = -1;

/* A text has no parse function: take_text has its own error messages. */
static const struct type types[] = {
    [ASYM_OPTION_BOOL] = {sizeof(bool), parse_bool, format_bool, "yes or no", NULL, NULL},
    [ASYM_OPTION_COUNT] = {sizeof(unsigned), parse_count, format_count, "a whole number", whole_text, &keyword_count},
    [ASYM_OPTION_WHOLE] = {sizeof(uint64_t), parse_whole, format_whole, "a whole number", whole_text, &keyword_whole},
    [ASYM_OPTION_NUMBER] = {sizeof(double), parse_number, format_number, "a number", number_text, &keyword_number},
    [ASYM_OPTION_SHARE] = {sizeof(double), parse_share, format_share, "a share", share_text, NULL},
    [ASYM_OPTION_DURATION] = {sizeof(asym_usec), parse_duration, format_duration,
                              "a time with unit (us, ms, s, min, h)", duration_text, NULL},
    [ASYM_OPTION_NS] = {sizeof(uint64_t), parse_ns, format_ns, "a time with unit (ns, us, ms, s)", time_text,
                        &keyword_whole},
    [ASYM_OPTION_NICE] = {sizeof(int), parse_nice, format_nice, "a whole number", whole_text, NULL},
    [ASYM_OPTION_ENUM] = {sizeof(int), parse_enum, format_enum, NULL, NULL, &keyword_enum},
    [ASYM_OPTION_TEXT] = {sizeof(char *), NULL, format_text, "text of at most 160 bytes", NULL, NULL},
    [ASYM_OPTION_STRING] = {sizeof(char *), parse_string, format_text, "text that is not empty", NULL, NULL},
    [ASYM_OPTION_CUSTOM] = {0, NULL, NULL, NULL, NULL, NULL},
};
static_assert(ASYM_VALUE_MAX == 160, "the row of ASYM_OPTION_TEXT says so");

const char *asym_option_accepted(const struct asym_option *row, char *buf, size_t size)
{
    const struct type *type = &types[row->type];
    char min[32], max[32];
    if (row->type == ASYM_OPTION_ENUM)
        list_values(row, buf, size);
    else
        snprintf(buf, size, "%s", type->accepted ? type->accepted : row->accepted);
    size_t used = strlen(buf);
    if (type->bound)
        snprintf(buf + used, size - used, " from %s to %s", type->bound(row->min, min, sizeof min),
                 type->bound(row->max, max, sizeof max));
    used = strlen(buf);
    if (row->keyword)
        snprintf(buf + used, size - used, " or %s", row->keyword);
    return buf;
}

static const char *name_of(const struct asym_option *row, const char *section, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", section ? section : "", section ? "." : "", row->key);
    return buf;
}

static int refuse(const struct asym_option *row, const char *section, const char *value, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = value};
    char name[128], what[256], shown[128], hint[96];
    asym_text_show(value, shown, sizeof shown);
    for (size_t i = 0; row->type == ASYM_OPTION_ENUM && row->values[i]; i++)
        asym_nearest_consider(&n, row->values[i]);
    if (row->keyword)
        asym_nearest_consider(&n, row->keyword);
    return asym_fail(err, -EINVAL, "%s: '%s' is not accepted%s; accepted is %s",
                     name_of(row, section, name, sizeof name), shown, asym_nearest_hint(&n, hint, sizeof hint),
                     asym_option_accepted(row, what, sizeof what));
}

int asym_option_unknown(const struct asym_nearest *keys, const char *section, const char *elsewhere,
                        struct asym_error *err)
{
    char hint[128], shown[128];
    asym_nearest_hint(keys, hint, sizeof hint);
    if (elsewhere)
        snprintf(hint, sizeof hint, "; it belongs in [%s]", elsewhere);
    return asym_fail(err, -EINVAL, "unknown key '%s' in [%s]%s; accepted here %s%s",
                     asym_text_show(keys->wanted, shown, sizeof shown), section, hint, *keys->list ? "are " : "is none",
                     keys->list);
}

/* A line of a file cannot hold such a text: it would be too long, or part of it would be a comment. */
static const char *text_fault(const char *text)
{
    size_t n = strlen(text);
    if (n > ASYM_VALUE_MAX)
        return "is too long";
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return "holds a control character";
        if (text[i] == ';' && (i == 0 || text[i - 1] == ' '))
            return "holds ';' after a space, which begins a comment";
    }
    return n > 0 && (text[0] == ' ' || text[n - 1] == ' ') ? "begins or ends with a space" : NULL;
}

static int take_text(const struct asym_option *row, const char *section, char **field, const char *value,
                     struct asym_error *err)
{
    char what[64], name[128];
    const char *fault = text_fault(value);
    if (fault)
        return asym_fail(err, -EINVAL, "%s: the value %s; accepted is %s", name_of(row, section, name, sizeof name),
                         fault, asym_option_accepted(row, what, sizeof what));
    char *text = strdup(value);
    if (!text)
        return asym_fail(err, -ENOMEM, "no memory");
    free(*field);
    *field = text;
    return 0;
}

int asym_option_parse(const struct asym_option *row, const char *section, void *base, const char *value,
                      struct asym_error *err)
{
    void *field = (char *)base + row->offset;
    int r;
    if (row->type == ASYM_OPTION_TEXT)
        return take_text(row, section, field, value, err);
    if (row->keyword && strcmp(value, row->keyword) == 0) {
        memcpy(field, types[row->type].keyword, types[row->type].size);
        return 0;
    }
    r = row->type == ASYM_OPTION_CUSTOM ? row->parse(row, base, value) : types[row->type].parse(row, field, value);
    if (r == -ENOMEM)
        return asym_fail(err, r, "no memory");
    return r < 0 ? refuse(row, section, value, err) : 0;
}

int asym_option_default(const struct asym_option *row, const char *section, void *base)
{
    return row->def ? asym_option_parse(row, section, base, row->def, NULL) : 0;
}

const char *asym_option_format(const struct asym_option *row, const void *base, char *buf, size_t size)
{
    const void *field = (const char *)base + row->offset;
    const struct type *type = &types[row->type];
    if (row->keyword && memcmp(field, type->keyword, type->size) == 0)
        snprintf(buf, size, "%s", row->keyword);
    else
        type->format(row, field, buf, size);
    return buf;
}

void asym_option_done(const struct asym_option *row, void *base)
{
    if (row->type == ASYM_OPTION_TEXT)
        free(*(char **)(void *)((char *)base + row->offset));
}
