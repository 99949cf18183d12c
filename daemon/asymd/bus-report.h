/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The reports of a running asymd, as JSON (org.asymd.Manager(5), GetReport). What the caller may not see is left out of them.
 *
 * A topic has a number as its argument. "decisions": those with a higher number than it, the oldest first, 1024 at most. The
 * answer's "next" is the argument of the next question: who asks with more than there are learns it, and gets no decision.
 */
#ifndef ASYM_DAEMON_ASYMD_BUS_REPORT_H
#define ASYM_DAEMON_ASYMD_BUS_REPORT_H

#include <stdint.h>

#include "bus/bus.h"

struct asym_service;

/** The most decisions of one report. The text of one takes about 5 us. */
enum { ASYM_BUS_DECISIONS = 1024 };

/** Make a report. *ret: its text; free it. Returns 0; -EINVAL: there is no such topic; -ENOMEM. */
int asym_bus_report(const struct asym_service *s, const struct asym_bus_caller *caller, const char *topic,
                    uint64_t argument, char **ret);

#endif
