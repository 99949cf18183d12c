/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The validated configuration. Its options are the fields of the structs; asym/settings-options.h and the tables of the
 * policies define them.
 */
#ifndef ASYM_CONFIG_SETTINGS_H
#define ASYM_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <asym/engine.h>
#include <asym/types.h>
#include <asym/option.h>
#include <asym/settings-options.h>
#include <asym/policy.h>
#include <asym/snapshot.h>

#include "config/rules.h"

enum asym_grouping { ASYM_GROUP_PROCESS, ASYM_GROUP_CGROUP, ASYM_GROUP_JOB };

/** [asymd] observer. */
enum asym_observer_choice { ASYM_OBSERVE_AUTO, ASYM_OBSERVE_BPF, ASYM_OBSERVE_PROCFS };

/**
 * The methods by which asymd makes a CPU slower. Each has one row: ROW(constant ASYM_METHOD_X, symbol and name in the
 * configuration). A method is one file, lib/linux/speed-cap/cap-X.c, that ends in struct asym_cap_method asym_cap_X, and one row
 * here. cpufreq sets both limits of the frequency. clockmod sets the duty cycle in IA32_CLOCK_MODULATION.
 */
#define ASYM_CAP_METHODS(ROW)                                                                                          \
    ROW(CPUFREQ, cpufreq)                                                                                              \
    ROW(CLOCKMOD, clockmod)

/** A comma and the name, for the list of values of the option. */
#define ASYM_CAP_METHOD_WORD(constant, symbol) , #symbol

/** The way in which CPUs become slow ([asymmetry] method). none: asymd sets nothing, and assumes the configured slow CPUs. */
#define ASYM_CAP_METHOD_CONSTANT(constant, symbol) , ASYM_METHOD_##constant
enum asym_method { ASYM_METHOD_NONE ASYM_CAP_METHODS(ASYM_CAP_METHOD_CONSTANT) };

/** [asymd] */
struct asym_daemon_settings {
    ASYM_OPTIONS_ASYMD(ASYM_OPTION_FIELD)
};

/** [machine] */
struct asym_machine_settings {
    ASYM_OPTIONS_MACHINE(ASYM_OPTION_FIELD)
};

/** Parse the option speeds, such as "0-7:1.6 8-15:1". Returns 0; -EINVAL if text is malformed or names a CPU twice. */
int asym_speeds_parse(const char *text, double ret_speed[ASYM_MAX_CPUS], struct asym_mask *ret_cpus);

/** [counters] */
struct asym_counters_settings {
    ASYM_OPTIONS_COUNTERS(ASYM_OPTION_FIELD)
};

/** [rtx] */
struct asym_rtx_settings {
    ASYM_OPTIONS_RTX(ASYM_OPTION_FIELD)
};

/** [asymmetry] */
struct asym_asymmetry_settings {
    ASYM_OPTIONS_ASYMMETRY(ASYM_OPTION_FIELD)
};

/** A share of a CPU's own full speed, or a frequency in kHz. The other is 0. */
struct asym_slow_speed {
    double share; /**< above 0, up to 1 */
    uint64_t khz;
};

/** The parsed option slow_speed. */
struct asym_slow_speeds {
    struct asym_mask cpus;                       /**< those that the text names */
    struct asym_slow_speed named[ASYM_MAX_CPUS]; /**< valid for cpus */
    struct asym_slow_speed rest;                 /**< of the other slow CPUs; both 0: the text does not say */
};

/** Parses "50%", "1400MHz", or such speeds with CPUs as in "2-3:75% 4-5:50% 25%". Returns 0; -EINVAL. */
int asym_slow_speeds_parse(const char *text, struct asym_slow_speeds *ret);

/** Returns the speed of a slow CPU; NULL: the text does not say. */
const struct asym_slow_speed *asym_slow_speed_of(const struct asym_slow_speeds *speeds, int cpu);

struct asym_settings {
    struct asym_daemon_settings daemon;
    struct asym_classify_settings classify;
    struct asym_enforce_settings enforce;
    struct asym_machine_settings machine;
    struct asym_counters_settings counters;
    struct asym_asymmetry_settings asymmetry;
    struct asym_rtx_settings rtx;
    struct asym_rules *rules;
    struct asym_settings_private *priv; /**< origins of values, parameters of policies */
};

/** Create settings with all defaults. Returns 0; -ENOMEM. */
int asym_settings_new(struct asym_settings **ret_settings);
void asym_settings_free(struct asym_settings *s);

/**
 * Read an INI file, then the *.conf files in rules.d beside it, sorted by name. Their options override those of s. On an error
 * err says "FILE:LINE: what is wrong, what is accepted" with the closest valid spelling, and s holds a part of the file: the
 * caller can only free it.
 * Returns 0; -EINVAL (content), -errno (file); -ENOENT if path does not exist and required is set.
 */
int asym_settings_load(struct asym_settings *s, const char *path, bool required, struct asym_error *err);

/**
 * Read the valid options of path and ignore the errors. A caller that restores what asymd has set uses it, because the user may
 * have broken the configuration since. If the file cannot be opened, s is unchanged.
 */
void asym_settings_load_lenient(struct asym_settings *s, const char *path);

/** Set one option from "SECTION.KEY=VALUE" (section may hold dots: policy.pa.amp_boost). origin, such as "--set", is copied. */
int asym_settings_set(struct asym_settings *s, const char *assignment, const char *origin, struct asym_error *err);

/**
 * Call this once, after all files and assignments are read. Adds the rules of the groups that asymd.include names behind those of
 * the user: group NAME is the file NAME.conf in the directory library. A rule of the user replaces a rule of the library that has
 * its name. Then asymd.default applies to programs without a rule. Returns 0; -EINVAL with err: there is no such group (err
 * lists them), or a file of the library is wrong; -ENOMEM with err.
 */
int asym_settings_finish(struct asym_settings *s, const char *library, struct asym_error *err);

/** Check the settings after all files are read: that the policy exists, and that the values fit each other. */
int asym_settings_check(const struct asym_settings *s, struct asym_error *err);

/**
 * Returns -EINVAL. err says that where (an option, or a place and an option) names an unknown policy, and lists the policies.
 */
int asym_policy_unknown(const char *name, const char *where, struct asym_error *err);

/** Returns the origin of an option's value: "FILE:LINE", "--set", "default". Owned by s. */
const char *asym_settings_origin(const struct asym_settings *s, const char *section, const char *key);

/** The origin of a value that a user has set over the bus. It holds until asymd ends, and nothing says that it was overridden. */
#define ASYM_ORIGIN_OF_ORDERS "an order over the bus"

/** Returns the value and the origin that the origin of an option overrides: "rr at FILE:LINE"; NULL: none. Owned by s. */
const char *asym_settings_overridden(const struct asym_settings *s, const char *section, const char *key);

/** Returns whether neither a file nor the command line has set the option. */
bool asym_settings_is_default(const struct asym_settings *s, const char *section, const char *key);

/** Returns the configured parameters of a policy: params_size bytes, or NULL if it has none. Owned by s. */
const void *asym_settings_params(const struct asym_settings *s, const struct asym_policy *policy);

/** Returns the engine's configuration for a policy under these settings. It points into them. */
struct asym_engine_config asym_settings_engine_config(const struct asym_settings *s, const struct asym_policy *policy);

/**
 * Read what asym_settings_print has written, origins and rules of the library included. s: has the defaults.
 * Returns 0; -EINVAL, -ENOMEM with err, and s is then of no use.
 */
int asym_settings_read_printed(struct asym_settings *s, const char *text, size_t len, struct asym_error *err);

/** Print the effective configuration as INI, each line with its origin. asym_settings_load can read the output. */
int asym_settings_print(const struct asym_settings *s, FILE *out);

/** Call fn for every option row with its value as text. For a row of a policy, section is "policy.NAME". */
int asym_settings_each(const struct asym_settings *s,
                       int (*fn)(void *ctx, const char *section, const struct asym_option *row, const char *value,
                                 const char *origin),
                       void *ctx);

#endif
