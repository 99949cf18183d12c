/* SPDX-License-Identifier: GPL-2.0-or-later */
/* INI files, through inih. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "base/parse.h"
#include "settings/internal.h"
#include "settings/rows.h"

/* inih's buffer holds 200 bytes with line end and NUL. Comments do not count: they never reach it. */
#define LINE_MAX_   190
#define SECTION_MAX 48
#define FILE_MAX_   (1024 * 1024)

struct load {
    struct asym_settings *s;
    const char *path, *at, *end; /* text that is left to read */
    unsigned line;
    char section[SECTION_MAX + 1]; /* in force */
    bool rule;                     /* it is the newest rule */
    unsigned *seen;                /* by row: line that gave it in this file */
    bool failed;
    bool salvage; /* what is wrong is left out */
    struct asym_error *err;
};

static int fail_at(struct load *l, const char *what)
{
    if (l->salvage)
        return 0;
    if (!l->failed)
        asym_fail(l->err, -EINVAL, "%.200s:%u: %.800s", l->path, l->line, what);
    l->failed = true;
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(const char **text, size_t *n)
{
    while (*n > 0 && is_blank((*text)[0])) {
        (*text)++;
        (*n)--;
    }
    while (*n > 0 && (is_blank((*text)[*n - 1]) || (*text)[*n - 1] == '\r'))
        (*n)--;
}

/* Length without a comment: ';' or '#' at the beginning, or ';' behind white space, as inih has it. */
static size_t without_comment(const char *line, size_t n)
{
    if (n > 0 && (line[0] == ';' || line[0] == '#'))
        return 0;
    for (size_t i = 1; i < n; i++)
        if (line[i] == ';' && is_blank(line[i - 1]))
            return i;
    return n;
}

/*
 * rule NAME or rule "NAME". Returns 0 when the section is no rule; 1 and the name; -EINVAL.
 * buf holds ASYM_RULE_NAME_MAX + 2 bytes, so that a name too long is seen as such.
 */
static int rule_name(const char *section, char *buf)
{
    if (strncmp(section, "rule", 4) != 0 || (section[4] && !is_blank(section[4])))
        return 0;
    const char *name = section + 4 + strspn(section + 4, " \t");
    size_t n = strlen(name);
    if (n >= 2 && name[0] == '"' && name[n - 1] == '"') {
        name++;
        n -= 2;
    }
    if (n == 0 || memchr(name, '"', n))
        return -EINVAL;
    snprintf(buf, ASYM_RULE_NAME_MAX + 2, "%.*s", (int)n, name);
    return 1;
}

/* inih hands over sections only with their keys: an empty [asmyd] or a rule without keys is noticed here. */
static int enter_section(struct load *l, const char *line, size_t n)
{
    struct asym_error why = {""};
    char name[ASYM_RULE_NAME_MAX + 2], origin[256], section[SECTION_MAX + 1];
    const char *close = memchr(line, ']', n);
    l->section[0] = '\0';
    l->rule = false;
    if (!close)
        return fail_at(l, "the section has no ']'");
    if (close != line + n - 1)
        return fail_at(l, "text behind the section's ']'; accepted is a comment");
    const char *inside = line + 1;
    n -= 2;
    trim(&inside, &n);
    if (n > SECTION_MAX)
        return fail_at(l, "the section's name is longer than 48 bytes");
    snprintf(section, sizeof section, "%.*s", (int)n, inside);
    int rule = rule_name(section, name);
    if (rule < 0)
        return fail_at(l, "a rule needs a name; accepted is [rule \"NAME\"]");
    snprintf(origin, sizeof origin, "%.200s:%u", l->path, l->line);
    int r = rule ? asym_rules_add(l->s->rules, name, origin, &why) : asym_section_check(l->s, section, &why);
    if (r < 0)
        return fail_at(l, why.text);
    l->rule = rule > 0;
    memcpy(l->section, section, sizeof section);
    return 1;
}

static bool is_text(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return false;
    return true;
}

/* The next line of the text, trimmed and without its comment; false at the end. */
static bool next_line(struct load *l, const char **ret_line, size_t *ret_n)
{
    if (l->at >= l->end || l->failed)
        return false;
    const char *line = l->at, *stop = memchr(line, '\n', (size_t)(l->end - line));
    size_t n = (size_t)((stop ? stop : l->end) - line);
    l->at = stop ? stop + 1 : l->end;
    l->line++;
    trim(&line, &n);
    if (!is_text(line, n)) {
        fail_at(l, "binary data; accepted is text");
        *ret_n = 0;
        return l->salvage;
    }
    n = without_comment(line, n);
    trim(&line, &n);
    *ret_line = line;
    *ret_n = n;
    return true;
}

static bool is_good(struct load *l, const char *line, size_t n, size_t size)
{
    if (n > LINE_MAX_ || n + 2 > size)
        return fail_at(l, "the line is too long; accepted are 190 bytes");
    if (line[0] == '[')
        return enter_section(l, line, n);
    return memchr(line, '=', n) || memchr(line, ':', n) || fail_at(l, "neither [section] nor KEY = VALUE");
}

/*
 * inih's reader: a line at a time, and only lines that inih takes without complaint, since it would say no more than
 * their number. Indentation would mean a continued value to inih; here it means nothing.
 */
static char *read_line(char *buf, int size, void *stream)
{
    struct load *l = stream;
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
    struct load *l = user;
    struct asym_error why = {""};
    char origin[256], text[160];
    size_t row;
    (void)section;
    if (l->failed)
        return 0;
    if (!*l->section)
        return fail_at(l, "a key before the first [section]");
    if (strlen(value) > ASYM_VALUE_MAX)
        return fail_at(l, "the value is too long; accepted are 160 bytes");
    if (l->rule)
        return asym_rules_set(l->s->rules, name, value, &why) < 0 ? fail_at(l, why.text) : 1;
    snprintf(origin, sizeof origin, "%.200s:%u", l->path, l->line);
    if (asym_settings_assign(l->s, l->section, name, value, origin, &row, &why) < 0)
        return fail_at(l, why.text);
    if (l->seen[row]) {
        snprintf(text, sizeof text, "%s.%s is given twice, first in line %u", l->section, name, l->seen[row]);
        return fail_at(l, text);
    }
    l->seen[row] = l->line;
    return 1;
}

static int parse(struct load *l)
{
    static const char bom[] = "\xef\xbb\xbf";
    if (l->end - l->at >= 3 && memcmp(l->at, bom, 3) == 0)
        l->at += 3;
    int r = ini_parse_stream(read_line, l, take, l);
    if (l->failed)
        return -EINVAL;
    if (r != 0)
        return asym_fail(l->err, r < 0 ? -ENOMEM : -EINVAL, "%.200s: cannot be read as INI", l->path);
    return asym_rules_check(l->s->rules, l->err);
}

/* Not only regular files: --config=/dev/null is how one says "none". */
static int read_file(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err)
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
    size_t len = 0;
    ssize_t n = 1;
    if (!text)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", path);
    while (n > 0 && len <= FILE_MAX_) {
        n = read(fd, text + len, FILE_MAX_ + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s", path, strerror(-error));
    }
    if (len > FILE_MAX_)
        return asym_fail(err, -EINVAL, "%.200s: larger than 1 MiB, which no configuration is", path);
    *ret_text = ASYM_TAKE(text);
    *ret_len = len;
    return 0;
}

/* Into s itself, which the caller throws away on failure. */
static int load_into(struct asym_settings *s, const char *path, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    ASYM_AUTO_FREE unsigned *seen = calloc(s->priv->n_rows + 1, sizeof *seen);
    size_t len = 0;
    if (!seen)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", path);
    int r = read_file(path, &text, &len, err);
    if (r < 0)
        return r;
    struct load l = {.s = s, .path = path, .at = text, .end = text + len, .seen = seen, .err = err};
    return parse(&l);
}

static int is_conf(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".conf") == 0;
}

static int load_directory(struct asym_settings *s, const char *path, struct asym_error *err)
{
    char file[4096];
    struct dirent **list;
    int n = scandir(path, &list, is_conf, alphasort), r = 0;
    if (n < 0) {
        int error = -errno;
        return error == -ENOENT ? 0 : asym_fail(err, error, "%.200s: %s", path, strerror(-error));
    }
    for (int i = 0; i < n; i++) {
        if (r >= 0)
            r = snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name) < (int)sizeof file
                    ? load_into(s, file, err)
                    : asym_fail(err, -ENAMETOOLONG, "%.200s: the name is too long", path);
        free(list[i]);
    }
    free(list);
    return r;
}

static int load_all_into(struct asym_settings *s, const char *path, bool required, struct asym_error *err)
{
    char directory[4096];
    const char *slash = strrchr(path, '/');
    struct asym_error why = {""};
    int r = load_into(s, path, &why);
    if (r < 0 && (r != -ENOENT || required))
        return asym_fail(err, r, "%s", why.text);
    if (snprintf(directory, sizeof directory, "%.*srules.d", slash ? (int)(slash - path + 1) : 0, path) >=
        (int)sizeof directory)
        return asym_fail(err, -ENAMETOOLONG, "%.200s: the name is too long", path);
    return load_directory(s, directory, err);
}

int asym_settings_load(struct asym_settings *s, const char *path, struct asym_error *err)
{
    struct asym_settings *copy;
    int r = asym_settings_copy(s, &copy);
    if (r < 0)
        return asym_fail(err, r, "%.200s: no memory", path);
    r = load_into(copy, path, err);
    if (r >= 0)
        asym_settings_swap(s, copy);
    asym_settings_free(copy);
    return r;
}

int asym_settings_load_all(struct asym_settings *s, const char *path, bool required, struct asym_error *err)
{
    struct asym_settings *copy;
    int r = asym_settings_copy(s, &copy);
    if (r < 0)
        return asym_fail(err, r, "%.200s: no memory", path);
    r = load_all_into(copy, path, required, err);
    if (r >= 0)
        asym_settings_swap(s, copy);
    asym_settings_free(copy);
    return r;
}

void asym_settings_salvage(struct asym_settings *s, const char *path)
{
    struct asym_error said = {""};
    ASYM_AUTO_FREE char *text = NULL;
    ASYM_AUTO_FREE unsigned *seen = calloc(s->priv->n_rows + 1, sizeof *seen);
    size_t len = 0;
    if (!seen || read_file(path, &text, &len, &said) < 0)
        return;
    struct load l = {.s = s, .path = path, .at = text, .end = text + len, .seen = seen, .salvage = true, .err = &said};
    parse(&l);
}
