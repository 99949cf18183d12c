/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The times of a monitoring turn and of the execution after it, which eshmp and ipc-driven share (Nie & Duan 2012, 3.1 and
 * 4.1: both monitor for 5 ticks, so that the comparison is fair), and how a turn is reported.
 */
#ifndef ASYM_POLICY_MONITORING_H
#define ASYM_POLICY_MONITORING_H

#include <asym/policy.h>

/** Part of a policy's parameters. */
struct asym_monitoring {
    asym_usec tick;
    unsigned monitor_ticks, execution_ticks;
};

/** Option rows of asym_monitoring, which stands at the front of the params type. */
#define ASYM_MONITORING_OPTIONS                                                                                        \
    ASYM_OPTION(struct asym_monitoring, DURATION, tick, .def = "10ms", .min = 1000, .max = 1e6,                        \
                .help = "The unit of monitoring and execution (Nie & Duan 2012, 3.1). Both end at a sample: the "      \
                        "interval rounds them up."),                                                                   \
        ASYM_OPTION(struct asym_monitoring, COUNT, monitor_ticks, .def = "5", .min = 1, .max = 1000,                   \
                    .help = "Ticks of a monitoring turn (Nie & Duan 2012, 3.1 and 4.1)."),                             \
        ASYM_OPTION(struct asym_monitoring, COUNT, execution_ticks, .def = "10", .min = 1, .max = 10000,               \
                    .help = "Ticks of execution between monitoring (Nie & Duan 2012, 3.1).")

/** Returns the length of a monitoring turn. */
static inline asym_usec asym_monitoring_turn(const struct asym_monitoring *m)
{
    return m->monitor_ticks * m->tick;
}

/** Returns the time between two periods of monitoring. */
static inline asym_usec asym_monitoring_execution(const struct asym_monitoring *m)
{
    return m->execution_ticks * m->tick;
}

/** The reasons of a thread that waits for its first turn, and of one whose turn it is. */
static const struct asym_reason asym_monitoring_not_measured = {
    .text = "not measured yet: others go first",
    .sentence = "is not measured yet, so threads that asymd has measured come before it"};
static const struct asym_reason asym_monitoring_measured = {
    .text = "measured for %.0f of %.0f ms",
    .sentence = "is being measured: %.0f of %.0f ms have passed",
    .rotates = true};

/** Sets the reason of a thread whose turn has lasted for age. */
static inline void asym_monitoring_explain(const struct asym_monitoring *m, asym_usec age, struct asym_assignment *ret)
{
    ret->reason = &asym_monitoring_measured;
    ret->figure[0] = (double)age / ASYM_MSEC;
    ret->figure[1] = (double)asym_monitoring_turn(m) / ASYM_MSEC;
}

#endif
