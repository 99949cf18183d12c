/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/policy-select.h"

#include <stddef.h>
#include <string.h>

struct asym_policy_choice asym_policy_select(const char *name, const struct asym_policy_facts *facts)
{
    /* The first row that fits wins. */
    const struct {
        bool fits;
        const char *policy, *why;
    } choices[] = {
        {facts->alike != NULL, "none", facts->alike},
        {facts->missing[ASYM_SIGNAL_RUNNABLE] != NULL, "busyfcs",
         "this kernel cannot tell serial from parallel programs"},
        {facts->kernel_knows, "asym",
         "the kernel gives busy threads idle fast CPUs itself; where these are short, the threads that are waited for "
         "most get them"},
        {true, "asym", "CPUs differ in speed, and the threads that are waited for most gain from the fast ones"},
    };
    size_t i = 0;
    if (strcmp(name, "auto") != 0)
        return (struct asym_policy_choice){.policy = asym_policy_find(name)};
    while (!choices[i].fits)
        i++;
    return (struct asym_policy_choice){.policy = asym_policy_find(choices[i].policy), .why = choices[i].why};
}

enum asym_signal asym_policy_lacks(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS],
                                   enum asym_signal from)
{
    unsigned k = from;
    while (k < ASYM_N_SIGNALS && !(policy->needs >> k & 1 && missing[k]))
        k++;
    return (enum asym_signal)k;
}

bool asym_policy_can_run(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS])
{
    return !policy->refuses && asym_policy_lacks(policy, missing, 0) == ASYM_N_SIGNALS;
}
