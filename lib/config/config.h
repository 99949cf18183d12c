/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The option rows, files and rules of the settings: for the files of this room, and for others beside config/settings.h. */
#ifndef ASYM_CONFIG_CONFIG_H
#define ASYM_CONFIG_CONFIG_H

#include <stddef.h>

#include "config/option-value.h"
#include "config/settings.h"

/** Longest name of a rule, in bytes. The reason is that of ASYM_VALUE_MAX. */
#define ASYM_RULE_NAME_MAX 40

/** Rows of the general sections. Their offsets are into struct asym_settings. The last row has section NULL. */
extern const struct asym_option asym_options[];

/** Origins of the values, by row: first the general rows, then those of the policies in their order. */
struct asym_settings_private {
    char **origins;    /**< owned texts; NULL: the default */
    char **overridden; /**< owned texts (asym_settings_overridden); NULL: nothing */
    void **params;     /**< by policy; owned */
    size_t n_rows, n_policies;
};

enum asym_rule_cpus_name {
    ASYM_RULE_CPUS_LISTED,
    ASYM_RULE_CPUS_BIG_CACHE,
    ASYM_RULE_CPUS_HIGH_CLOCK,
    ASYM_N_RULE_CPUS
};

/** A key by which a rule matches, and the field of the process that it matches. */
struct asym_rule_key {
    const char *key;
    size_t subject; /**< offset in struct asym_rule_subject; SIZE_MAX: the user ID */
    unsigned need;  /**< ASYM_RULE_NEEDS_* */
};

/** In the order of asym_rule.match. */
extern const struct asym_rule_key asym_rule_keys[ASYM_RULE_MATCHES];

struct asym_rule {
    char *name, *origin;
    char *match[ASYM_RULE_MATCHES];     /**< globs or user IDs, separated by spaces, as written; NULL: not tested */
    int action, nice, policy_class;     /**< as given; below -20: not given */
    enum asym_rule_cpus_name cpus_name; /**< facts.cpus are those of this machine that are so called */
    struct asym_rule_facts facts;
};

struct asym_rules {
    struct asym_rule *rules;
    size_t n, capacity;
    struct asym_mask slow;          /**< the slow CPUs of the machine; empty: it is not known, or has none */
    enum asym_rule_action unlisted; /**< for a process that no rule matches: STEER or UNLISTED */
};

void asym_rules_free(struct asym_rules *rules);
/** Returns the rule of that name; NULL: none. */
const struct asym_rule *asym_rules_named(const struct asym_rules *rules, const char *name);
/** Append a rule. Returns 0; -EINVAL with err: a rule has that name, or the name is too long; -ENOMEM with err. */
int asym_rules_add(struct asym_rules *rules, const char *name, const char *origin, struct asym_error *err);
/** Set a key of the newest rule. Returns 0; -EINVAL, -ENOMEM with err; -EEXIST with err: the rule has that key already. */
int asym_rules_set(struct asym_rules *rules, const char *key, const char *value, struct asym_error *err);
/** Check that every rule has a match and an effect. Returns 0; -EINVAL with err. */
int asym_rules_check(const struct asym_rules *rules, struct asym_error *err);
/** Behind the origin of a rule of the library, where rules are printed. */
#define ASYM_ORIGIN_IN_LIBRARY " (library)"
void asym_rules_print(const struct asym_rules *rules, FILE *out);

/** settings-load.c: read a file of at most 1 MiB. The caller frees *ret_text, which ends with NUL. Returns 0; -errno with err. */
int asym_ini_file(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err);

/** Print a configuration that changes nothing: every option commented out, with its default, help and range. */
int asym_settings_print_sample(FILE *out);

/*
 * Rules that name CPUs by what they are: those of the largest cache, or of the highest clock. They differ from machine to machine,
 * so a rule gets them after the machine was read.
 */

/**
 * Gives the CPUs of this machine to the rules that name them. Rules that name CPUs of an empty mask name none. Returns how many
 * rules do that. slow: a list of these CPUs alone lends nothing (asym_rule_view.lends_to_anyone).
 */
size_t asym_rules_name_cpus(struct asym_rules *rules, const struct asym_mask *big_cache,
                            const struct asym_mask *high_clock, const struct asym_mask *slow);

/** Returns 0 when the section exists; -EINVAL with err, without FILE:LINE. Does not know the sections of rules. */
int asym_section_check(const struct asym_settings *s, const char *section, struct asym_error *err);

/** Set a key. *ret_row is its row; ret_row may be NULL. Returns 0; -EINVAL, -ENOMEM with err, without FILE:LINE. */
int asym_settings_assign(struct asym_settings *s, const char *section, const char *key, const char *value,
                         const char *origin, size_t *ret_row, struct asym_error *err);

#endif
