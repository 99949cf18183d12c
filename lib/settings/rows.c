/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings/rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "settings/internal.h"
#include "settings/nearest.h"

bool asym_row_at(const struct asym_settings *s, size_t i, struct asym_row *ret)
{
    for (const struct asym_option *o = asym_options; o->section; o++, i--) {
        if (i == 0) {
            *ret = (struct asym_row){.option = o, .base = (void *)(uintptr_t)s};
            snprintf(ret->section, sizeof ret->section, "%s", o->section);
            return true;
        }
    }
    for (size_t p = 0; p < s->priv->n_policies; p++) {
        const struct asym_policy *policy = asym_policy_at(p);
        for (const struct asym_option *o = policy->options; o && o->key; o++, i--) {
            if (i == 0) {
                *ret = (struct asym_row){.option = o, .base = s->priv->params[p]};
                snprintf(ret->section, sizeof ret->section, "policy.%s", policy->name);
                return true;
            }
        }
    }
    return false;
}

const char *asym_settings_origin(const struct asym_settings *s, const char *section, const char *key)
{
    struct asym_row row;
    for (size_t i = 0; asym_row_at(s, i, &row); i++)
        if (strcmp(row.section, section) == 0 && strcmp(row.option->key, key) == 0 && s->priv->origins[i])
            return s->priv->origins[i];
    return "default";
}

/* Sections of the design that hold no option of this version: a key there is unknown, the section is not. */
static const char *const empty[] = {"policy"};

int asym_section_check(const struct asym_settings *s, const char *section, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = section};
    struct asym_row row;
    char hint[96], shown[96], policies[32][64];
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        if (strcmp(row.section, section) == 0)
            return 0;
        if (row.option->section)
            asym_nearest_consider(&n, row.option->section);
    }
    for (size_t i = 0; i < ASYM_LENGTH(empty); i++) {
        if (strcmp(section, empty[i]) == 0)
            return 0;
        asym_nearest_consider(&n, empty[i]);
    }
    for (size_t p = 0; asym_policy_at(p) && p < ASYM_LENGTH(policies); p++) {
        snprintf(policies[p], sizeof policies[p], "policy.%s", asym_policy_at(p)->name);
        if (strcmp(section, policies[p]) == 0)
            return 0;
        asym_nearest_consider(&n, policies[p]);
    }
    asym_nearest_consider(&n, "rule NAME");
    return asym_fail(
        err, -EINVAL,
        "unknown section [%s]%s; accepted are asymd, classify, policy, policy.NAME, enforce, machine, asymmetry, "
        "counters, rule NAME",
        asym_text_escape(section, strlen(section), shown, sizeof shown), asym_nearest_hint(&n, hint, sizeof hint));
}

static int unknown_key(const struct asym_settings *s, const char *section, const char *key, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = key};
    struct asym_row row;
    char hint[128], shown[128], list[512] = "";
    const char *elsewhere = NULL;
    size_t used = 0;
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        if (strcmp(row.section, section) == 0) {
            asym_nearest_consider(&n, row.option->key);
            if (used < sizeof list)
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", row.option->key);
        } else if (strcmp(row.option->key, key) == 0 && row.option->section) {
            elsewhere = row.option->section;
        }
    }
    asym_nearest_hint(&n, hint, sizeof hint);
    if (elsewhere)
        snprintf(hint, sizeof hint, "; it belongs in [%s]", elsewhere);
    return asym_fail(err, -EINVAL, "unknown key '%s' in [%s]%s; accepted here %s%s",
                     asym_text_escape(key, strlen(key), shown, sizeof shown), section, hint, used ? "are " : "is none",
                     list);
}

int asym_settings_assign(struct asym_settings *s, const char *section, const char *key, const char *value,
                         const char *origin, size_t *ret_row, struct asym_error *err)
{
    struct asym_row row;
    int r = asym_section_check(s, section, err);
    if (r < 0)
        return r;
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        if (strcmp(row.section, section) != 0 || strcmp(row.option->key, key) != 0)
            continue;
        char *copy = strdup(origin);
        r = copy ? asym_option_parse(row.option, section, row.base, value, err) : asym_fail(err, -ENOMEM, "no memory");
        if (r < 0) {
            free(copy);
            return r;
        }
        free(s->priv->origins[i]);
        s->priv->origins[i] = copy;
        if (ret_row)
            *ret_row = i;
        return 0;
    }
    return unknown_key(s, section, key, err);
}
