/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/mask.h"

#include <errno.h>
#include <stdio.h>

#include "base/text.h"

/* Read the digits at *pos. A number that is too large becomes ASYM_MAX_CPUS and is refused. */
static int parse_cpu(const char *text, size_t len, size_t *pos, unsigned *ret)
{
    if (*pos >= len || text[*pos] < '0' || text[*pos] > '9')
        return -EINVAL;
    unsigned n = 0;
    for (; *pos < len && text[*pos] >= '0' && text[*pos] <= '9'; (*pos)++)
        n = n < ASYM_MAX_CPUS ? n * 10 + (unsigned)(text[*pos] - '0') : ASYM_MAX_CPUS;
    *ret = n;
    return n < ASYM_MAX_CPUS ? 0 : -ERANGE;
}

int asym_mask_parse_list(const char *text, size_t len, struct asym_mask *ret)
{
    struct asym_mask m = {0};
    size_t pos = 0;
    asym_parse_trim(&text, &len);
    while (pos < len) {
        unsigned first, last;
        int r = parse_cpu(text, len, &pos, &first);
        if (r < 0)
            return r;
        last = first;
        if (pos < len && text[pos] == '-') {
            pos++;
            r = parse_cpu(text, len, &pos, &last);
            if (r < 0)
                return r;
            if (last < first)
                return -EINVAL;
        }
        for (unsigned c = first; c <= last; c++)
            asym_mask_set(&m, c);
        if (pos < len && (text[pos] != ',' || ++pos == len))
            return -EINVAL;
    }
    *ret = m;
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int asym_mask_parse_hex(const char *text, size_t len, struct asym_mask *ret)
{
    struct asym_mask m = {0};
    unsigned bit = 0;
    bool any = false;
    asym_parse_trim(&text, &len);
    for (; len > 0; len--) {
        char c = text[len - 1];
        if (c == ',') {
            if (!any || bit % 32 != 0)
                return -EINVAL;
            continue;
        }
        int digit = hex_digit(c);
        if (digit < 0)
            return -EINVAL;
        if (bit < ASYM_MAX_CPUS)
            m.w[bit / 64] |= (uint64_t)digit << bit % 64;
        bit += 4;
        any = true;
    }
    if (!any)
        return -EINVAL;
    *ret = m;
    return 0;
}

const char *asym_mask_format_list(const struct asym_mask *m, char *buf, size_t size)
{
    size_t used = 0;
    if (size > 0)
        buf[0] = '\0';
    for (int first = asym_mask_next(m, 0); first >= 0;) {
        int last = first;
        while (asym_mask_has(m, last + 1))
            last++;
        char range[16];
        int n = first == last ? snprintf(range, sizeof range, "%s%d", used ? "," : "", first)
                              : snprintf(range, sizeof range, "%s%d-%d", used ? "," : "", first, last);
        if (used + (size_t)n >= size)
            break;
        memcpy(buf + used, range, (size_t)n + 1);
        used += (size_t)n;
        first = asym_mask_next(m, last + 1);
    }
    return buf;
}
