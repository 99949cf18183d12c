/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/parse.h"

/* inih's buffer holds 200 bytes with line end and NUL. The reader strips comments, so they do not count. */
#define LINE_MAX_ 190
#define FILE_MAX_ (1024 * 1024)

struct reader {
    const struct asym_ini *ini;
    struct asym_lines lines;
    char section[ASYM_INI_SECTION_MAX + 1]; /* the current section */
    int failed;                             /* -errno */
    struct asym_error *err;
};

static int fail_at(struct reader *l, int error, const char *what)
{
    if (l->ini->lenient)
        return 0;
    if (l->failed == 0)
        l->failed = asym_fail(l->err, error == -ENOMEM ? error : -EINVAL, "%.200s:%u: %.800s", l->ini->name,
                              l->lines.number, what);
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Length without a comment. As in inih, ';' or '#' at the beginning of a line or ';' after white space starts one. */
static size_t without_comment(const char *line, size_t n)
{
    if (n > 0 && (line[0] == ';' || line[0] == '#'))
        return 0;
    for (size_t i = 1; i < n; i++)
        if (line[i] == ';' && is_blank(line[i - 1]))
            return i;
    return n;
}

/* inih reports a section only with its keys: this function finds an empty [asmyd] or a rule without keys. */
static int enter_section(struct reader *l, const char *line, size_t n)
{
    struct asym_error why = {""};
    char section[ASYM_INI_SECTION_MAX + 1];
    const char *close = memchr(line, ']', n);
    l->section[0] = '\0';
    if (!close)
        return fail_at(l, -EINVAL, "the section has no ']'");
    if (close != line + n - 1)
        return fail_at(l, -EINVAL, "text after the section's ']'; accepted is a comment");
    const char *inside = line + 1;
    n -= 2;
    asym_parse_trim(&inside, &n);
    if (n > ASYM_INI_SECTION_MAX)
        return fail_at(l, -EINVAL, "the section's name is longer than 48 bytes");
    snprintf(section, sizeof section, "%.*s", (int)n, inside);
    int r = l->ini->section(l->ini->ctx, section, l->lines.number, &why);
    if (r < 0)
        return fail_at(l, r, why.text);
    memcpy(l->section, section, sizeof section);
    return 1;
}

/* Returns the next line, trimmed and without its comment; false at the end. */
static bool next_line(struct reader *l, const char **ret_line, size_t *ret_n)
{
    if (l->failed || !asym_lines_next(&l->lines, ret_line, ret_n))
        return false;
    if (!asym_line_is_text(*ret_line, *ret_n)) {
        fail_at(l, -EINVAL, "binary data; accepted is text");
        *ret_n = 0;
        return l->ini->lenient;
    }
    *ret_n = without_comment(*ret_line, *ret_n);
    asym_parse_trim(ret_line, ret_n);
    return true;
}

static bool is_good(struct reader *l, const char *line, size_t n, size_t size)
{
    if (n > LINE_MAX_ || n + 2 > size)
        return fail_at(l, -EINVAL, "the line is too long; accepted are 190 bytes");
    if (line[0] == '[')
        return enter_section(l, line, n);
    return memchr(line, '=', n) || memchr(line, ':', n) || fail_at(l, -EINVAL, "neither [section] nor KEY = VALUE");
}

/*
 * Gives inih one line at a time, and only lines that inih accepts: its own error would be no more than a line number. inih
 * takes an indented line for a continued value; here indentation has no meaning.
 */
static char *read_line(char *buf, int size, void *stream)
{
    struct reader *l = stream;
    const char *line;
    size_t n = 0;
    do {
        if (!next_line(l, &line, &n))
            return NULL;
    } while (n == 0 || !is_good(l, line, n, (size_t)size));
    memcpy(buf, line, n);
    memcpy(buf + n, "\n", 2);
    return buf;
}

static int take(void *user, const char *section, const char *name, const char *value)
{
    struct reader *l = user;
    struct asym_error why = {""};
    if (l->failed)
        return 0;
    if (!*l->section)
        return fail_at(l, -EINVAL, "a key before the first [section]");
    if (strlen(value) > ASYM_INI_VALUE_MAX)
        return fail_at(l, -EINVAL, "the value is too long; accepted are 160 bytes");
    int r = l->ini->key(l->ini->ctx, l->section, name, value, l->lines.number, &why);
    return r < 0 ? fail_at(l, r, why.text) : 1;
}

int asym_ini_read(const struct asym_ini *ini, const char *text, size_t len, struct asym_error *err)
{
    static const char bom[] = "\xef\xbb\xbf";
    struct reader l = {.ini = ini, .lines = {.at = text, .end = text + len}, .err = err};
    if (len >= 3 && memcmp(text, bom, 3) == 0)
        l.lines.at += 3;
    int r = ini_parse_stream(read_line, &l, take, &l);
    if (l.failed)
        return l.failed;
    if (r != 0)
        return asym_fail(err, r < 0 ? -ENOMEM : -EINVAL, "%.200s: cannot be read as INI", ini->name);
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

/* Character devices too: a user gives --config=/dev/null to load no configuration. */
int asym_ini_file(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s", path, strerror(-error));
    }
    if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
        return asym_fail(err, -EINVAL, "%.200s: %s; accepted is a file", path,
                         S_ISDIR(st.st_mode) ? "is a directory" : "is not a regular file");
    ASYM_AUTO_FREE char *text = malloc(FILE_MAX_ + 1);
    if (!text)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", path);
    const ssize_t len = asym_read_all(fd, text, FILE_MAX_ + 1);
    if (len < 0)
        return asym_fail(err, (int)len, "%.200s: %s", path, strerror((int)-len));
    if (len > FILE_MAX_)
        return asym_fail(err, -EINVAL, "%.200s: the file is larger than 1 MiB; accepted are up to 1 MiB", path);
    *ret_text = ASYM_TAKE(text);
    *ret_len = (size_t)len;
    return 0;
}
