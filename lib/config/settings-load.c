/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ini.h"
#include "base/io.h"
#include "base/macro.h"
#include "base/text.h"
#include "config/config.h"

#define FILE_MAX_ (1024 * 1024)

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
    text[len] = '\0';
    *ret_text = ASYM_TAKE(text);
    *ret_len = (size_t)len;
    return 0;
}

struct load {
    struct asym_settings *s;
    const char *path;
    bool rule;           /* the current section is the newest rule */
    bool library;        /* the file belongs to the library: rules only, and a rule whose name is taken is skipped */
    bool skip;           /* the current section is such a rule */
    const char *printed; /* the text is what asym_settings_print has written, with the origins; NULL: it is not */
    unsigned *seen;      /* by row: the line of this file that sets it */
};

/* Write "FILE:LINE", or the comment of that line of what asym_settings_print has written. */
static void origin_of(const struct load *l, unsigned line, char *buf, size_t size)
{
    const char *at = l->printed, *end;
    snprintf(buf, size, "%.200s:%u", l->path, line);
    if (!at)
        return;
    for (; line > 1 && at; line--)
        at = (end = strchr(at, '\n')) ? end + 1 : NULL;
    const size_t n = at ? strcspn(at, "\n") : 0;
    const char *comment = at ? memmem(at, n, " ; ", 3) : NULL;
    if (comment)
        snprintf(buf, size, "%.*s", (int)(at + n - comment) - 3, comment + 3);
}

/* Takes the mark of the library from the end of a printed origin. Returns whether it was there. */
static bool take_library_mark(char *origin)
{
    const size_t n = strlen(origin), mark = strlen(ASYM_ORIGIN_IN_LIBRARY);
    const bool marked = n > mark && strcmp(origin + n - mark, ASYM_ORIGIN_IN_LIBRARY) == 0;
    if (marked)
        origin[n - mark] = '\0';
    return marked;
}

/* Accepts rule NAME and rule "NAME". Returns 1 and the name, even if it is too long; 0 when the section is no rule; -EINVAL. */
static int rule_name(const char *section, char buf[ASYM_INI_SECTION_MAX + 1])
{
    if (strncmp(section, "rule", 4) != 0 || (section[4] && section[4] != ' ' && section[4] != '\t'))
        return 0;
    int r = asym_ini_name(section + 4 + strspn(section + 4, " \t"), buf, ASYM_INI_SECTION_MAX + 1);
    return r < 0 ? r : 1;
}

static int enter_section(void *ctx, const char *section, unsigned line, struct asym_error *err)
{
    struct load *l = ctx;
    char name[ASYM_INI_SECTION_MAX + 1], origin[256];
    int rule = rule_name(section, name);
    l->rule = false;
    l->skip = l->library && rule > 0 && asym_rules_named(l->s->rules, name);
    if (l->skip)
        return 0;
    if (rule < 0)
        return asym_fail(err, -EINVAL, "a rule needs a name; accepted is [rule \"NAME\"]");
    if (rule == 0 && l->library)
        return asym_fail(err, -EINVAL, "[%s] is no rule; a file of the library has rules only", section);
    origin_of(l, line, origin, sizeof origin);
    const bool library = l->library || (l->printed && take_library_mark(origin));
    int r = rule ? asym_rules_add(l->s->rules, name, origin, err) : asym_section_check(l->s, section, err);
    l->rule = r >= 0 && rule > 0;
    if (l->rule)
        l->s->rules->rules[l->s->rules->n - 1].facts.library = library;
    return r;
}

static int take_value(void *ctx, const char *section, const char *name, const char *value, unsigned line,
                      struct asym_error *err)
{
    struct load *l = ctx;
    char origin[256], bare[ASYM_INI_VALUE_MAX + 1];
    size_t row;
    if (l->skip)
        return 0;
    /* Only globs know quotes inside a value. */
    if (strncmp(name, "match_", strlen("match_")) != 0 && asym_ini_name(value, bare, sizeof bare) >= 0)
        value = bare;
    if (l->rule)
        return asym_rules_set(l->s->rules, name, value, err);
    origin_of(l, line, origin, sizeof origin);
    if (l->printed && strcmp(origin, "default") == 0)
        return 0;
    int r = asym_settings_assign(l->s, section, name, value, origin, &row, err);
    if (r < 0)
        return r;
    if (l->seen[row])
        return asym_fail(err, -EINVAL, "%s.%s is given twice, first in line %u", section, name, l->seen[row]);
    l->seen[row] = line;
    return 0;
}

static int load_text(struct load *l, const char *text, size_t len, bool lenient, struct asym_error *err)
{
    ASYM_AUTO_FREE unsigned *seen = calloc(l->s->priv->n_rows + 1, sizeof *seen);
    const struct asym_ini ini = {
        .name = l->path, .section = enter_section, .key = take_value, .ctx = l, .lenient = lenient};
    l->seen = seen;
    const int r = seen ? asym_ini_read(&ini, text, len, err) : asym_fail(err, -ENOMEM, "%.200s: no memory", l->path);
    return r < 0 ? r : asym_rules_check(l->s->rules, err);
}

static int load_file(struct asym_settings *s, const char *path, bool lenient, bool library, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    struct load l = {.s = s, .path = path, .library = library};
    size_t len = 0;
    const int r = asym_ini_file(path, &text, &len, err);
    return r < 0 ? r : load_text(&l, text, len, lenient, err);
}

int asym_settings_read_printed(struct asym_settings *s, const char *text, size_t len, struct asym_error *err)
{
    struct load l = {.s = s, .path = "the configuration of asymd", .printed = text};
    const int r = load_text(&l, text, len, false, err);
    s->rules->unlisted = s->daemon.unlisted ? ASYM_RULE_UNLISTED : ASYM_RULE_STEER;
    return r;
}

#define SUFFIX ".conf"

/* The length of a file's name without the suffix, in the library the name of a group; 0: it is no file of settings. */
static size_t stem_length(const char *file)
{
    const size_t n = strlen(file);
    return file[0] != '.' && n > strlen(SUFFIX) && strcmp(file + n - strlen(SUFFIX), SUFFIX) == 0 ? n - strlen(SUFFIX)
                                                                                                  : 0;
}

static int is_conf(const struct dirent *e)
{
    return stem_length(e->d_name) > 0;
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
                    ? load_file(s, file, false, false, err)
                    : asym_fail(err, -ENAMETOOLONG, "%.200s: the name is too long", path);
        free(list[i]);
    }
    free(list);
    return r;
}

int asym_settings_load(struct asym_settings *s, const char *path, bool required, struct asym_error *err)
{
    char directory[4096];
    const char *slash = strrchr(path, '/');
    struct asym_error why = {""};
    int r = load_file(s, path, false, false, &why);
    if (r < 0 && (r != -ENOENT || required))
        return asym_fail(err, r, "%s", why.text);
    if (snprintf(directory, sizeof directory, "%.*srules.d", slash ? (int)(slash - path + 1) : 0, path) >=
        (int)sizeof directory)
        return asym_fail(err, -ENAMETOOLONG, "%.200s: the name is too long", path);
    return load_directory(s, directory, err);
}

void asym_settings_load_lenient(struct asym_settings *s, const char *path)
{
    struct asym_error said = {""};
    load_file(s, path, true, false, &said);
}

/* The library of rules: each group is a file of rules for well-known programs. */

struct library {
    const char *path;
    struct dirent **groups; /* the names are cut to those of the groups */
    int n;
};

static void library_done(struct library *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->groups[i]);
    free(l->groups);
}

static int read_library(const char *path, const char *origin, struct library *ret, struct asym_error *err)
{
    ret->path = path;
    ret->n = scandir(path, &ret->groups, is_conf, alphasort);
    if (ret->n < 0)
        return asym_fail(err, -EINVAL,
                         "%.200s: asymd.include needs the library of rules, which asymd installs: %.200s: %s", origin,
                         path, strerror(errno));
    for (int i = 0; i < ret->n; i++)
        ret->groups[i]->d_name[stem_length(ret->groups[i]->d_name)] = '\0';
    return 0;
}

static int unknown_group(const struct library *l, const char *name, const char *origin, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = name};
    char hint[96], shown[128];
    for (int i = 0; i < l->n; i++)
        asym_nearest_list(&n, l->groups[i]->d_name);
    return asym_fail(err, -EINVAL, "%.200s: asymd.include: %.200s has no group of rules '%s'%s; accepted are %s",
                     origin, l->path, asym_text_show(name, shown, sizeof shown),
                     asym_nearest_hint(&n, hint, sizeof hint), *n.list ? n.list : "none: the library is empty");
}

static int include_group(struct asym_settings *s, const struct library *l, const char *name, struct asym_error *err)
{
    char path[4096];
    int i = 0;
    while (i < l->n && strcmp(l->groups[i]->d_name, name) != 0)
        i++;
    if (i == l->n)
        return unknown_group(l, name, asym_settings_origin(s, "asymd", "include"), err);
    if (snprintf(path, sizeof path, "%s/%s" SUFFIX, l->path, name) >= (int)sizeof path)
        return asym_fail(err, -EINVAL, "%.200s: the name is too long", l->path);
    return load_file(s, path, false, true, err);
}

/* A group that is named twice is no mistake: its rules are there already, so all of them are skipped. */
static int include_groups(struct asym_settings *s, const char *library, struct asym_error *err)
{
    ASYM_CLEANUP(library_done) struct library l = {.path = library};
    const char *text = s->daemon.include + strspn(s->daemon.include, " \t");
    int r = *text ? read_library(library, asym_settings_origin(s, "asymd", "include"), &l, err) : 0;
    while (r >= 0 && *text) {
        char name[ASYM_VALUE_MAX + 1];
        const size_t n = strcspn(text, " \t");
        snprintf(name, sizeof name, "%.*s", (int)n, text);
        r = include_group(s, &l, name, err);
        text += n;
        text += strspn(text, " \t");
    }
    return r;
}

int asym_settings_finish(struct asym_settings *s, const char *library, struct asym_error *err)
{
    const int r = include_groups(s, library, err);
    s->rules->unlisted = s->daemon.unlisted ? ASYM_RULE_UNLISTED : ASYM_RULE_STEER;
    return r < 0 ? r : 0;
}
