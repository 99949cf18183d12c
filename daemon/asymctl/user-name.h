/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The name of a user, in sentences of asymd. asymd itself looks up no names: that could make it wait for a server. Both
 * functions copy a text and, where asymd has put the number of a user and this machine knows the user, add the name. A program
 * can have a name such as "set by uid 0", so they compare all words around the number.
 */
#ifndef ASYM_DAEMON_ASYMCTL_USER_NAME_H
#define ASYM_DAEMON_ASYMCTL_USER_NAME_H

#include <stddef.h>

struct asym_client_app;

/** Copy a reason for the policy: "set by uid 0 over the bus" becomes "set by root (uid 0) over the bus". Returns buf. */
const char *asym_name_user_of_policy(const char *reason, char *buf, size_t size);

/** Copy a sentence of asymctl why: "A rule that uid 0 has set" becomes "A rule that root (uid 0) has set". Returns buf. */
const char *asym_name_user_of_rule(const char *sentence, char *buf, size_t size);

/** Returns the name of an application: that of its program, or the last part of a cgroup's path. Owned by app. */
const char *asym_name_leader(const struct asym_client_app *app);

/** Write that name, and the number of its processes, if there are several: "make, 9 processes". Returns buf. */
const char *asym_name_app(const struct asym_client_app *app, char *buf, size_t size);

#endif
