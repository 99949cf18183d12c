/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Signals: measurements of threads and programs that not every machine or kernel offers. A policy names those that it needs.
 */
#ifndef ASYM_SIGNAL_H
#define ASYM_SIGNAL_H

#include <stdint.h>

#include <asym/machine.h>

/** The signals that a policy may need (docs/policies.md, rule 6). */
enum asym_signal {
    ASYM_SIGNAL_RUNNABLE, /**< runnable counts from schedstat */
    ASYM_SIGNAL_IPC,      /**< instructions and cycles per thread */
    ASYM_SIGNAL_STALL,    /**< cache misses per thread */
    ASYM_SIGNAL_PROFILE,  /**< profiles of executables, measured beforehand */
    ASYM_SIGNAL_SMT,      /**< cores with more than one hardware thread */
    ASYM_N_SIGNALS
};

/** Returns the name of a signal, such as "runnable" or "ipc". A static string. */
const char *asym_signal_name(enum asym_signal signal);

/**
 * Measurements of a program on each core type, taken beforehand by asymctl profile. The index is that of the core types of this
 * machine.
 */
struct asym_profile {
    double ips[ASYM_MAX_TYPES];  /**< instructions per second; 0: not measured on that type */
    double mpki[ASYM_MAX_TYPES]; /**< LLC misses per kilo-instruction; < 0: not measured */
};

/** The counts of a thread over the interval. Only threads that the last plan counts have one (asym_plan_task.counted). */
struct asym_sample {
    uint32_t task;       /**< index into asym_snapshot.tasks */
    double seconds;      /**< time on a CPU during the interval, in seconds */
    double instructions; /**< this and the next two: < 0 if they could not be counted */
    double cycles;
    double llc_misses;
};

#endif
