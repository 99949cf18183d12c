/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bus/bus.h"

#include <string.h>

#include "base/macro.h"

/* The characters of one, two, three and four bytes: their first byte, and the least that such a character may be. */
static const struct {
    unsigned char mask, lead;
    uint32_t least;
} forms[] = {{0x80, 0x00, 0x01}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

/* sd-bus refuses surrogates and what Unicode calls noncharacters. */
static bool is_character(uint32_t c)
{
    return c < 0x110000 && (c & 0xfffff800) != 0xd800 && !(c >= 0xfdd0 && c <= 0xfdef) && (c & 0xfffe) != 0xfffe;
}

/* Returns the length of the character at s; 0: there is no valid one. */
static size_t character(const unsigned char *s)
{
    size_t more = 0;
    while (more < ASYM_LENGTH(forms) && (s[0] & forms[more].mask) != forms[more].lead)
        more++;
    if (more == ASYM_LENGTH(forms))
        return 0;
    uint32_t c = s[0] & (unsigned char)~forms[more].mask;
    for (size_t i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c >= forms[more].least && is_character(c) ? more + 1 : 0;
}

const char *asym_bus_text(const char *text, char *buf, size_t size)
{
    size_t used = 0;
    while (*text) {
        const size_t n = character((const unsigned char *)text), copied = n ? n : 1;
        if (used + copied >= size)
            break;
        memcpy(buf + used, n ? text : "?", copied);
        used += copied;
        text += copied;
    }
    buf[used] = '\0';
    return buf;
}
