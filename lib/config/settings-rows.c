/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/settings-rows.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asym/settings-options.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "config/config-internal.h"
#include "config/option-value.h"

/* Makes the table of all options of the sections from the rows of asym/settings-options.h. */

#define IN(section_, part, type_, key_, ...)                                                                           \
    {.section = section_,                                                                                              \
     .key = #key_,                                                                                                     \
     .type = ASYM_OPTION_##type_,                                                                                      \
     .offset = offsetof(struct asym_settings, part.ASYM_FIELD_NAME(key_)),                                             \
     __VA_ARGS__},

#define IN_ASYMD(...)     IN("asymd", daemon, __VA_ARGS__)
#define IN_CLASSIFY(...)  IN("classify", classify, __VA_ARGS__)
#define IN_ENFORCE(...)   IN("enforce", enforce, __VA_ARGS__)
#define IN_COUNTERS(...)  IN("counters", counters, __VA_ARGS__)
#define IN_MACHINE(...)   IN("machine", machine, __VA_ARGS__)
#define IN_RTX(...)       IN("rtx", rtx, __VA_ARGS__)
#define IN_ASYMMETRY(...) IN("asymmetry", asymmetry, __VA_ARGS__)

/* --print-config prints them in this order. */
/* clang-format off */
const struct asym_option asym_options[] = {
    ASYM_OPTIONS_ASYMD(IN_ASYMD)
    ASYM_OPTIONS_CLASSIFY(IN_CLASSIFY)
    ASYM_OPTIONS_ENFORCE(IN_ENFORCE)
    ASYM_OPTIONS_COUNTERS(IN_COUNTERS)
    ASYM_OPTIONS_MACHINE(IN_MACHINE)
    ASYM_OPTIONS_RTX(IN_RTX)
    ASYM_OPTIONS_ASYMMETRY(IN_ASYMMETRY)
    {.section = NULL},
};
/* clang-format on */

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

const char *asym_settings_overridden(const struct asym_settings *s, const char *section, const char *key)
{
    struct asym_row row;
    for (size_t i = 0; asym_row_at(s, i, &row); i++)
        if (strcmp(row.section, section) == 0 && strcmp(row.option->key, key) == 0)
            return s->priv->overridden[i];
    return NULL;
}

bool asym_settings_is_default(const struct asym_settings *s, const char *section, const char *key)
{
    return strcmp(asym_settings_origin(s, section, key), "default") == 0;
}

/* Consider each section once: its rows are adjacent. The caller lists the policies' sections as policy.NAME. */
static void consider_section(struct asym_nearest *n, const struct asym_row *row, const char **last)
{
    if (!row->option->section || (*last && strcmp(*last, row->option->section) == 0))
        return;
    *last = row->option->section;
    asym_nearest_list(n, *last);
}

int asym_section_check(const struct asym_settings *s, const char *section, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = section};
    struct asym_row row;
    char hint[96], shown[96], policies[32][64];
    const char *last = NULL;
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        if (strcmp(row.section, section) == 0)
            return 0;
        consider_section(&n, &row, &last);
    }
    /* No option of this version is in [policy], but the section exists: only its keys are unknown. */
    if (strcmp(section, "policy") == 0)
        return 0;
    asym_nearest_list(&n, "policy");
    asym_nearest_list(&n, "policy.NAME");
    for (size_t p = 0; asym_policy_at(p) && p < ASYM_LENGTH(policies); p++) {
        snprintf(policies[p], sizeof policies[p], "policy.%s", asym_policy_at(p)->name);
        if (strcmp(section, policies[p]) == 0)
            return 0;
        asym_nearest_consider(&n, policies[p]);
    }
    asym_nearest_list(&n, "rule NAME");
    return asym_fail(err, -EINVAL, "unknown section [%s]%s; accepted are %s",
                     asym_text_show(section, shown, sizeof shown), asym_nearest_hint(&n, hint, sizeof hint), n.list);
}

static int unknown_key(const struct asym_settings *s, const char *section, const char *key, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = key};
    struct asym_row row;
    const char *elsewhere = NULL;
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        if (strcmp(row.section, section) == 0)
            asym_nearest_list(&n, row.option->key);
        else if (strcmp(row.option->key, key) == 0 && row.option->section)
            elsewhere = row.option->section;
    }
    return asym_option_unknown(&n, section, elsewhere, err);
}

/* Remembers the value of row i and its origin, which a new origin overrides. Without memory nothing is remembered. */
static void keep_overridden(struct asym_settings *s, size_t i, const struct asym_row *row, const char *origin)
{
    char **kept = &s->priv->overridden[i], *const old = s->priv->origins[i];
    char value[ASYM_MASK_LIST_MAX];
    const bool counts = old && strcmp(old, origin) != 0 && strcmp(old, ASYM_ORIGIN_OF_ORDERS) != 0;
    if (counts) {
        free(*kept);
        if (asprintf(kept, "%s at %s", asym_option_format(row->option, row->base, value, sizeof value), old) < 0)
            *kept = NULL;
    }
    /* An order that is taken back leaves the origin from before it. */
    const char *const at = *kept ? strstr(*kept, " at ") : NULL;
    if (at && strcmp(at + strlen(" at "), origin) == 0) {
        free(*kept);
        *kept = NULL;
    }
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
        keep_overridden(s, i, &row, origin);
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
