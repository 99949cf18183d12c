/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Counters of the live machine: the port of counters.h behind perf_event_open(2). */
#ifndef ASYM_LINUX_PERF_COUNTERS_LIVE_H
#define ASYM_LINUX_PERF_COUNTERS_LIVE_H

#include "linux/perf/counters.h"

/**
 * Creates counters of the live machine, which use perf_event_open(2). Opens no event yet.
 * Returns 0; -ENODEV (no PMU) or -errno, both with err.
 */
int asym_counters_new(const struct asym_counters_config *config, struct asym_counters **ret, struct asym_error *err);

#endif
