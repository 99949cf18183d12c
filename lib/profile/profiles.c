/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/ini.h"
#include "base/io.h"
#include "base/macro.h"
#include "base/text.h"

#define FILE_MAX_ (16 * 1024 * 1024)

struct asym_profiles {
    struct asym_profile_entry *items; /* sorted by path; owns the paths */
    size_t n, capacity;
};

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

static int enter_section(void *ctx, const char *line, size_t len, unsigned number, struct asym_error *err)
{
    struct asym_profiles *p = ctx;
    char path[PATH_MAX];
    if (asym_profile_parse_section(line, len, path) < 0)
        return asym_fail(err, -EINVAL, "accepted is [PATH] with the absolute path of an executable");
    char *copy = asym_grow(&p->items, p->n, &p->capacity, sizeof *p->items) < 0 ? NULL : strdup(path);
    if (!copy)
        return asym_fail(err, -ENOMEM, "no memory");
    p->items[p->n++] = (struct asym_profile_entry){.path = copy, .line = number};
    return 0;
}

static int take_build_id(struct asym_profile_entry *p, const char *value, struct asym_error *err)
{
    const size_t n = strlen(value);
    if (*p->build_id)
        return asym_fail(err, -EINVAL, "build_id is given twice");
    if (n == 0 || n % 2 || n >= sizeof p->build_id || strspn(value, "0123456789abcdef") != n)
        return asym_fail(err, -EINVAL, "build_id: accepted are 2 to 128 lower-case hexadecimal digits, an even number");
    memcpy(p->build_id, value, n + 1);
    return 0;
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

static int take_figure(struct asym_profile_entry *p, bool is_ips, const char *name, const char *value,
                       struct asym_error *err)
{
    double figure;
    if (!is_name(name))
        return asym_fail(err, -EINVAL, "this is not the name of a core type");
    struct asym_profile_type *type = type_of(p, name);
    if (!type)
        return asym_fail(err, -EINVAL, "more core types than any machine has");
    double *to = is_ips ? &type->ips : &type->mpki;
    if (is_ips ? *to > 0 : *to >= 0)
        return asym_fail(err, -EINVAL, "the key is given twice");
    if (asym_parse_number(value, strlen(value), &figure) < 0 || !isfinite(figure) || figure < 0 ||
        (is_ips && figure == 0))
        return asym_fail(err, -EINVAL,
                         is_ips ? "ips: accepted is a number above 0" : "mpki: accepted is a number from 0");
    *to = figure;
    return 0;
}

static int take_value(void *ctx, const char *section, const char *name, const char *value, unsigned line,
                      struct asym_error *err)
{
    struct asym_profiles *all = ctx;
    struct asym_profile_entry *p = &all->items[all->n - 1];
    (void)section;
    (void)line;
    if (strcmp(name, "build_id") == 0)
        return take_build_id(p, value, err);
    if (strncmp(name, "ips.", 4) == 0)
        return take_figure(p, true, name + 4, value, err);
    if (strncmp(name, "mpki.", 5) == 0)
        return take_figure(p, false, name + 5, value, err);
    return asym_fail(err, -EINVAL, "unknown key; accepted are build_id, ips.TYPE and mpki.TYPE");
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
static int sort(struct asym_profiles *p, const char *file, struct asym_error *err)
{
    struct asym_profile_entry *items = p->items;
    if (p->n > 0)
        qsort(items, p->n, sizeof *items, by_path_and_line);
    for (size_t i = 1; i < p->n; i++)
        if (by_path(&items[i - 1], &items[i]) == 0)
            return asym_fail(err, -EINVAL, "%.200s:%u: the same executable as in line %u", file, items[i].line,
                             items[i - 1].line);
    return 0;
}

int asym_profiles_parse(const char *file, const char *text, size_t len, struct asym_profiles **ret,
                        struct asym_error *err)
{
    struct asym_profiles *p = calloc(1, sizeof *p);
    const struct asym_ini ini = {.name = file, .path = enter_section, .key = take_value, .ctx = p};
    if (!p)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", file);
    int r = asym_ini_read(&ini, text, len, err);
    if (r >= 0)
        r = sort(p, file, err);
    if (r < 0) {
        asym_profiles_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

int asym_profiles_read_file(const char *file, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    const int r = asym_read_file(AT_FDCWD, file, 0, FILE_MAX_, ret_text, ret_len);
    if (r == -EINVAL || r == -EFBIG)
        return asym_fail(err, -EINVAL, "%.200s: accepted is a regular file of at most 16 MiB", file);
    return r < 0 ? asym_fail(err, r, "%.200s: %s", file, strerror(-r)) : 0;
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
