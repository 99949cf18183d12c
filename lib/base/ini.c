/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/ini.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* inih's buffer holds 200 bytes with line end and NUL. Comments do not count. */
#define LINE_MAX_ 190

struct reader {
    const struct asym_ini *ini;
    struct asym_lines lines;
    bool inside; /* of a section */
    char section[ASYM_INI_SECTION_MAX + 1];
    int failed;             /* -errno of the first wrong line */
    struct asym_error *err; /* what is wrong in this line */
};

/* Length without a comment. As in inih, ';' or '#' at the beginning of a line or ';' after white space starts one. */
static size_t without_comment(const char *line, size_t n)
{
    if (n > 0 && (line[0] == ';' || line[0] == '#'))
        return 0;
    for (size_t i = 1; i < n; i++)
        if (line[i] == ';' && (line[i - 1] == ' ' || line[i - 1] == '\t'))
            return i;
    return n;
}

static int enter_section(struct reader *l, const char *line, size_t n)
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
    return l->ini->section(l->ini->ctx, l->section, l->lines.number, l->err);
}

/* inih splits a line with one of these, and has no other error: the text it would give is no more than a line number. */
static int check_key(struct reader *l, const char *line, size_t n)
{
    if (n > LINE_MAX_)
        return asym_fail(l->err, -EINVAL, "the line is too long; accepted are 190 bytes");
    if (!memchr(line, '=', n) && !memchr(line, ':', n))
        return asym_fail(l->err, -EINVAL, "neither [%s] nor KEY = VALUE", l->ini->path ? "PATH" : "section");
    if (!l->inside)
        return asym_fail(l->err, -EINVAL, "a key before the first [%s]", l->ini->path ? "PATH" : "section");
    return 1;
}

/* Returns 1 for a line that inih splits; 0 for one that is done. Indentation has no meaning: none continues a value. */
static int take_line(struct reader *l, const char **line, size_t *n)
{
    const bool is_section = *n > 0 && **line == '[';
    if (!asym_line_is_text(*line, *n))
        return asym_fail(l->err, -EINVAL, "binary data; accepted is text");
    if (!is_section || !l->ini->path) {
        *n = without_comment(*line, *n);
        asym_parse_trim(line, n);
        if (*n == 0)
            return 0;
    }
    if (!is_section)
        return check_key(l, *line, *n);
    l->inside = false;
    int r = l->ini->path ? l->ini->path(l->ini->ctx, *line, *n, l->lines.number, l->err) : enter_section(l, *line, *n);
    l->inside = r >= 0;
    return r;
}

/* Gives inih the next line that it splits. */
static char *next_line(char *buf, int size, void *stream)
{
    struct reader *l = stream;
    const char *line;
    size_t n;
    while (l->failed == 0 && asym_lines_next(&l->lines, &line, &n)) {
        int r = take_line(l, &line, &n);
        if (r < 0 && !l->ini->lenient)
            l->failed = r;
        if (r <= 0)
            continue;
        if (snprintf(buf, (size_t)size, "%.*s\n", (int)n, line) >= size) {
            l->failed = asym_fail(l->err, -EINVAL, "the line is too long");
            return NULL;
        }
        return buf;
    }
    return NULL;
}

static int take_key(void *user, const char *section, const char *key, const char *value)
{
    struct reader *l = user;
    (void)section; /* inih is given none */
    int r = strlen(value) > ASYM_INI_VALUE_MAX
                ? asym_fail(l->err, -EINVAL, "the value is too long; accepted are 160 bytes")
                : l->ini->key(l->ini->ctx, l->section, key, value, l->lines.number, l->err);
    if (r < 0 && !l->ini->lenient)
        l->failed = r;
    return 1;
}

int asym_ini_read(const struct asym_ini *ini, const char *text, size_t len, struct asym_error *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    struct asym_error why = {""};
    struct reader l = {.ini = ini, .lines = {.at = text, .end = text + len}, .err = &why};
    if (len >= 3 && memcmp(text, bom, 3) == 0)
        l.lines.at += 3;
    if (ini_parse_stream(next_line, &l, take_key, &l) < 0)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", ini->name);
    if (l.failed < 0)
        return asym_fail(err, l.failed == -ENOMEM ? l.failed : -EINVAL, "%.200s:%u: %.800s", ini->name, l.lines.number,
                         why.text);
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
