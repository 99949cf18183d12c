/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A source that counts: what another one sees, with samples of the threads that the last plan asked for. Nothing is counted
 * that no policy wants.
 */
#ifndef ASYM_LINUX_MONITOR_H
#define ASYM_LINUX_MONITOR_H

#include <asym/plan.h>
#include <asym/port.h>

#include "linux/counters.h"

struct asym_monitor_config {
    struct asym_source *source;          /* borrowed */
    struct asym_counters *counters;      /* owned; NULL: there are none */
    const char *missing[ASYM_N_SIGNALS]; /* why there is none of IPC, STALL, PROFILE; static; NULL: there is */
};

/** 0; -ENOMEM: then the counters are closed as well. Closing it leaves the other source open. */
int asym_monitor_new(const struct asym_monitor_config *config, struct asym_source **ret_source);

/**
 * Count from now on the threads that the plan of this snapshot asks for, and no others. Of those that cannot be counted
 * the next snapshot's sight has the number and the reason.
 */
void asym_monitor_follow(struct asym_source *monitor, const struct asym_snapshot *snapshot,
                         const struct asym_plan *plan);

/** Look through another source from now on, which has the same lifetime as the first. */
void asym_monitor_set_source(struct asym_source *monitor, struct asym_source *source);

/** Other counters (owned; NULL: none) and other reasons, when the configuration was read again. Counting begins anew. */
void asym_monitor_set(struct asym_source *monitor, struct asym_counters *counters,
                      const char *const missing[ASYM_N_SIGNALS]);

#endif
