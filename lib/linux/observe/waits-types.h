/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The facts of a thread that waits-kernel.h hands out. */
#ifndef ASYM_LINUX_OBSERVE_WAITS_TYPES_H
#define ASYM_LINUX_OBSERVE_WAITS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "linux/observe/waits-shared.h"

/** A thread that another one has waited for. */
struct asym_waits_for {
    int32_t tid, tgid; /**< tgid 0: it has ended */
    uint64_t ns;
};

/** A followed thread; times are since the begin. */
struct asym_waits_thread {
    int32_t tid, tgid;
    uint64_t slept_ns;   /**< in all */
    uint64_t kernel_ns;  /**< sleeps that the kernel ended: by a timer, a device, or a thread of its own */
    uint64_t outside_ns; /**< sleeps that threads outside of the application ended */
    uint64_t rest_ns;    /**< waits for threads that are not among the following */
    uint64_t asleep_ns;  /**< the sleep that has not ended yet */
    size_t n;
    struct asym_waits_for waits[ASYM_WAITS_PAIRS];
};

#endif
