/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What has come of the actions of a turn, for the log. */
#ifndef ASYM_DAEMON_OUTCOMES_H
#define ASYM_DAEMON_OUTCOMES_H

#include <stddef.h>

#include "daemon/cycle.h"
#include "daemon/log.h"

/**
 * Log what a person wants to know at once: sequential phases that were boosted, and threads that are left alone from now
 * on. Returns how many threads were changed.
 */
size_t asym_outcomes_log(const struct asym_log *log, const char *policy, const struct asym_cycle *cycle);

#endif
