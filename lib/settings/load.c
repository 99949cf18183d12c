/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration files. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "settings/ini.h"
#include "settings/internal.h"
#include "settings/rows.h"

struct load {
    struct asym_settings *s;
    const char *path;
    bool rule;      /* the section in force is the newest rule */
    unsigned *seen; /* by row: line that gave it in this file */
};

/*
 * rule NAME or rule "NAME". Returns 0 when the section is no rule; 1 and the name; -EINVAL.
 * buf holds ASYM_RULE_NAME_MAX + 2 bytes, so that a name too long is seen as such.
 */
static int rule_name(const char *section, char *buf)
{
    if (strncmp(section, "rule", 4) != 0 || (section[4] && section[4] != ' ' && section[4] != '\t'))
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

static int enter_section(void *ctx, const char *section, unsigned line, struct asym_error *err)
{
    struct load *l = ctx;
    char name[ASYM_RULE_NAME_MAX + 2], origin[256];
    int rule = rule_name(section, name);
    l->rule = false;
    if (rule < 0)
        return asym_fail(err, -EINVAL, "a rule needs a name; accepted is [rule \"NAME\"]");
    snprintf(origin, sizeof origin, "%.200s:%u", l->path, line);
    int r = rule ? asym_rules_add(l->s->rules, name, origin, err) : asym_section_check(l->s, section, err);
    l->rule = r >= 0 && rule > 0;
    return r;
}

static int take(void *ctx, const char *section, const char *name, const char *value, unsigned line,
                struct asym_error *err)
{
    struct load *l = ctx;
    char origin[256];
    size_t row;
    if (l->rule)
        return asym_rules_set(l->s->rules, name, value, err);
    snprintf(origin, sizeof origin, "%.200s:%u", l->path, line);
    int r = asym_settings_assign(l->s, section, name, value, origin, &row, err);
    if (r < 0)
        return r;
    if (l->seen[row])
        return asym_fail(err, -EINVAL, "%s.%s is given twice, first in line %u", section, name, l->seen[row]);
    l->seen[row] = line;
    return 0;
}

static int parse(struct load *l, const char *text, size_t len, bool salvage, struct asym_error *err)
{
    const struct asym_ini ini = {.name = l->path, .section = enter_section, .key = take, .ctx = l, .salvage = salvage};
    int r = asym_ini_read(&ini, text, len, err);
    return r < 0 ? r : asym_rules_check(l->s->rules, err);
}

/* Into s itself, which the caller throws away on failure. */
static int load_into(struct asym_settings *s, const char *path, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    ASYM_AUTO_FREE unsigned *seen = calloc(s->priv->n_rows + 1, sizeof *seen);
    size_t len = 0;
    if (!seen)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", path);
    int r = asym_ini_file(path, &text, &len, err);
    if (r < 0)
        return r;
    struct load l = {.s = s, .path = path, .seen = seen};
    return parse(&l, text, len, false, err);
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
    if (!seen || asym_ini_file(path, &text, &len, &said) < 0)
        return;
    struct load l = {.s = s, .path = path, .seen = seen};
    parse(&l, text, len, true, &said);
}
