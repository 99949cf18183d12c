/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config.h"

#include <asym/settings-options.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

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

/* All options by index: first those of the sections, then those of each policy. */
struct asym_row {
    const struct asym_option *option;
    void *base; /* the offset of option is into base */
    char section[64];
};

/* Gets row i of s. Returns false after the last row. */
static bool row_at(const struct asym_settings *s, size_t i, struct asym_row *ret)
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

void asym_settings_free(struct asym_settings *s)
{
    struct asym_row row;
    if (!s || !s->priv) {
        free(s);
        return;
    }
    for (size_t i = 0; i < s->priv->n_rows && row_at(s, i, &row); i++) {
        asym_option_done(row.option, row.base);
        free(s->priv->origins[i]);
        free(s->priv->overridden[i]);
    }
    for (size_t p = 0; p < s->priv->n_policies; p++)
        free(s->priv->params[p]);
    free(s->priv->params);
    free(s->priv->origins);
    free(s->priv->overridden);
    free(s->priv);
    asym_rules_free(s->rules);
    free(s);
}

/* n_policies and n_rows count what is allocated: asym_settings_free is safe at any point. */
static int fill(struct asym_settings *s)
{
    struct asym_settings_private *priv = s->priv;
    struct asym_row row;
    size_t n = 0;
    while (asym_policy_at(n))
        n++;
    s->rules = calloc(1, sizeof *s->rules);
    priv->params = calloc(n + 1, sizeof(void *));
    if (!s->rules || !priv->params)
        return -ENOMEM;
    for (; priv->n_policies < n; priv->n_policies++)
        if (!(priv->params[priv->n_policies] = calloc(1, asym_policy_at(priv->n_policies)->params_size + 1)))
            return -ENOMEM;
    n = 0;
    while (row_at(s, n, &row))
        n++;
    priv->origins = calloc(n + 1, sizeof(char *));
    priv->overridden = calloc(n + 1, sizeof(char *));
    if (!priv->origins || !priv->overridden)
        return -ENOMEM;
    priv->n_rows = n;
    return 0;
}

int asym_settings_new(struct asym_settings **ret_settings)
{
    struct asym_settings *s = calloc(1, sizeof *s);
    struct asym_row row;
    int r = s && (s->priv = calloc(1, sizeof *s->priv)) ? fill(s) : -ENOMEM;
    for (size_t i = 0; r >= 0 && row_at(s, i, &row); i++)
        r = asym_option_default(row.option, row.section, row.base);
    if (r >= 0)
        *ret_settings = s;
    else
        asym_settings_free(s);
    return r < 0 ? r : 0;
}

static char *trimmed(const char *text, size_t len)
{
    while (len > 0 && (text[0] == ' ' || text[0] == '\t')) {
        text++;
        len--;
    }
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    return strndup(text, len);
}

int asym_settings_set(struct asym_settings *s, const char *assignment, const char *origin, struct asym_error *err)
{
    const char *equals = strchr(assignment, '=');
    const char *dot = equals ? memrchr(assignment, '.', (size_t)(equals - assignment)) : NULL;
    char shown[128];
    if (!dot || dot == assignment || dot + 1 == equals)
        return asym_fail(err, -EINVAL, "%s: '%s' is not accepted; accepted is SECTION.KEY=VALUE", origin,
                         asym_text_show(assignment, shown, sizeof shown));
    ASYM_AUTO_FREE char *section = trimmed(assignment, (size_t)(dot - assignment));
    ASYM_AUTO_FREE char *key = trimmed(dot + 1, (size_t)(equals - dot - 1));
    ASYM_AUTO_FREE char *value = trimmed(equals + 1, strlen(equals + 1));
    struct asym_error why = {""};
    if (!section || !key || !value)
        return asym_fail(err, -ENOMEM, "no memory");
    int r = asym_settings_assign(s, section, key, value, origin, NULL, &why);
    return r < 0 ? asym_fail(err, r, "%s: %.900s", origin, why.text) : 0;
}

const void *asym_settings_params(const struct asym_settings *s, const struct asym_policy *policy)
{
    for (size_t p = 0; p < s->priv->n_policies; p++)
        if (asym_policy_at(p) == policy)
            return policy->params_size ? s->priv->params[p] : NULL;
    return NULL;
}

struct asym_engine_config asym_settings_engine_config(const struct asym_settings *s, const struct asym_policy *policy)
{
    return (struct asym_engine_config){
        .policy = policy, .params = asym_settings_params(s, policy), .classify = s->classify, .enforce = s->enforce};
}

const char *asym_settings_origin(const struct asym_settings *s, const char *section, const char *key)
{
    struct asym_row row;
    for (size_t i = 0; row_at(s, i, &row); i++)
        if (strcmp(row.section, section) == 0 && strcmp(row.option->key, key) == 0 && s->priv->origins[i])
            return s->priv->origins[i];
    return "default";
}

const char *asym_settings_overridden(const struct asym_settings *s, const char *section, const char *key)
{
    struct asym_row row;
    for (size_t i = 0; row_at(s, i, &row); i++)
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
    for (size_t i = 0; row_at(s, i, &row); i++) {
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
    for (size_t i = 0; row_at(s, i, &row); i++) {
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
    for (size_t i = 0; row_at(s, i, &row); i++) {
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

int asym_settings_each(const struct asym_settings *s,
                       int (*fn)(void *ctx, const char *section, const struct asym_option *row, const char *value,
                                 const char *origin),
                       void *ctx)
{
    struct asym_row row;
    char text[ASYM_MASK_LIST_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && row_at(s, i, &row); i++)
        r = fn(ctx, row.section, row.option, asym_option_format(row.option, row.base, text, sizeof text),
               s->priv->origins[i] ? s->priv->origins[i] : "default");
    return r;
}

struct print {
    FILE *out;
    char section[64];
};

static void enter_section(struct print *p, const char *section)
{
    if (strcmp(p->section, section) == 0)
        return;
    fprintf(p->out, "%s[%s]\n", *p->section ? "\n" : "", section);
    snprintf(p->section, sizeof p->section, "%s", section);
}

static int print_row(void *ctx, const char *section, const struct asym_option *row, const char *value,
                     const char *origin)
{
    struct print *p = ctx;
    enter_section(p, section);
    fprintf(p->out, "%s =%s%s ; %s\n", row->key, *value ? " " : "", value, origin);
    return ferror(p->out) ? -EIO : 0;
}

int asym_settings_print(const struct asym_settings *s, FILE *out)
{
    struct print p = {.out = out};
    int r = asym_settings_each(s, print_row, &p);
    if (r < 0)
        return r;
    asym_rules_print(s->rules, out);
    return ferror(out) ? -EIO : 0;
}

static int print_sample_row(void *ctx, const char *section, const struct asym_option *row, const char *value,
                            const char *origin)
{
    struct print *p = ctx;
    char accepted[256];
    enter_section(p, section);
    fprintf(p->out, "# %s\n", row->help);
    if (row->type != ASYM_OPTION_TEXT)
        fprintf(p->out, "# Accepted: %s.\n", asym_option_accepted(row, accepted, sizeof accepted));
    fprintf(p->out, ";%s =%s%s\n", row->key, *value ? " " : "", value);
    return ferror(p->out) ? -EIO : 0;
}

int asym_settings_print_sample(FILE *out)
{
    struct print p = {.out = out};
    struct asym_settings *s;
    int r = asym_settings_new(&s);
    if (r < 0)
        return r;
    fputs("# Configuration of asymd: see asymd.conf(5).\n"
          "# This file lists every option with its default, commented out. Rules go here or into rules.d/*.conf.\n\n",
          out);
    r = asym_settings_each(s, print_sample_row, &p);
    asym_settings_free(s);
    if (r < 0)
        return r;
    fputs("\n# Rules for single processes. The first rule that matches applies.\n"
          ";[rule \"compilers\"]\n"
          ";match_comm = cc1 cc1plus rustc\n"
          ";action = steer\n",
          out);
    return ferror(out) ? -EIO : 0;
}
