/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library of rules: each group is a file of rules for well-known programs. */
#include "config/config-internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/option-value.h"

#define SUFFIX ".conf"

/* The length of the group's name in the name of its file; 0: the file is no group. */
static size_t group_length(const char *file)
{
    const size_t n = strlen(file);
    return file[0] != '.' && n > strlen(SUFFIX) && strcmp(file + n - strlen(SUFFIX), SUFFIX) == 0 ? n - strlen(SUFFIX)
                                                                                                  : 0;
}

static int is_group(const struct dirent *e)
{
    return group_length(e->d_name) > 0;
}

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

static int read_library(const char *path, struct library *ret, struct asym_error *err)
{
    ret->path = path;
    ret->n = scandir(path, &ret->groups, is_group, alphasort);
    if (ret->n < 0) {
        const int error = -errno;
        ret->n = 0;
        ret->groups = NULL;
        return asym_fail(err, -EINVAL, "asymd.include needs the library of rules, which asymd installs: %.200s: %s",
                         path, strerror(-error));
    }
    for (int i = 0; i < ret->n; i++)
        ret->groups[i]->d_name[group_length(ret->groups[i]->d_name)] = '\0';
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
    return asym_settings_load_library(s, path, err);
}

/* A group that is named twice is no mistake: its rules are there already, so all of them are skipped. */
static int include_groups(struct asym_settings *s, const char *library, struct asym_error *err)
{
    ASYM_CLEANUP(library_done) struct library l = {.path = library};
    const char *text = s->daemon.include + strspn(s->daemon.include, " \t");
    int r = *text ? read_library(library, &l, err) : 0;
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
