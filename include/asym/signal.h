/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Signals: what can be measured of threads and programs beyond what every kernel tells, and who may ask for it.
 */
#ifndef ASYM_SIGNAL_H
#define ASYM_SIGNAL_H

#include <stdint.h>

#include <asym/machine.h>

/** What a policy may ask for (policies.md, rule 6). */
enum asym_signal {
    ASYM_SIGNAL_RUNNABLE, /**< runnable counts from schedstat */
    ASYM_SIGNAL_IPC,      /**< instructions and cycles per thread */
    ASYM_SIGNAL_STALL,    /**< cache misses per thread */
    ASYM_SIGNAL_PROFILE,  /**< per-executable profiles measured beforehand */
    ASYM_SIGNAL_SMT,      /**< cores with more than one hardware thread */
    ASYM_N_SIGNALS
};

/** "runnable", "ipc" ... A static string. */
const char *asym_signal_name(enum asym_signal signal);

/**
 * What a program does on each core type, measured beforehand (asymctl profile). Of the core types of this machine, in
 * their order.
 */
struct asym_profile {
    double ips[ASYM_MAX_TYPES];  /**< instructions per second; 0: not measured on that type */
    double mpki[ASYM_MAX_TYPES]; /**< LLC misses per kilo-instruction; < 0: not measured */
};

/** What counters say of a thread over the interval: only of those the last plan asked for (asym_plan_task.monitor). */
struct asym_sample {
    uint32_t task;       /**< index into asym_snapshot.tasks */
    double seconds;      /**< on a CPU meanwhile */
    double instructions; /**< as the rest: < 0 where it could not be counted */
    double cycles;
    double llc_misses;
};

#endif
