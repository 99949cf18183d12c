/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The load of each CPU by /proc/stat: of all threads, of the kernel and of interrupts, whichever processes asymd follows. */
#ifndef ASYM_LINUX_SYS_CPU_LOAD_H
#define ASYM_LINUX_SYS_CPU_LOAD_H

#include <stdint.h>

#include <asym/types.h>

#include "linux/sys/root.h"

/** All zero: nothing is read yet. */
struct asym_cpu_load {
    unsigned n;                                        /**< readings; from the second one on the shares are valid */
    uint64_t busy[ASYM_MAX_CPUS], idle[ASYM_MAX_CPUS]; /**< clock ticks since boot */
    double share[ASYM_MAX_CPUS]; /**< 0..1, of the time between the last two readings; of an offline CPU: 0 */
};

/** Read the file again. Returns 0; -errno: as before. */
int asym_cpu_load_update(struct asym_cpu_load *load, const struct asym_root *root);

#endif
