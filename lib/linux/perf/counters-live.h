/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Counters of the live machine: the port of counters.h behind perf_event_open(2). */
#ifndef ASYM_LINUX_PERF_COUNTERS_LIVE_H
#define ASYM_LINUX_PERF_COUNTERS_LIVE_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include <asym/types.h>

#include "linux/perf/counters.h"
#include "linux/sys/root.h"

/**
 * Creates counters of the live machine, which use perf_event_open(2). Opens no event yet.
 * Returns 0; -ENODEV (no PMU) or -errno, both with err.
 */
int asym_counters_new(const struct asym_counters_config *config, struct asym_counters **ret, struct asym_error *err);

/** The counters of ASYM_COUNTERS_HARDWARE that this machine has. */
struct asym_counters_coverage {
    int error; /**< 0; or why there are none: the error of watch() for asymd's own thread. -ENODEV: no PMU */
    /** Bits of the counters that work; 0 for a captured machine, of which only the PMUs are known. */
    unsigned counters;
    bool user_only;     /**< the kernel permits to count user space only */
    char pmus[80];      /**< such as "cpu_core, cpu_atom"; "": none */
    char text[200];     /**< all of this in words, one line */
    const char *remedy; /**< what the user can do; static; "": nothing to do */
};

/** Opens each counter on the calling thread and closes it again. For a captured machine, only lists the PMUs. */
void asym_counters_probe(const struct asym_root *root, struct asym_counters_coverage *ret);

#endif
