/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/rules-cpus.h"

#include <string.h>

#include "base/mask.h"
#include "config/config-internal.h"

static const char *const names[ASYM_N_RULE_CPUS] = {
    [ASYM_RULE_CPUS_LISTED] = "",
    [ASYM_RULE_CPUS_BIG_CACHE] = "big-cache",
    [ASYM_RULE_CPUS_HIGH_CLOCK] = "high-clock",
};

const char *asym_rule_cpus_name(enum asym_rule_cpus_name name)
{
    return names[name];
}

enum asym_rule_cpus_name asym_rule_cpus_named(const char *text)
{
    int name = ASYM_N_RULE_CPUS - 1;
    while (name > 0 && strcmp(names[name], text) != 0)
        name--;
    return (enum asym_rule_cpus_name)name;
}

size_t asym_rules_name_cpus(struct asym_rules *rules, const struct asym_mask *big_cache,
                            const struct asym_mask *high_clock, const struct asym_mask *slow)
{
    size_t n_without = 0;
    if (rules)
        rules->slow = *slow;
    for (size_t i = 0; rules && i < rules->n; i++) {
        struct asym_rule *rule = &rules->rules[i];
        if (rule->cpus_name == ASYM_RULE_CPUS_LISTED)
            continue;
        rule->facts.cpus = rule->cpus_name == ASYM_RULE_CPUS_BIG_CACHE ? *big_cache : *high_clock;
        n_without += asym_mask_empty(&rule->facts.cpus);
    }
    return n_without;
}
