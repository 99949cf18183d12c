/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "core/machine-situation.h"
#include "report/json.h"

/* Writes "can run here", or why the policy cannot. If the policy itself refuses, its signals do not matter. */
static const char *describe_ability(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS],
                                    char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    if (asym_policy_can_run(policy, missing))
        asym_text_add(&text, "can run here");
    if (policy->refuses)
        asym_text_add(&text, "cannot run here: %s", policy->refuses);
    enum asym_signal k = policy->refuses ? ASYM_N_SIGNALS : asym_policy_lacks(policy, missing, 0);
    for (; k < ASYM_N_SIGNALS; k = asym_policy_lacks(policy, missing, k + 1))
        asym_text_add(&text, "%s %s: %s", text.used ? ";" : "cannot run here:", asym_signal_name(k), missing[k]);
    return buf;
}

static void print_policy(const struct asym_policy *p, const char *const missing[ASYM_N_SIGNALS], size_t width,
                         const struct asym_terminal *terminal)
{
    FILE *out = terminal->out;
    char needs[128], text[1024], can[512];
    /* Every policy gets the number of runnable threads. */
    struct asym_text names = asym_text_in(needs, sizeof needs);
    asym_text_add(&names, "%s", asym_signal_name(ASYM_SIGNAL_RUNNABLE));
    for (int k = ASYM_SIGNAL_RUNNABLE + 1; k < ASYM_N_SIGNALS; k++)
        if (p->needs >> k & 1)
            asym_text_add(&names, ", %s", asym_signal_name((enum asym_signal)k));
    asym_columns_cell(out, p->name, width, NULL);
    asym_columns_wrap(terminal, p->summary, width, width);
    snprintf(text, sizeof text, "%s; needs %s; pin %s; %s", p->source, needs, asym_pin_name(p->pin),
             describe_ability(p, missing, can, sizeof can));
    fprintf(out, "\n%*s", (int)width, "");
    asym_columns_line(terminal, text, width, width);
}

static const char legend[] =
    "Signals are what a policy measures: runnable, the threads that run or wait for a CPU; ipc, instructions per "
    "cycle; stall, misses of the last-level cache; profile, what asymctl profile has measured; smt, cores with several "
    "hardware threads. pin is the mask that a thread gets: one CPU (cpu), the CPUs of a last-level cache (llc), or "
    "those of a core type (type); or each thread's own width (each).";

int asym_policies_text(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       const struct asym_terminal *terminal)
{
    FILE *out = terminal->out;
    size_t width = 0;
    for (size_t i = 0; i < n; i++)
        width = ASYM_MAX(width, strlen(policies[i]->name) + 2);
    for (size_t i = 0; i < n; i++)
        print_policy(policies[i], missing, width, terminal);
    fputc('\n', out);
    asym_columns_line(terminal, legend, 0, 0);
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
                                   (int)asym_policy_can_run(p, missing), "refuses", p->refuses, "missing", lacks));
    }
    return asym_json_print(json_pack("{s:s, s:o}", "schema", "asymd.policies/1", "policies", list), out);
}
