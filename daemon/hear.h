/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Which programs of a snapshot say what their threads do (linux/speech.h), for the modes that report it. */
#ifndef ASYM_DAEMON_HEAR_H
#define ASYM_DAEMON_HEAR_H

#include "daemon/run.h"
#include "linux/speech.h"

/**
 * Ask the reader of the lookout what the applications have mapped, and wait for the answers, a second at most. An array of what
 * each application of the snapshot does, owned by the caller; *ret_unread counts those that were not read. NULL: no memory.
 */
enum asym_speech *asym_hear(const struct asym_lookout *lookout, const struct asym_snapshot *s, uint32_t *ret_unread);

#endif
