/* SPDX-License-Identifier: GPL-2.0-or-later */
/** asymctl profile: a program is run on each type of core in turn, and what it did there is written to a file of profiles. */
#ifndef ASYM_DAEMON_PROFILE_H
#define ASYM_DAEMON_PROFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include <asym/error.h>
#include <asym/machine.h>

#include "linux/counters.h"
#include "profile/profiles.h"

struct asym_profile_job {
    char *const *argv; /**< ends in NULL */
    asym_usec time;    /**< for each type of core; 0: until it ends by itself */
    const struct asym_machine *machine;
    struct asym_counters *counters; /**< borrowed; those of trees */
};

struct asym_profile_result {
    char path[PATH_MAX];                                  /**< what profile.path points to */
    struct asym_profile_entry profile;                    /**< in the order of the machine's types */
    double on_cpu[ASYM_MAX_TYPES], share[ASYM_MAX_TYPES]; /**< seconds on a CPU; of these, in which it was counted */
};

/**
 * Run it on each type. Writes nothing. Returns 0; -ENODATA: it did not run long enough to be counted; -ECANCELED: it failed, or
 * was ended by somebody else; -EINTR: we were asked to stop; what asym_trial_run returns; with err each.
 */
int asym_profile_measure(const struct asym_profile_job *job, struct asym_profile_result *ret, struct asym_error *err);

/** A line for each type, and where it was written to. user_only: what the kernel did for it is not in. 0; -EIO. */
int asym_profile_text(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *output,
                      bool user_only, FILE *out);

/**
 * { "schema": "asymd.profile/1", "executable", "build_id", "output", "user_only", "types": [ { "name", "cpus", "ips", "mpki",
 * "on_cpu_ms", "counted" } ] }; mpki is null where misses could not be counted. 0; -ENOMEM, -EIO.
 */
int asym_profile_json(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *output,
                      bool user_only, FILE *out);

/** The verb; argv[0] is its name. Exit status. */
int asym_profile_verb(int argc, char **argv);

#endif
