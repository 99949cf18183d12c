/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads one file of a fact, and writes the text of the fact. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "linux/check/machine-facts-internal.h"

int asym_facts_line(const struct asym_root *root, const char *path, char *buf, size_t size)
{
    char raw[256];
    ssize_t n = asym_root_read(root, path, raw, sizeof raw);
    if (n < 0)
        return (int)n;
    size_t len = strcspn(raw, "\n");
    if (len == 0)
        return -ENODATA;
    asym_text_escape(raw, len, buf, size);
    return 0;
}

bool asym_facts_number(const struct asym_root *root, const char *path, long long *ret)
{
    char raw[64];
    int64_t value;
    ssize_t n = asym_root_read(root, path, raw, sizeof raw);
    if (n <= 0 || asym_parse_i64(raw, (size_t)n, &value) < 0)
        return false;
    *ret = value;
    return true;
}

void asym_facts_say(struct asym_fact *f, enum asym_fact_level level, const char *remedy, const char *format, ...)
{
    f->level = level;
    snprintf(f->remedy, sizeof f->remedy, "%s", remedy);
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}
