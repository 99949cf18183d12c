/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The bus in the service: opens it, and announces what has changed. */
#ifndef ASYM_DAEMON_ASYMD_SERVICE_BUS_H
#define ASYM_DAEMON_ASYMD_SERVICE_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

#include "daemon/asymd/service-control.h"

struct asym_service;

/** The properties whose changes the bus announces, as it announced them last. */
struct asym_bus_announced {
    char policy[64], policy_reason[ASYM_POLICY_REASON];
    bool paused;
    uint64_t paused_until;
    uint32_t threads_steered;
};

/** Open the bus, after the first cycle. Without it the service still steers; the log says why there is none. */
void asym_service_bus_open(struct asym_service *s);

/** Close it, before the monitor and the event loop. */
void asym_service_bus_close(struct asym_service *s);

/**
 * Call this about every second. It announces what has changed without an order, for example when asymd has steered threads.
 */
void asym_service_bus_housekeeping(struct asym_service *s, asym_usec now);

#endif
