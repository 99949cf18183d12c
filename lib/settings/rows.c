/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings/rows.h"

#include <stdio.h>

#include "settings/internal.h"

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
