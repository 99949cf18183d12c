/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Running a program on certain CPUs and counting what it and its children do. */
#ifndef ASYM_LINUX_TRIAL_H
#define ASYM_LINUX_TRIAL_H

#include <limits.h>
#include <stdbool.h>

#include <asym/error.h>
#include <asym/types.h>

#include "linux/counters.h"

struct asym_trial {
    char *const *argv;              /**< ends in NULL; argv[0] is looked for in PATH */
    const struct asym_mask *cpus;   /**< it is run on these */
    asym_usec time;                 /**< it is ended after that; 0: it ends by itself */
    struct asym_counters *counters; /**< borrowed; counts trees (asym_counters_config.tree) */
};

struct asym_trial_result {
    struct asym_counts counts;
    int status;         /**< as of wait(2) */
    bool ended;         /**< by us, since its time was over */
    char exe[PATH_MAX]; /**< what was executed: of a script its interpreter; "": it was over too soon to be asked */
    int exe_fd;         /**< that, opened for reading; owned, see asym_trial_done; -1: as above, or not permitted */
};

/**
 * Run it. Its standard input is ours when that is a regular file, from the same place in each trial, else /dev/null; its standard
 * output is /dev/null. It is a process group of its own, of which nothing is left when this returns. Not for programs that
 * ignore SIGCHLD or have threads that take SIGINT, SIGTERM and SIGHUP: these are held back meanwhile.
 * Returns 0; -EINTR: we got one of these signals, and the program was ended; what counters->watch returns; -errno with err
 * (-ENOENT: no such program).
 */
int asym_trial_run(const struct asym_trial *trial, struct asym_trial_result *ret, struct asym_error *err);

/** With exe_fd -1, or as asym_trial_run left it. */
void asym_trial_done(struct asym_trial_result *result);

#endif
