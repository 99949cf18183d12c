/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/ini.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* Comments do not count. */
#define LINE_MAX_ 190

struct reader {
    const struct asym_ini *ini;
    bool inside; /* of a section */
    char section[ASYM_INI_SECTION_MAX + 1];
    struct asym_error *err; /* what is wrong in this line */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Length without a comment: ';' or '#' at the beginning of a line or ';' after white space starts one. */
static size_t without_comment(const char *line, size_t n)
{
    if (n > 0 && (line[0] == ';' || line[0] == '#'))
        return 0;
    for (size_t i = 1; i < n; i++)
        if (line[i] == ';' && is_blank(line[i - 1]))
            return i;
    return n;
}

static int enter_section(struct reader *l, const char *line, size_t n, unsigned number)
{
    const char *close = memchr(line, ']', n), *inside = line + 1;
    if (!close)
        return asym_fail(l->err, -EINVAL, "the section has no ']'");
    if (close != line + n - 1)
        return asym_fail(l->err, -EINVAL, "text after the section's ']'; accepted is a comment");
    n -= 2;
    asym_parse_trim(&inside, &n);
    if (n > ASYM_INI_SECTION_MAX)
        return asym_fail(l->err, -EINVAL, "the section's name is longer than 48 bytes");
    snprintf(l->section, sizeof l->section, "%.*s", (int)n, inside);
    return l->ini->section(l->ini->ctx, l->section, number, l->err);
}

static int take_key(struct reader *l, const char *line, size_t n, unsigned number)
{
    const char *name = line, *value = line;
    char key[LINE_MAX_ + 1], text[ASYM_INI_VALUE_MAX + 1];
    while (value < line + n && *value != '=' && *value != ':')
        value++;
    if (value == line + n)
        return asym_fail(l->err, -EINVAL, "neither [%s] nor KEY = VALUE", l->ini->path ? "PATH" : "section");
    if (!l->inside)
        return asym_fail(l->err, -EINVAL, "a key before the first [%s]", l->ini->path ? "PATH" : "section");
    size_t n_name = (size_t)(value - line), n_value = n - n_name - 1;
    value++;
    asym_parse_trim(&name, &n_name);
    asym_parse_trim(&value, &n_value);
    if (n_value > ASYM_INI_VALUE_MAX)
        return asym_fail(l->err, -EINVAL, "the value is too long; accepted are 160 bytes");
    snprintf(key, sizeof key, "%.*s", (int)n_name, name);
    snprintf(text, sizeof text, "%.*s", (int)n_value, value);
    return l->ini->key(l->ini->ctx, l->section, key, text, number, l->err);
}

/* Indentation has no meaning: an indented line does not continue a value. */
static int take_line(struct reader *l, const char *line, size_t n, unsigned number)
{
    const bool is_section = n > 0 && line[0] == '[';
    if (!asym_line_is_text(line, n))
        return asym_fail(l->err, -EINVAL, "binary data; accepted is text");
    if (!is_section || !l->ini->path) {
        n = without_comment(line, n);
        asym_parse_trim(&line, &n);
        if (n == 0)
            return 0;
        if (n > LINE_MAX_)
            return asym_fail(l->err, -EINVAL, "the line is too long; accepted are 190 bytes");
    }
    if (!is_section)
        return take_key(l, line, n, number);
    l->inside = false;
    int r = l->ini->path ? l->ini->path(l->ini->ctx, line, n, number, l->err) : enter_section(l, line, n, number);
    l->inside = r >= 0;
    return r;
}

int asym_ini_read(const struct asym_ini *ini, const char *text, size_t len, struct asym_error *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    struct asym_error why = {""};
    struct reader l = {.ini = ini, .err = &why};
    struct asym_lines lines = {.at = text, .end = text + len};
    const char *line;
    size_t n;
    if (len >= 3 && memcmp(text, bom, 3) == 0)
        lines.at += 3;
    while (asym_lines_next(&lines, &line, &n)) {
        int r = take_line(&l, line, n, lines.number);
        if (r < 0 && !ini->lenient)
            return asym_fail(err, r == -ENOMEM ? r : -EINVAL, "%.200s:%u: %.800s", ini->name, lines.number, why.text);
    }
    return 0;
}

int asym_ini_name(const char *text, char *buf, size_t size)
{
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
        text++;
        n -= 2;
    }
    if (n == 0 || n >= size || memchr(text, '"', n))
        return -EINVAL;
    snprintf(buf, size, "%.*s", (int)n, text);
    return 0;
}
