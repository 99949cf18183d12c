/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/settings-rows.h"

void asym_settings_free(struct asym_settings *s)
{
    struct asym_row row;
    if (!s || !s->priv) {
        free(s);
        return;
    }
    for (size_t i = 0; i < s->priv->n_rows && asym_row_at(s, i, &row); i++) {
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
    s->rules = asym_rules_new();
    priv->params = calloc(n + 1, sizeof(void *));
    if (!s->rules || !priv->params)
        return -ENOMEM;
    for (; priv->n_policies < n; priv->n_policies++)
        if (!(priv->params[priv->n_policies] = calloc(1, asym_policy_at(priv->n_policies)->params_size + 1)))
            return -ENOMEM;
    n = 0;
    while (asym_row_at(s, n, &row))
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
    for (size_t i = 0; r >= 0 && asym_row_at(s, i, &row); i++)
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
