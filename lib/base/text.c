/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

#define DISTANCE_MAX 64

unsigned asym_text_distance(const char *a, const char *b)
{
    size_t n = strnlen(a, DISTANCE_MAX), m = strnlen(b, DISTANCE_MAX);
    unsigned row[DISTANCE_MAX + 1];
    for (unsigned j = 0; j <= m; j++)
        row[j] = j;
    for (unsigned i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = ASYM_MIN(change, ASYM_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[m];
}

/*
 * Characters that hide, reorder or end the text beside them: of zero width, of direction, tags, and the ends of lines and
 * paragraphs. Two of them join letters in Persian, Indic and emoji names, which are escaped for that reason. And those that Unicode
 * calls noncharacters, which D-Bus refuses.
 */
static bool is_format(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200f},   {0x2028, 0x202e},
                  {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}, {0xfdd0, 0xfdef}};
    for (size_t i = 0; i < ASYM_LENGTH(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return (c & 0xfffe) == 0xfffe;
}

/*
 * Returns the length of the valid, printable UTF-8 character at s, or 0 for other bytes: overlong forms, surrogates, values
 * beyond U+10FFFF, control characters (U+0080-U+009F too, because terminals obey them), and those of is_format.
 */
static size_t printable_character(const unsigned char *s, size_t len)
{
    static const struct {
        unsigned char lead_mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0x20}, {0xe0, 0xc0, 0xa0}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

    for (size_t i = 0; i < ASYM_LENGTH(forms); i++) {
        if ((s[0] & forms[i].lead_mask) != forms[i].lead)
            continue;
        if (i + 1 > len)
            return 0;
        uint32_t c = s[0] & (unsigned char)~forms[i].lead_mask;
        for (size_t k = 1; k <= i; k++) {
            if ((s[k] & 0xc0) != 0x80)
                return 0;
            c = c << 6 | (s[k] & 0x3f);
        }
        if (c < forms[i].least || c == 0x7f || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff || is_format(c))
            return 0;
        return i + 1;
    }
    return 0;
}

const char *asym_text_escape(const char *bytes, size_t len, char *buf, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)bytes;
    size_t used = 0;
    if (size == 0)
        return buf;
    while (len > 0) {
        char out[4];
        size_t n = printable_character(s, len), taken = n ? n : 1;
        if (n == 1 && s[0] == '\\') {
            memcpy(out, "\\\\", n = 2);
        } else if (n) {
            memcpy(out, s, n);
        } else {
            const char escape[4] = {'\\', 'x', hex[s[0] >> 4], hex[s[0] & 15]};
            memcpy(out, escape, n = 4);
        }
        if (used + n >= size)
            break;
        memcpy(buf + used, out, n);
        used += n;
        s += taken;
        len -= taken;
    }
    buf[used] = '\0';
    return buf;
}

const char *asym_text_show(const char *text, char *buf, size_t size)
{
    return asym_text_escape(text, strlen(text), buf, size);
}

bool asym_text_is_printable(const char *bytes, size_t len)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t n = 1;
    while (len > 0 && (n = printable_character(s, len)) > 0) {
        s += n;
        len -= n;
    }
    return len == 0;
}

const char *asym_text_printable(const char *text, char *buf, size_t size)
{
    return asym_text_is_printable(text, strlen(text)) ? text : asym_text_show(text, buf, size);
}

struct asym_text asym_text_in(char *buf, size_t size)
{
    *buf = '\0';
    return (struct asym_text){.buf = buf, .size = size};
}

bool asym_text_add(struct asym_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->buf + t->used, t->size - t->used, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= t->size - t->used) {
        t->buf[t->used] = '\0';
        return false;
    }
    t->used += (size_t)n;
    return true;
}

/* Parsers */

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
