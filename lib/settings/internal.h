/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The insides of the settings: option rows, values by row, rules. */
#ifndef ASYM_SETTINGS_INTERNAL_H
#define ASYM_SETTINGS_INTERNAL_H

#include <asym/settings.h>

#include "settings/ini.h"

/**
 * Longest value and longest name of a rule, in bytes. inih cuts lines of 200 bytes without a word: with these limits
 * everything that can be set can also be printed on a line that is read back whole.
 */
#define ASYM_VALUE_MAX     ASYM_INI_VALUE_MAX
#define ASYM_RULE_NAME_MAX 40

/** Rows of the general sections; their offsets are into struct asym_settings. Ends with section NULL. */
extern const struct asym_option asym_options[];

/** Where a value came from, by row: the general rows first, then the policies' in their order. */
struct asym_settings_private {
    char **origins; /**< owned texts; NULL: default */
    void **params;  /**< by policy; owned */
    size_t n_rows, n_policies;
};

struct asym_rule {
    char *name, *origin;
    char *comm, *exe, *cgroup, *cmdline; /**< globs, separated by spaces; NULL: not asked */
    char *uid;
    int action; /**< enum asym_rule_action; -1: not given */
};

struct asym_rules {
    struct asym_rule *rules;
    size_t n, capacity;
};

struct asym_rules *asym_rules_new(void);
void asym_rules_free(struct asym_rules *rules);
struct asym_rules *asym_rules_copy(const struct asym_rules *rules);
/** A new rule behind the others. -EINVAL with err: there is one of that name, or the name is too long. */
int asym_rules_add(struct asym_rules *rules, const char *name, const char *origin, struct asym_error *err);
/** Set a key of the newest rule. -EINVAL with err; -EEXIST: given before. */
int asym_rules_set(struct asym_rules *rules, const char *key, const char *value, struct asym_error *err);
/** Every rule has a match and an action. */
int asym_rules_check(const struct asym_rules *rules, struct asym_error *err);
void asym_rules_print(const struct asym_rules *rules, FILE *out);

/** Parse value into the row's field of base. -EINVAL with err ("what is wrong, what is accepted", without a place). */
int asym_option_parse(const struct asym_option *row, const char *section, void *base, const char *value,
                      struct asym_error *err);
/** The field as text that asym_option_parse takes back unchanged. Returns buf. */
const char *asym_option_format(const struct asym_option *row, const void *base, char *buf, size_t size);
/** What the row accepts, in words, with range and unit. Returns buf. */
const char *asym_option_accepted(const struct asym_option *row, char *buf, size_t size);
/** Free what the field owns. */
void asym_option_done(const struct asym_option *row, void *base);
/** Copy the field of from over that of base, which owns nothing yet. 0; -ENOMEM. */
int asym_option_copy(const struct asym_option *row, void *base, const void *from);

/** A configuration that changes nothing: every option commented out, with its default, help and range. */
int asym_settings_print_sample(FILE *out);

#endif
