/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "settings/rows.h"

void asym_settings_free(struct asym_settings *s)
{
    struct asym_row row;
    if (!s)
        return;
    for (size_t i = 0; s->priv && asym_row_at(s, i, &row); i++) {
        asym_option_done(row.option, row.base);
        free(s->priv->origins[i]);
    }
    for (size_t p = 0; s->priv && p < s->priv->n_policies; p++)
        free(s->priv->params[p]);
    if (s->priv) {
        free(s->priv->params);
        free(s->priv->origins);
    }
    free(s->priv);
    asym_rules_free(s->rules);
    free(s);
}

/* All containers, zeroed: every text is NULL, so that freeing is safe at any point. */
static struct asym_settings *allocate(void)
{
    struct asym_settings *s = calloc(1, sizeof *s);
    struct asym_settings_private *priv = calloc(1, sizeof *priv);
    if (!s || !priv) {
        free(s);
        free(priv);
        return NULL;
    }
    s->priv = priv;
    s->rules = asym_rules_new();
    while (asym_policy_at(priv->n_policies))
        priv->n_policies++;
    priv->params = calloc(priv->n_policies + 1, sizeof(void *));
    for (size_t p = 0; priv->params && p < priv->n_policies; p++)
        if (!(priv->params[p] = calloc(1, asym_policy_at(p)->params_size + 1)))
            priv->n_policies = p;
    struct asym_row row;
    while (priv->params && asym_row_at(s, priv->n_rows, &row))
        priv->n_rows++;
    priv->origins = calloc(priv->n_rows + 1, sizeof(char *));
    if (!s->rules || !priv->params || !priv->origins || asym_policy_at(priv->n_policies)) {
        asym_settings_free(s);
        return NULL;
    }
    return s;
}

int asym_settings_new(struct asym_settings **ret_settings)
{
    struct asym_row row;
    struct asym_settings *s = allocate();
    if (!s)
        return -ENOMEM;
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        int r = asym_option_parse(row.option, row.section, row.base, row.option->def, NULL);
        if (r < 0) {
            asym_settings_free(s);
            return r;
        }
    }
    *ret_settings = s;
    return 0;
}

int asym_settings_copy(const struct asym_settings *from, struct asym_settings **ret_copy)
{
    char text[1024];
    struct asym_row row, old;
    struct asym_settings *s;
    int r = asym_settings_new(&s);
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && asym_row_at(s, i, &row); i++) {
        asym_row_at(from, i, &old);
        r = asym_option_parse(row.option, row.section, row.base,
                              asym_option_format(old.option, old.base, text, sizeof text), NULL);
        if (r >= 0 && from->priv->origins[i] && !(s->priv->origins[i] = strdup(from->priv->origins[i])))
            r = -ENOMEM;
    }
    struct asym_rules *rules = asym_rules_copy(from->rules);
    if (!rules || r < 0) {
        asym_rules_free(rules);
        asym_settings_free(s);
        return r < 0 ? r : -ENOMEM;
    }
    asym_rules_free(s->rules);
    s->rules = rules;
    *ret_copy = s;
    return 0;
}

void asym_settings_swap(struct asym_settings *a, struct asym_settings *b)
{
    struct asym_settings swap = *a;
    *a = *b;
    *b = swap;
}

/* Write the nearest of the known words into buf as ", did you mean X?"; nothing when none is near. */
struct nearest {
    const char *wanted, *best;
    unsigned distance;
};

static void consider(struct nearest *n, const char *word)
{
    unsigned d = asym_text_distance(n->wanted, word);
    if (!n->best || d < n->distance) {
        n->best = word;
        n->distance = d;
    }
}

static const char *hint(const struct nearest *n, char *buf, size_t size)
{
    buf[0] = '\0';
    if (n->best && n->distance <= 2 + strlen(n->best) / 4)
        snprintf(buf, size, "; did you mean '%s'?", n->best);
    return buf;
}

static int unknown_section(const struct asym_settings *s, const char *section, struct asym_error *err)
{
    struct nearest n = {.wanted = section};
    struct asym_row row;
    char text[128], shown[128];
    for (size_t i = 0; asym_row_at(s, i, &row); i++)
        consider(&n, row.section);
    return asym_fail(err, -EINVAL,
                     "unknown section [%s]%s; accepted are asymd, classify, enforce, asymmetry, policy.NAME, rule NAME",
                     asym_text_escape(section, strlen(section), shown, sizeof shown), hint(&n, text, sizeof text));
}

static bool is_section(const struct asym_settings *s, const char *section)
{
    static const char *const empty[] = {"counters", "policy"};
    struct asym_row row;
    for (size_t i = 0; asym_row_at(s, i, &row); i++)
        if (strcmp(row.section, section) == 0)
            return true;
    for (size_t i = 0; i < ASYM_LENGTH(empty); i++)
        if (strcmp(section, empty[i]) == 0)
            return true;
    return strncmp(section, "policy.", 7) == 0 && asym_policy_find(section + 7);
}

static int unknown_key(const struct asym_settings *s, const char *section, const char *key, struct asym_error *err)
{
    struct nearest n = {.wanted = key};
    struct asym_row row;
    char text[128], shown[128], list[512] = "";
    size_t used = 0;
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        if (strcmp(row.section, section) != 0)
            continue;
        consider(&n, row.option->key);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", row.option->key);
    }
    return asym_fail(err, -EINVAL, "unknown key '%s' in [%s]%s; accepted are %s",
                     asym_text_escape(key, strlen(key), shown, sizeof shown), section, hint(&n, text, sizeof text),
                     used ? list : "none");
}

int asym_settings_assign(struct asym_settings *s, const char *section, const char *key, const char *value,
                         const char *origin, size_t *ret_row, struct asym_error *err)
{
    struct asym_row row;
    if (!is_section(s, section))
        return unknown_section(s, section, err);
    for (size_t i = 0; asym_row_at(s, i, &row); i++) {
        if (strcmp(row.section, section) != 0 || strcmp(row.option->key, key) != 0)
            continue;
        char *copy = strdup(origin);
        int r = copy ? asym_option_parse(row.option, section, row.base, value, err) : -ENOMEM;
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

int asym_settings_set(struct asym_settings *s, const char *assignment, const char *origin, struct asym_error *err)
{
    const char *equals = strchr(assignment, '=');
    const char *dot = equals ? memrchr(assignment, '.', (size_t)(equals - assignment)) : NULL;
    char shown[128];
    if (!dot || dot == assignment || dot + 1 == equals)
        return asym_fail(err, -EINVAL, "%s: '%s' is not SECTION.KEY=VALUE", origin,
                         asym_text_escape(assignment, strlen(assignment), shown, sizeof shown));
    ASYM_AUTO_FREE char *section = strndup(assignment, (size_t)(dot - assignment));
    ASYM_AUTO_FREE char *key = strndup(dot + 1, (size_t)(equals - dot - 1));
    struct asym_error why = {""};
    if (!section || !key)
        return asym_fail(err, -ENOMEM, "no memory");
    int r = asym_settings_assign(s, section, key, equals + 1, origin, NULL, &why);
    return r < 0 ? asym_fail(err, r, "%s: %.900s", origin, why.text) : 0;
}

static int check_policy(const struct asym_settings *s, struct asym_error *err)
{
    struct nearest n = {.wanted = s->daemon.policy};
    char list[512] = "", text[128], shown[128];
    size_t used = 0;
    if (asym_policy_find(s->daemon.policy))
        return 0;
    for (size_t i = 0; asym_policy_at(i); i++) {
        consider(&n, asym_policy_at(i)->name);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", asym_policy_at(i)->name);
    }
    return asym_fail(err, -EINVAL, "asymd.policy: there is no policy '%s'%s; accepted are %s",
                     asym_text_escape(s->daemon.policy, strlen(s->daemon.policy), shown, sizeof shown),
                     hint(&n, text, sizeof text), list);
}

static int check_slow_speed(const struct asym_settings *s, struct asym_error *err)
{
    const char *text = s->asymmetry.slow_speed;
    size_t len = strlen(text);
    double percent;
    if (len < 2 || text[len - 1] != '%' || asym_parse_number(text, len - 1, &percent) < 0 ||
        !(percent > 0 && percent <= 100))
        return asym_fail(
            err, -EINVAL,
            "asymmetry.slow_speed: '%.64s' is not accepted; accepted is a share such as 50%%, above 0%% and "
            "up to 100%%",
            text);
    return 0;
}

int asym_settings_check(const struct asym_settings *s, struct asym_error *err)
{
    int r = check_policy(s, err);
    if (r >= 0)
        r = check_slow_speed(s, err);
    if (r >= 0 && s->daemon.state_dir[0] != '/')
        r = asym_fail(err, -EINVAL, "asymd.state_dir: '%.64s' is not accepted; accepted is an absolute path",
                      s->daemon.state_dir);
    return r < 0 ? r : asym_rules_check(s->rules, err);
}

const void *asym_settings_params(const struct asym_settings *s, const struct asym_policy *policy)
{
    for (size_t p = 0; p < s->priv->n_policies; p++)
        if (asym_policy_at(p) == policy)
            return policy->params_size ? s->priv->params[p] : NULL;
    return NULL;
}

int asym_settings_each(const struct asym_settings *s,
                       int (*fn)(void *ctx, const char *section, const struct asym_option *row, const char *value,
                                 const char *origin),
                       void *ctx)
{
    struct asym_row row;
    char text[8192];
    int r = 0;
    for (size_t i = 0; r == 0 && asym_row_at(s, i, &row); i++)
        r = fn(ctx, row.section, row.option, asym_option_format(row.option, row.base, text, sizeof text),
               s->priv->origins[i] ? s->priv->origins[i] : "default");
    return r;
}

struct print {
    FILE *out;
    char section[128];
};

static int print_row(void *ctx, const char *section, const struct asym_option *row, const char *value,
                     const char *origin)
{
    struct print *p = ctx;
    if (strcmp(p->section, section) != 0) {
        fprintf(p->out, "%s[%s]\n", *p->section ? "\n" : "", section);
        snprintf(p->section, sizeof p->section, "%s", section);
    }
    fprintf(p->out, "%s = %s  ; %s\n", row->key, value, origin);
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
