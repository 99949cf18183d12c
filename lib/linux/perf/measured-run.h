/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A measured run: asymd runs a program on certain CPUs, and counts what the program and its children do. */
#ifndef ASYM_LINUX_PERF_MEASURED_RUN_H
#define ASYM_LINUX_PERF_MEASURED_RUN_H

#include <limits.h>
#include <stdbool.h>

#include <asym/types.h>

#include "linux/perf/counters.h"

struct asym_measured_run_config {
    char *const *argv;              /**< ends in NULL; execvp searches PATH for argv[0] */
    const struct asym_mask *cpus;   /**< the program runs on these */
    asym_usec time;                 /**< the program is ended after this time; 0: no limit */
    struct asym_counters *counters; /**< borrowed; made with asym_counters_config.tree */
    void (*waiting)(void *ctx);     /**< called about five times a second while the program runs; NULL: not */
    void *ctx;
};

struct asym_measured_run_result {
    struct asym_counts counts;
    int status;         /**< as in wait(2) */
    bool ended;         /**< the program was ended because its time was over */
    char exe[PATH_MAX]; /**< the executed file; for a script, its interpreter; "": the program exited too soon */
    int exe_fd; /**< that file, open for reading; owned: asym_measured_run_done; -1: exited too soon, or no permission */
};

/**
 * Runs the program. If the caller's standard input is a regular file, the program reads it from the same offset in each
 * run; else it reads /dev/null. Its standard output is /dev/null. The program is a process group of its own, and the whole
 * group is dead when this returns. A caller must not ignore SIGCHLD, and no other thread of it may handle SIGINT, SIGTERM
 * or SIGHUP: these are blocked meanwhile.
 * Returns 0; -EINTR: the caller received one of these signals, and the program was ended; an error of counters->watch;
 * -errno with err (-ENOENT: no such program).
 */
int asym_measured_run(const struct asym_measured_run_config *config, struct asym_measured_run_result *ret,
                      struct asym_error *err);

/** Closes exe_fd. The result comes from asym_measured_run, or has exe_fd -1. */
void asym_measured_run_done(struct asym_measured_run_result *result);

#endif
