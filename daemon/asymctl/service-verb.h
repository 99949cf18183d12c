/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The common parts of the verbs that ask a running asymd, or tell it something. */
#ifndef ASYM_DAEMON_ASYMCTL_SERVICE_VERB_H
#define ASYM_DAEMON_ASYMCTL_SERVICE_VERB_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
