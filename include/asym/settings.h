/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The configuration, validated. Option rows: lib/settings/options.c and the policies' own tables.
 */
#ifndef ASYM_SETTINGS_H
#define ASYM_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <asym/engine.h>
#include <asym/error.h>
#include <asym/option.h>
#include <asym/policy.h>
#include <asym/snapshot.h>

enum asym_grouping { ASYM_GROUP_PROCESS, ASYM_GROUP_CGROUP };

/** How slow CPUs come about ([asymmetry] method). none: the configuration's word is taken, nothing is set. */
enum asym_method { ASYM_METHOD_NONE, ASYM_METHOD_CPUFREQ, ASYM_METHOD_CLOCKMOD };

/** [asymd], the part that is not for the core. */
struct asym_daemon_settings {
    char *policy;       /**< name of an existing policy, or "auto" */
    asym_usec interval; /**< between two looks: 100 ms */
    asym_usec duration; /**< how long a dry run observes: 500 ms */
    double cpu_budget;  /**< share of one CPU that asymd may use, percent: 1 */
    int group;          /**< enum asym_grouping */
    char *state_dir;    /**< where the ledger is: /run/asymd */
};

/** [machine] */
struct asym_machine_settings {
    char *speeds;     /**< "" (as the machine says), or "0-7:1.6 8-15:1": speeds of all CPUs, in any unit */
    double fast_from; /**< share of the fastest core type's speed from which a core type is fast: 0.8 */
};

/** speeds in numbers, for the CPUs it names. 0; -EINVAL: neither, or a CPU named twice. */
int asym_speeds_parse(const char *text, double ret_speed[ASYM_MAX_CPUS], struct asym_mask *ret_cpus);

/** [counters] */
struct asym_counters_settings {
    char *profiles;   /**< file that asymctl profile writes */
    unsigned max_fds; /**< descriptors for counters; a thread takes up to four for each kind of core */
};

/** [rtx] */
struct asym_rtx_settings {
    bool listen;           /**< take pages from programs */
    bool realtime;         /**< be real-time while a program speaks, so as to react with all CPUs busy */
    asym_usec spin_notify; /**< who has waited for longer spins: 20 us (Saez 2010, 2.2.1: a threshold) */
};

/** [asymmetry] */
struct asym_asymmetry_settings {
    int method;       /**< enum asym_method */
    char *slow;       /**< "" (none), a bare number (how many), or a CPU list ("4-4" for one CPU) */
    char *slow_speed; /**< "50%" of their own full speed, in (0, 100]; or "1400000kHz", which needs cpufreq */
};

/** slow_speed in numbers: a share of a CPU's own full speed, or a frequency. The other is 0. */
struct asym_slow_speed {
    double share; /**< above 0, up to 1 */
    uint64_t khz;
};

/** 0; -EINVAL. */
int asym_slow_speed_parse(const char *text, struct asym_slow_speed *ret);

/** What a rule may look at. A text that was not asked for (see asym_rules_need) may be NULL. */
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

/** Bits ASYM_RULE_NEEDS_*: what the rules look at. */
unsigned asym_rules_need(const struct asym_rules *rules);

/**
 * The action of the first rule all of whose keys match (globs as fnmatch(3) without flags), else STEER.
 * *ret_name: the rule's name, owned by rules, or NULL.
 */
enum asym_rule_action asym_rules_match(const struct asym_rules *rules, const struct asym_rule_subject *subject,
                                       const char **ret_name);

struct asym_settings {
    struct asym_daemon_settings daemon;
    struct asym_classify_settings classify;
    struct asym_enforce_settings enforce;
    struct asym_machine_settings machine;
    struct asym_counters_settings counters;
    struct asym_asymmetry_settings asymmetry;
    struct asym_rtx_settings rtx;
    struct asym_rules *rules;
    struct asym_settings_private *priv; /**< origins, policies' parameters */
};

/** All defaults. */
int asym_settings_new(struct asym_settings **ret_settings);
void asym_settings_free(struct asym_settings *s);

/**
 * Read an INI file over what is there. On any error s is unchanged and err says
 * "FILE:LINE: what is wrong, what is accepted" with the nearest right spelling.
 * Returns 0; -EINVAL (content), -errno (file); -ENOENT when there is no such file.
 */
int asym_settings_load(struct asym_settings *s, const char *path, struct asym_error *err);

/** Read path, where missing is an error only if required, then the *.conf files in rules.d beside it, by name. */
int asym_settings_load_all(struct asym_settings *s, const char *path, bool required, struct asym_error *err);

/**
 * Read of path what can be read, and leave out what is wrong: for whoever has to put back what was set under a
 * configuration that somebody has spoiled since. Where the file cannot be opened s is unchanged.
 */
void asym_settings_salvage(struct asym_settings *s, const char *path);

/** Set one option from "SECTION.KEY=VALUE" (section may hold dots: policy.pa.amp_boost). origin: "--set". Copied. */
int asym_settings_set(struct asym_settings *s, const char *assignment, const char *origin, struct asym_error *err);

/** What can only be checked when everything was read: the policy exists, values fit each other. */
int asym_settings_check(const struct asym_settings *s, struct asym_error *err);

/** Where the value of an option came from: "FILE:LINE", "--set", "default". Owned by s. */
const char *asym_settings_origin(const struct asym_settings *s, const char *section, const char *key);

/** Parameters of a policy as configured: params_size bytes; NULL when it has none. Owned by s. */
const void *asym_settings_params(const struct asym_settings *s, const struct asym_policy *policy);

/** The effective configuration as INI, each line with where it came from; it can be read back. */
int asym_settings_print(const struct asym_settings *s, FILE *out);

/** Call fn for every option row, policies' included (section is then "policy.NAME"), with its value as text. */
int asym_settings_each(const struct asym_settings *s,
                       int (*fn)(void *ctx, const char *section, const struct asym_option *row, const char *value,
                                 const char *origin),
                       void *ctx);

#endif
