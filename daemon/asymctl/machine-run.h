/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Sets up the machine as the running asymd sees it, or as one would that starts now. Changes nothing. */
#ifndef ASYM_DAEMON_ASYMCTL_MACHINE_RUN_H
#define ASYM_DAEMON_ASYMCTL_MACHINE_RUN_H

#include "app/command-line.h"
#include "app/run.h"

/** The configuration: that of the running asymd, or without one the installed one. */
enum asym_machine_from {
    ASYM_MACHINE_QUIET,
    ASYM_MACHINE_SAYS,      /**< says on stderr that no asymd answers, so that the installed one counts */
    ASYM_MACHINE_INSTALLED, /**< the installed one in any case, as far as it is right */
};

/**
 * Load that configuration, or the one that cli names. Then apply the assignments of cli. Returns 0; -errno with err.
 */
int asym_machine_settings(const struct asym_invocation *cli, enum asym_machine_from from,
                          struct asym_settings **ret_settings, struct asym_error *err);

/**
 * Fill *run with these settings and the machine. Returns 0; -errno with err: the configuration is wrong if run->settings is NULL.
 * Always call asym_machine_run_done.
 */
int asym_machine_run_begin(struct asym_run *run, const struct asym_invocation *cli, enum asym_machine_from from,
                           struct asym_error *err);

/** Print the error r of asym_machine_run_begin or a later step. Returns the exit status. */
int asym_machine_run_failed(const struct asym_run *run, int r, const struct asym_error *err);

void asym_machine_run_done(struct asym_run *run);

#endif
