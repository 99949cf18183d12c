/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads profiles through inih. */
#include "profile/profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "base/io.h"
#include "base/macro.h"
#include "base/parse.h"
#include "base/text.h"

/* inih's buffer holds 200 bytes with line end and NUL. Sections do not count: inih never sees their names. */
#define LINE_MAX_ 190
#define FILE_MAX_ (16 * 1024 * 1024)

struct asym_profiles {
    struct asym_profile_entry *items; /* sorted by path; owns the paths */
    size_t n, capacity;
};

struct load {
    struct asym_profiles *p;
    struct asym_lines lines;
    const char *file;
    int failed; /* -errno */
    struct asym_error *err;
};

static int fail_at(struct load *l, int error, const char *what)
{
    if (l->failed == 0)
        l->failed = asym_fail(l->err, error, "%.200s:%u: %.600s", l->file, l->lines.number, what);
    return 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode one byte of a section's name. Returns how many bytes of text encode it; 0: not accepted. */
static size_t unescape(const char *text, size_t len, char *ret)
{
    *ret = text[0];
    if (text[0] != '\\')
        return 1;
    if (len >= 2 && text[1] == '\\')
        return 2;
    if (len < 4 || text[1] != 'x' || hex_digit(text[2]) < 0 || hex_digit(text[3]) < 0)
        return 0;
    *ret = (char)(hex_digit(text[2]) << 4 | hex_digit(text[3]));
    return *ret ? 4 : 0;
}

int asym_profile_parse_section(const char *line, size_t len, char ret[PATH_MAX])
{
    size_t at = 0;
    if (len < 3 || line[0] != '[' || line[len - 1] != ']' || line[1] != '/')
        return -EINVAL;
    for (size_t i = 1; i < len - 1;) {
        size_t n = unescape(line + i, len - 1 - i, &ret[at]);
        if (n == 0 || ++at == PATH_MAX)
            return -EINVAL;
        i += n;
    }
    ret[at] = '\0';
    return 0;
}

static int add_profile(struct asym_profiles *p, const char *path, unsigned line)
{
    if (asym_grow(&p->items, p->n, &p->capacity, sizeof *p->items) < 0)
        return -ENOMEM;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    p->items[p->n++] = (struct asym_profile_entry){.path = copy, .line = line};
    return 0;
}

static int enter_section(struct load *l, const char *line, size_t len)
{
    char path[PATH_MAX];
    if (asym_profile_parse_section(line, len, path) < 0)
        return fail_at(l, -EINVAL, "accepted is [PATH] with the absolute path of an executable");
    if (add_profile(l->p, path, l->lines.number) < 0)
        return fail_at(l, -ENOMEM, "no memory");
    return 1;
}

/*
 * Gives inih only lines that it accepts: its own error would be no more than a line number. It gets [profile] in place of
 * each section, because it would cut a path at 49 bytes.
 */
static char *read_line(char *buf, int size, void *stream)
{
    struct load *l = stream;
    const char *line;
    size_t n = 0;
    int good = 1;
    do {
        if (l->failed || !asym_lines_next(&l->lines, &line, &n))
            return NULL;
    } while (n == 0 || line[0] == ';' || line[0] == '#');
    if (!asym_line_is_text(line, n))
        good = fail_at(l, -EINVAL, "binary data; accepted is text");
    else if (line[0] == '[') {
        good = enter_section(l, line, n);
        line = "[profile]";
        n = strlen(line);
    } else if (n > LINE_MAX_ || n + 2 > (size_t)size)
        good = fail_at(l, -EINVAL, "the line is too long; accepted are 190 bytes");
    else if (!memchr(line, '=', n) && !memchr(line, ':', n))
        good = fail_at(l, -EINVAL, "neither [PATH] nor KEY = VALUE");
    if (!good)
        return NULL;
    memcpy(buf, line, n);
    memcpy(buf + n, "\n", 2);
    return buf;
}

static int take_build_id(struct load *l, struct asym_profile_entry *p, const char *value)
{
    const size_t n = strlen(value);
    if (*p->build_id)
        return fail_at(l, -EINVAL, "build_id is given twice");
    if (n == 0 || n % 2 || n >= sizeof p->build_id || strspn(value, "0123456789abcdef") != n)
        return fail_at(l, -EINVAL, "build_id: accepted are 2 to 128 lower-case hexadecimal digits, an even number");
    memcpy(p->build_id, value, n + 1);
    return 1;
}

static bool is_name(const char *name)
{
    static const char inside[] = " -_+.", alnum[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t n = strlen(name);
    if (n == 0 || n >= sizeof((struct asym_profile_type *)0)->name)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!strchr(alnum, name[i]) && (i == 0 || i == n - 1 || !strchr(inside, name[i])))
            return false;
    return true;
}

static struct asym_profile_type *type_of(struct asym_profile_entry *p, const char *name)
{
    for (unsigned t = 0; t < p->n_types; t++)
        if (strcmp(p->types[t].name, name) == 0)
            return &p->types[t];
    if (p->n_types == ASYM_MAX_TYPES)
        return NULL;
    struct asym_profile_type *type = &p->types[p->n_types++];
    *type = (struct asym_profile_type){.ips = 0, .mpki = -1};
    memcpy(type->name, name, strlen(name) + 1);
    return type;
}

static int take_figure(struct load *l, struct asym_profile_entry *p, bool is_ips, const char *name, const char *value)
{
    double figure;
    if (!is_name(name))
        return fail_at(l, -EINVAL, "this is not the name of a core type");
    struct asym_profile_type *type = type_of(p, name);
    if (!type)
        return fail_at(l, -EINVAL, "more core types than any machine has");
    double *to = is_ips ? &type->ips : &type->mpki;
    if (is_ips ? *to > 0 : *to >= 0)
        return fail_at(l, -EINVAL, "the key is given twice");
    if (asym_parse_number(value, strlen(value), &figure) < 0 || !isfinite(figure) || figure < 0 ||
        (is_ips && figure == 0))
        return fail_at(l, -EINVAL, is_ips ? "ips: accepted is a number above 0" : "mpki: accepted is a number from 0");
    *to = figure;
    return 1;
}

static int take(void *user, const char *section, const char *name, const char *value)
{
    struct load *l = user;
    (void)section;
    if (l->failed)
        return 0;
    if (l->p->n == 0)
        return fail_at(l, -EINVAL, "a key before the first [PATH]");
    struct asym_profile_entry *p = &l->p->items[l->p->n - 1];
    if (strcmp(name, "build_id") == 0)
        return take_build_id(l, p, value);
    if (strncmp(name, "ips.", 4) == 0)
        return take_figure(l, p, true, name + 4, value);
    if (strncmp(name, "mpki.", 5) == 0)
        return take_figure(l, p, false, name + 5, value);
    return fail_at(l, -EINVAL, "unknown key; accepted are build_id, ips.TYPE and mpki.TYPE");
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct asym_profile_entry *)a)->path, ((const struct asym_profile_entry *)b)->path);
}

static int by_path_and_line(const void *a, const void *b)
{
    const struct asym_profile_entry *x = a, *y = b;
    const int order = by_path(a, b);
    return order != 0 ? order : x->line < y->line ? -1 : x->line > y->line;
}

/* Sorts the profiles. Fails if two have the same path. */
static int sort(struct load *l)
{
    struct asym_profile_entry *items = l->p->items;
    if (l->p->n > 0)
        qsort(items, l->p->n, sizeof *items, by_path_and_line);
    for (size_t i = 1; i < l->p->n; i++)
        if (by_path(&items[i - 1], &items[i]) == 0)
            return asym_fail(l->err, -EINVAL, "%.200s:%u: the same executable as in line %u", l->file, items[i].line,
                             items[i - 1].line);
    return 0;
}

int asym_profiles_parse(const char *file, const char *text, size_t len, struct asym_profiles **ret,
                        struct asym_error *err)
{
    struct asym_profiles *p = calloc(1, sizeof *p);
    struct load l = {.p = p, .lines = {.at = text, .end = text + len}, .file = file, .err = err};
    if (!p)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", file);
    int r = ini_parse_stream(read_line, &l, take, &l);
    if (l.failed)
        r = l.failed;
    else if (r != 0)
        r = asym_fail(err, r < 0 ? -ENOMEM : -EINVAL, "%.200s: cannot be read as INI", file);
    else
        r = sort(&l);
    if (r < 0) {
        asym_profiles_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

int asym_profiles_read_file(const char *file, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s", file, strerror(-error));
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX_)
        return asym_fail(err, -EINVAL, "%.200s: accepted is a regular file of at most 16 MiB", file);
    const size_t size = (size_t)st.st_size;
    ASYM_AUTO_FREE char *text = malloc(size + 1);
    if (!text)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", file);
    const ssize_t len = asym_read_all(fd, text, size);
    if (len < 0)
        return asym_fail(err, (int)len, "%.200s: %s", file, strerror((int)-len));
    text[len] = '\0';
    *ret_text = ASYM_TAKE(text);
    *ret_len = (size_t)len;
    return 0;
}

int asym_profiles_load(const char *file, struct asym_profiles **ret, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t len = 0;
    int r = asym_profiles_read_file(file, &text, &len, err);
    return r < 0 ? r : asym_profiles_parse(file, text, len, ret, err);
}

void asym_profiles_free(struct asym_profiles *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        free((char *)(uintptr_t)p->items[i].path);
    free(p->items);
    free(p);
}

const struct asym_profile_entry *asym_profiles_at(const struct asym_profiles *p, size_t i)
{
    return i < p->n ? &p->items[i] : NULL;
}

const struct asym_profile_entry *asym_profiles_find(const struct asym_profiles *p, const char *path,
                                                    const char *build_id)
{
    const struct asym_profile_entry wanted = {.path = path};
    const struct asym_profile_entry *found = p->n > 0 ? bsearch(&wanted, p->items, p->n, sizeof *p->items, by_path)
                                                      : NULL;
    if (found && build_id && *build_id && *found->build_id && strcmp(found->build_id, build_id) != 0)
        return NULL;
    return found;
}

const struct asym_profile_type *asym_profile_on(const struct asym_profile_entry *profile, const char *type)
{
    for (unsigned t = 0; t < profile->n_types; t++)
        if (strcmp(profile->types[t].name, type) == 0)
            return &profile->types[t];
    return NULL;
}

struct asym_profile asym_profile_of(const struct asym_profile_entry *profile, const struct asym_machine *m)
{
    struct asym_profile ret;
    for (unsigned t = 0; t < ASYM_MAX_TYPES; t++) {
        const struct asym_profile_type *type = t < m->n_types ? asym_profile_on(profile, m->types[t].name) : NULL;
        ret.ips[t] = type ? type->ips : 0;
        ret.mpki[t] = type ? type->mpki : -1;
    }
    return ret;
}
