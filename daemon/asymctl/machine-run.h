/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Sets up the machine as the running asymd sees it, or as one would that starts now. Changes nothing. */
#ifndef ASYM_DAEMON_ASYMCTL_MACHINE_RUN_H
#define ASYM_DAEMON_ASYMCTL_MACHINE_RUN_H

#include <stdbool.h>

#include "app/command-line.h"
#include "app/run.h"

/** The verb says on stderr that no asymd answers, so that the installed configuration counts. */
enum asym_machine_note { ASYM_MACHINE_QUIET, ASYM_MACHINE_SAYS };

/**
 * Load the configuration that cli names, or that of the running asymd, or without one the installed configuration. Then apply the
 * assignments of cli. Returns 0; -errno with err.
 */
int asym_machine_settings(const struct asym_invocation *cli, enum asym_machine_note note,
                          struct asym_settings **ret_settings, struct asym_error *err);

/**
 * Read the installed configuration, as far as it is right, the machine and its policy. Returns 0; -errno with err. Always call
 * asym_machine_run_done.
 */
int asym_machine_run_installed(struct asym_run *run, const struct asym_invocation *cli, struct asym_error *err);

void asym_machine_run_done(struct asym_run *run);

/** The options of the verbs that report on this machine. */
struct asym_machine_arguments {
    bool json;
    const char *config; /**< NULL: that of the running asymd, or the installed one */
};

extern const struct asym_arg asym_machine_args[];

/**
 * The run of such a verb: set up the machine, and call report, which prints to stdout and returns the exit status. An error of
 * the set-up is printed. Returns the exit status.
 */
int asym_machine_verb(const struct asym_machine_arguments *a, enum asym_machine_note note,
                      int (*report)(struct asym_run *run, bool json));

#endif
