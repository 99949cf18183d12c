/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report on who waits for whom. org.asymd.Manager(5), GetReport, has its keys. */
#ifndef ASYM_DAEMON_ASYMD_BUS_WAITS_H
#define ASYM_DAEMON_ASYMD_BUS_WAITS_H

#include <stdint.h>

#include <jansson.h>

#include "bus/bus.h"
#include "explain/explain.h"

struct asym_service;

enum { ASYM_BUS_WAITS = 16 }; /**< the most threads of a report: each costs system calls */

/**
 * Make the report on the thread or program of the explanation, which the caller may see. Begins to measure. A user other than root
 * gets it for processes of its own only, whatever /proc shows: which thread wakes which stands nowhere else. Returns it; NULL: no
 * memory.
 */
json_t *asym_bus_waits(struct asym_service *s, const struct asym_bus_caller *caller, const struct asym_explanation *e,
                       int32_t id, asym_usec now);

#endif
