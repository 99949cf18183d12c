/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Sets up what asymd would find on this machine, for the verbs that need no running asymd. Changes nothing. */
#ifndef ASYM_DAEMON_ASYMCTL_MACHINE_RUN_H
#define ASYM_DAEMON_ASYMCTL_MACHINE_RUN_H

#include <stdbool.h>

#include "app/args.h"
#include "app/run.h"

/**
 * Read the configuration, the machine and its policy. cli may name a configuration; else it is the installed one. A
 * configuration that is wrong counts as far as it is right, if lenient. Returns 0; -errno with err. Always call
 * asym_machine_run_done.
 */
int asym_machine_run(struct asym_run *run, const struct asym_invocation *cli, bool lenient, struct asym_error *err);

void asym_machine_run_done(struct asym_run *run);

/** The options of the verbs that report on this machine. */
struct asym_machine_arguments {
    bool json;
    const char *config; /**< NULL: the installed one */
};

extern const struct asym_arg asym_machine_args[];

/**
 * The run of such a verb: set up the machine, and call report, which prints to stdout and returns the exit status. An error of
 * the set-up is printed. Returns the exit status.
 */
int asym_machine_verb(const struct asym_machine_arguments *a, int (*report)(struct asym_run *run, bool json));

#endif
