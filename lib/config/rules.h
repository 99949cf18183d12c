/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The rules of the settings: which processes asymd steers, and how. */
#ifndef ASYM_CONFIG_RULES_H
#define ASYM_CONFIG_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/policy.h>

/** The attributes of a process that a rule can match. A text that asym_rules_need does not name may be NULL. */
struct asym_rule_subject {
    const char *comm, *exe, *cgroup, *cmdline; /**< cmdline: arguments joined by spaces */
    uid_t uid;
};

enum {
    ASYM_RULE_NEEDS_COMM = 1 << 0,
    ASYM_RULE_NEEDS_EXE = 1 << 1,
    ASYM_RULE_NEEDS_CGROUP = 1 << 2,
    ASYM_RULE_NEEDS_CMDLINE = 1 << 3,
    ASYM_RULE_NEEDS_UID = 1 << 4,
};

struct asym_rules;

/** Returns the attributes that the rules match, as bits ASYM_RULE_NEEDS_*. */
unsigned asym_rules_need(const struct asym_rules *rules);

/** The effect of the rules on a process. Both pointers are owned by the rules. */
struct asym_rule_match {
    enum asym_rule_action action;
    const char *name;                    /**< NULL: no rule matches */
    const struct asym_rule_facts *facts; /**< NULL as well then */
};

/**
 * Returns the first rule all of whose keys match (globs as in fnmatch(3) without flags). Without one the action is STEER, or
 * UNLISTED where asymd.default is ignore (asym_settings_finish).
 */
struct asym_rule_match asym_rules_match(const struct asym_rules *rules, const struct asym_rule_subject *subject);

/** The number of keys by which a rule can match. */
enum { ASYM_RULE_MATCHES = 5 };

/** A rule for reports. Texts are owned by the rules. */
struct asym_rule_view {
    const char *name, *origin; /**< origin: "FILE:LINE" */
    enum asym_rule_action action;
    const struct asym_rule_facts *facts;
    const char *key[ASYM_RULE_MATCHES];   /**< its n_keys match keys, such as "match_comm" */
    const char *globs[ASYM_RULE_MATCHES]; /**< globs or user IDs, separated by spaces */
    bool misses[ASYM_RULE_MATCHES];       /**< the key does not match the subject */
    unsigned need[ASYM_RULE_MATCHES];     /**< ASYM_RULE_NEEDS_* of the key */
    size_t n_keys;
    /**
     * The rule lends fast CPUs or a lower nice value (action fast, policy_class serial, nice below 0, cpus other than slow ones),
     * and any user can start a program that it matches: it tests nothing but names, command lines, and paths or control groups
     * that users can make. Before the machine is known, any list of CPUs may have fast ones.
     */
    bool lends_to_anyone;
};

/** Get rule i, in the order in which asymd tries them. subject NULL: misses is all false. Returns false after the last rule. */
bool asym_rules_at(const struct asym_rules *rules, size_t i, const struct asym_rule_subject *subject,
                   struct asym_rule_view *ret);

/** Returns the word of an action, such as "steer". A static string. */
const char *asym_rule_action_name(enum asym_rule_action action);

/** Returns "auto", "serial" or "parallel". A static string. */
const char *asym_rule_class_name(enum asym_rule_class class);

#endif
