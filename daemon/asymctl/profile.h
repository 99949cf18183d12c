/* SPDX-License-Identifier: GPL-2.0-or-later */
/** asymctl profile: run a program on each type of core in turn, and write the measurements to a file of profiles. */
#ifndef ASYM_DAEMON_ASYMCTL_PROFILE_H
#define ASYM_DAEMON_ASYMCTL_PROFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include <asym/types.h>
#include <asym/machine.h>

#include "linux/perf/counters.h"
#include "profile/profiles.h"
#include "report/columns.h"

struct asym_profile_job {
    char *const *argv; /**< ends in NULL */
    asym_usec time;    /**< microseconds on each type of core; 0: until the program ends by itself */
    const struct asym_machine *machine;
    struct asym_counters *counters; /**< borrowed; they count children too */
    double max_ipc[2]; /**< most instructions per cycle, of the fastest type and of the slowest; 0: not known */
};

struct asym_profile_result {
    char path[PATH_MAX];                                  /**< profile.path points here */
    struct asym_profile_entry profile;                    /**< its types are in the order of the machine's */
    double on_cpu[ASYM_MAX_TYPES], share[ASYM_MAX_TYPES]; /**< seconds on a CPU; the counted share of these, 0 to 1 */
    double hz[ASYM_MAX_TYPES];                            /**< cycles per second on a CPU; 0: not known */
};

/**
 * Check that a profile can be written to this file. Creates the directory of the default file. Returns 0; -ENAMETOOLONG; -EACCES:
 * the user may not write there; another -errno; or an error of asym_profiles_load. Each error sets err.
 */
int asym_profile_check_output(const char *output, struct asym_error *err);

/**
 * Run the program on each type of core. Writes no file. Shows on stderr how much is left, if that is a terminal. Returns 0;
 * -ENODATA: it did not run long enough to be counted;
 * -ECANCELED: it failed, or a signal ended it; -EINTR: the user interrupted asymctl; or the error of asym_measured_run. Each
 * error sets err.
 */
int asym_profile_measure(const struct asym_profile_job *job, struct asym_profile_result *ret, struct asym_error *err);

/**
 * Print a line for each measured type, the speedup factor as measured and by equation 6 of Nie & Duan 2012, and the name of the
 * file; output: NULL: none was written. user_only: the counters left the kernel out. Returns 0; -EIO.
 */
int asym_profile_text(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *output,
                      bool user_only, const struct asym_terminal *terminal);

/**
 * { "schema": "asymd.profile/1", "executable", "build_id", "output", "user_only", "types": [ { "name", "cpus", "ips", "mpki",
 * "on_cpu_ms", "counted" } ], "speedup", "speedup_by_stall" }; output is null if no file was written, mpki if misses could not be
 * counted, and a speedup that is not known. Returns 0; -ENOMEM, -EIO.
 */
int asym_profile_json(const struct asym_profile_job *job, const struct asym_profile_result *result, const char *output,
                      bool user_only, FILE *out);

#endif
