/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
