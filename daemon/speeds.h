/* SPDX-License-Identifier: GPL-2.0-or-later */
/** [asymmetry] on a live machine: what the modes that change something do about the speeds of CPUs. */
#ifndef ASYM_DAEMON_SPEEDS_H
#define ASYM_DAEMON_SPEEDS_H

#include <stdbool.h>

#include "daemon/check.h"
#include "daemon/run.h"

/** Read in what an earlier asymd has left to put back; the ledger is held. 0; -errno with err. */
int asym_speeds_open(struct asym_run *run, struct asym_error *err);

/**
 * Hold the slow CPUs as the settings want it, or give back what is held where they want nothing; the machine then has the
 * speeds obtained. Logs what was obtained. 0; -errno with err, and everything given back.
 */
int asym_speeds_hold(struct asym_run *run, struct asym_error *err);

/** Are those CPUs held to the configured speed now, by this asymd or another? */
bool asym_speeds_are_in_force(const struct asym_run *run, const struct asym_mask *slow);

/** The shares of their speed that the slow CPUs would get. 0; -errno: no method is configured, or it does not work here. */
int asym_speeds_foresee(const struct asym_run *run, const struct asym_mask *slow, struct asym_caps *ret_caps);

/** Look after what is held: true when the speeds have changed, and the machine was read anew. Logs. */
bool asym_speeds_mind(struct asym_run *run);

/** Put everything back, and log when: "stopped". 0; -errno of the first that could not be. Nothing when not open. */
int asym_speeds_put_back(struct asym_run *run, const char *when);

/** What [asymmetry] could do here, for --check: a line for each method. 0; -ENOMEM. */
int asym_speeds_check(struct asym_check *check, const struct asym_run *run);

#endif
