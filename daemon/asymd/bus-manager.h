/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The object org.asymd.Manager: its table of properties, methods and signals, and the functions behind them. The userdata of the
 * bus (lib/bus/bus.h) is the service. org.asymd.Manager(5) describes it for users.
 */
#ifndef ASYM_DAEMON_ASYMD_BUS_MANAGER_H
#define ASYM_DAEMON_ASYMD_BUS_MANAGER_H

#include <asym/error.h>

#include "bus/bus.h"

extern const sd_bus_vtable asym_bus_manager_vtable[];
extern const struct asym_bus_method asym_bus_manager_methods[];

/** Set error for -errno of service-control.h, with its text. Returns -errno. */
int asym_bus_manager_fail(sd_bus_error *error, int r, const struct asym_error *err);

#endif
