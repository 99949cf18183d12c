/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Finds out which hardware counters this machine has. */
#ifndef ASYM_LINUX_PERF_COUNTERS_PROBE_H
#define ASYM_LINUX_PERF_COUNTERS_PROBE_H

#include <stdbool.h>

#include "linux/sys/root.h"

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
