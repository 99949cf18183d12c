/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The name of a user, in sentences of asymd. */
#ifndef ASYM_DAEMON_ASYMCTL_USER_NAME_H
#define ASYM_DAEMON_ASYMCTL_USER_NAME_H

#include <stddef.h>

/**
 * Copy a reason for the policy, or a sentence of asymctl why, with the name of a user beside the number if this machine knows
 * it. asymd looks up no names: that could make it wait for a server. Returns buf.
 */
const char *asym_name_user(const char *sentence, char *buf, size_t size);

#endif
