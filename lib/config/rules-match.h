/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Rules that name CPUs by what they are: those of the largest cache, or of the highest clock. They differ from machine to machine,
 * so a rule gets them after the machine was read.
 */
#ifndef ASYM_CONFIG_RULES_MATCH_H
#define ASYM_CONFIG_RULES_MATCH_H

#include <stddef.h>

#include <asym/settings.h>

enum asym_rule_cpus_name {
    ASYM_RULE_CPUS_LISTED,
    ASYM_RULE_CPUS_BIG_CACHE,
    ASYM_RULE_CPUS_HIGH_CLOCK,
    ASYM_N_RULE_CPUS
};

/** Returns "big-cache" or "high-clock"; "" for a list. Static. */
const char *asym_rule_cpus_name(enum asym_rule_cpus_name name);

/** Returns the value of that name; ASYM_RULE_CPUS_LISTED: it is none of these names. */
enum asym_rule_cpus_name asym_rule_cpus_named(const char *text);

/**
 * Gives the CPUs of this machine to the rules that name them. Rules that name CPUs of an empty mask name none. Returns how many
 * rules do that. slow: a list of these CPUs alone lends nothing (asym_rule_view.lends_to_anyone).
 */
size_t asym_rules_name_cpus(struct asym_rules *rules, const struct asym_mask *big_cache,
                            const struct asym_mask *high_clock, const struct asym_mask *slow);

#endif
