/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The facts of followed threads that phases-kernel.h hands out. */
#ifndef ASYM_LINUX_OBSERVE_PHASES_TYPES_H
#define ASYM_LINUX_OBSERVE_PHASES_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/** A followed thread, all times until now. Another one that gets its tid has another place, or counts from 0. */
struct asym_phases_thread {
    int32_t tid, tgid; /**< 0: the place is free */
    uint32_t app;
    bool is_runnable;     /**< now */
    int32_t cpu;          /**< that it got last; -1: not known */
    uint16_t renewed;     /**< changes when it calls exec or gets another name */
    uint64_t running_ns;  /**< on a CPU */
    uint64_t waiting_ns;  /**< runnable, but on no CPU */
    uint64_t critical_ns; /**< integral of 1 / (runnable threads of its application) while it was runnable */
    uint32_t seq;         /**< grows by 2 with each change of its state; runs over */
    uint32_t settings;    /**< no other thread has it; changes with nice value, policy and mask; 0: not known */
};

#endif
