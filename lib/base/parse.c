/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

void asym_parse_trim(const char **text, size_t *len)
{
    while (*len > 0 && is_space((*text)[*len - 1]))
        (*len)--;
    while (*len > 0 && is_space((*text)[0])) {
        (*text)++;
        (*len)--;
    }
}

bool asym_lines_next(struct asym_lines *l, const char **ret_line, size_t *ret_len)
{
    if (l->at >= l->end)
        return false;
    const char *stop = l->at;
    while (stop < l->end && *stop != '\n')
        stop++;
    *ret_line = l->start = l->at;
    *ret_len = (size_t)(stop - l->start);
    l->at = stop < l->end ? stop + 1 : stop;
    l->number++;
    asym_parse_trim(ret_line, ret_len);
    return true;
}

bool asym_line_is_text(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return false;
    return true;
}

int asym_parse_u64(const char *text, size_t len, uint64_t *ret)
{
    uint64_t n = 0;
    asym_parse_trim(&text, &len);
    if (len == 0)
        return -EINVAL;
    for (size_t i = 0; i < len; i++)
        if (!is_digit(text[i]))
            return -EINVAL;
    for (size_t i = 0; i < len; i++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
            return -ERANGE;
    *ret = n;
    return 0;
}

int asym_parse_i64(const char *text, size_t len, int64_t *ret)
{
    uint64_t n;
    asym_parse_trim(&text, &len);
    bool negative = len > 0 && text[0] == '-';
    if (negative && (len < 2 || !is_digit(text[1])))
        return -EINVAL;
    int r = asym_parse_u64(text + negative, len - negative, &n);
    if (r < 0)
        return r;
    if (n > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *ret = negative ? -1 - (int64_t)(n - 1) : (int64_t)n;
    if (negative && n == 0)
        *ret = 0;
    return 0;
}

int asym_parse_number(const char *text, size_t len, double *ret)
{
    double value = 0, scale = 1;
    bool point = false, any = false;
    asym_parse_trim(&text, &len);
    size_t i = len > 0 && text[0] == '-';
    for (size_t k = i; k < len; k++) {
        if (text[k] == '.' && !point) {
            point = true;
        } else if (is_digit(text[k])) {
            any = true;
            value = value * 10 + (text[k] - '0');
            if (point)
                scale *= 10;
        } else {
            return -EINVAL;
        }
    }
    if (!any)
        return -EINVAL;
    /* Above 2^53 a double cannot represent every integer. No number that asymd reads is that large. */
    if (value > 9007199254740992.0 || scale > 1e18)
        return -ERANGE;
    *ret = (i ? -value : value) / scale;
    return 0;
}

/* The units and their names, as in systemd.time(7). */
static const struct {
    const char *names;
    double usec;
} units[] = {
    {" us usec ", 1},
    {" ms msec ", 1e3},
    {" s sec second seconds ", 1e6},
    {" m min minute minutes ", 60e6},
    {" h hr hour hours ", 3600e6},
    {" d day days ", 86400e6},
    {" w week weeks ", 7 * 86400e6},
};

/* Returns the microseconds of the unit of n bytes; 0: there is none of that name. */
static double unit_of(const char *name, size_t n)
{
    char word[16];
    if (n == 0 || snprintf(word, sizeof word, " %.*s ", (int)n, name) >= (int)sizeof word)
        return 0;
    for (size_t i = 0; i < ASYM_LENGTH(units); i++)
        if (strstr(units[i].names, word))
            return units[i].usec;
    return 0;
}

static size_t skip_spaces(const char *text, size_t len, size_t at)
{
    while (at < len && is_space(text[at]))
        at++;
    return at;
}

int asym_parse_duration(const char *text, size_t len, asym_usec *ret)
{
    double sum = 0, n;
    asym_parse_trim(&text, &len);
    for (size_t at = 0; at < len || len == 0; at = skip_spaces(text, len, at)) {
        const size_t number = at;
        while (at < len && (is_digit(text[at]) || text[at] == '.' || text[at] == '-'))
            at++;
        const size_t digits = at - number, unit = skip_spaces(text, len, at);
        for (at = unit; at < len && text[at] >= 'a' && text[at] <= 'z';)
            at++;
        const double usec = unit_of(text + unit, at - unit);
        if (!(usec > 0))
            return -EINVAL;
        const int r = asym_parse_number(text + number, digits, &n);
        if (r < 0)
            return r;
        sum += n * usec;
        if (n < 0 || sum > 9007199254740992.0)
            return -ERANGE;
    }
    *ret = (asym_usec)(sum + 0.5);
    return 0;
}

int asym_parse_bool(const char *text, size_t len, bool *ret)
{
    static const struct {
        const char *name;
        bool value;
    } words[] = {{"yes", true}, {"no", false},  {"true", true}, {"false", false},
                 {"on", true},  {"off", false}, {"1", true},    {"0", false}};

    asym_parse_trim(&text, &len);
    for (size_t i = 0; i < ASYM_LENGTH(words); i++) {
        if (strlen(words[i].name) == len && strncasecmp(words[i].name, text, len) == 0) {
            *ret = words[i].value;
            return 0;
        }
    }
    return -EINVAL;
}
