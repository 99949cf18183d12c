/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The common parts of the verbs that ask a running asymd, tell it something, or look at the machine as it does. */
#ifndef ASYM_DAEMON_ASYMCTL_SERVICE_VERB_H
#define ASYM_DAEMON_ASYMCTL_SERVICE_VERB_H

#include <stdbool.h>
#include <stdint.h>

#include "app/run.h"
#include "client/client.h"
#include "daemon/asymctl/verb.h"

/** Connect. On an error prints it. Returns the exit status. */
int asym_verb_connect(struct asym_client **ret);

/** Print that no asymd runs, by this message, and what one that died has left. Returns the exit status. */
int asym_verb_no_service(const char *message);

/** Print the error of a call. r: its result, below 0. Returns the exit status. */
int asym_verb_call_failed(int r, const struct asym_error *err);

/** Parse a PID or TID. Returns true; false if it is none, and prints nothing. */
bool asym_verb_is_pid(const char *text, uint32_t *ret);

/* The machine as the running asymd sees it, or as one would that starts now. Changes nothing. */

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
 * Always call asym_run_done (app/policy-setup.h).
 */
int asym_machine_run_begin(struct asym_run *run, const struct asym_invocation *cli, enum asym_machine_from from,
                           struct asym_error *err);

/** Print the error r of asym_machine_run_begin or a later step. Returns the exit status. */
int asym_machine_run_failed(const struct asym_run *run, int r, const struct asym_error *err);

#endif
