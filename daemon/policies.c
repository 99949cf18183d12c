/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/policies.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "daemon/columns.h"
#include "daemon/json.h"

bool asym_policies_can_run(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS])
{
    bool can = !policy->refuses;
    for (int k = 0; k < ASYM_N_SIGNALS; k++)
        can = can && !(policy->needs >> k & 1 && missing[k]);
    return can;
}

/* "can run here", or what speaks against it: its row alone, as no signal would help. */
static const char *verdict(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS], char *buf,
                           size_t size)
{
    size_t used = 0;
    snprintf(buf, size, policy->refuses ? "cannot run here: %s" : "can run here%s",
             policy->refuses ? policy->refuses : "");
    for (int k = 0; k < ASYM_N_SIGNALS && !policy->refuses; k++) {
        if (!(policy->needs >> k & 1) || !missing[k])
            continue;
        int n = snprintf(buf + used, size - used, "%s %s: %s",
                         used ? ";" : "cannot run here:", asym_signal_name((enum asym_signal)k), missing[k]);
        if (n > 0 && (size_t)n < size - used)
            used += (size_t)n;
    }
    return buf;
}

static void print_policy(const struct asym_policy *p, const char *const missing[ASYM_N_SIGNALS], size_t width,
                         FILE *out)
{
    char needs[128], text[1024], can[512];
    /* Runnable counts are what every policy gets. */
    size_t used = (size_t)snprintf(needs, sizeof needs, "%s", asym_signal_name(ASYM_SIGNAL_RUNNABLE));
    for (int k = ASYM_SIGNAL_RUNNABLE + 1; k < ASYM_N_SIGNALS; k++)
        if (p->needs >> k & 1)
            used += (size_t)snprintf(needs + used, sizeof needs - used, ", %s", asym_signal_name((enum asym_signal)k));
    asym_columns_cell(out, p->name, width, NULL);
    asym_columns_wrap(out, p->summary, width, width);
    snprintf(text, sizeof text, "%s; needs %s; pin %s; %s", p->source, needs, asym_pin_name(p->pin),
             verdict(p, missing, can, sizeof can));
    fprintf(out, "\n%*s", (int)width, "");
    asym_columns_wrap(out, text, width, width);
    fputc('\n', out);
}

int asym_policies_text(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       FILE *out)
{
    size_t width = 0;
    for (size_t i = 0; i < n; i++)
        width = ASYM_MAX(width, strlen(policies[i]->name) + 2);
    for (size_t i = 0; i < n; i++)
        print_policy(policies[i], missing, width, out);
    return ferror(out) ? -EIO : 0;
}

int asym_policies_json(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       FILE *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct asym_policy *p = policies[i];
        json_t *needs = json_array(), *lacks = json_array();
        for (int k = 0; k < ASYM_N_SIGNALS; k++) {
            const char *name = asym_signal_name((enum asym_signal)k);
            if (!(p->needs >> k & 1))
                continue;
            asym_json_append(&needs, json_string(name));
            if (missing[k])
                asym_json_append(&lacks, json_pack("{s:s, s:s}", "name", name, "why", missing[k]));
        }
        asym_json_append(&list,
                         json_pack("{s:s, s:s, s:s, s:o, s:s, s:b, s:s?, s:o}", "name", p->name, "summary", p->summary,
                                   "source", p->source, "needs", needs, "pin", asym_pin_name(p->pin), "can_run",
                                   (int)asym_policies_can_run(p, missing), "refuses", p->refuses, "missing", lacks));
    }
    return asym_json_print(json_pack("{s:s, s:o}", "schema", "asymd.policies/1", "policies", list), out);
}
