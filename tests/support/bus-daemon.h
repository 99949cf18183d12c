/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A system bus of the test's own, and connections to an asymd. The bus has the rules of the system's one, and those of
 * dbus/org.asymd.conf. A failure ends in an assertion.
 */
#ifndef ASYM_TESTS_SUPPORT_BUS_DAEMON_H
#define ASYM_TESTS_SUPPORT_BUS_DAEMON_H

#include <stdbool.h>

#include <systemd/sd-bus.h>

/** Set DBUS_SYSTEM_BUS_ADDRESS for the test and the programs that it starts. The bus does not run yet. */
void asym_bus_daemon_prepare(void);

/** Start the bus, and wait until it takes connections. */
void asym_bus_daemon_start(void);

/** End the bus, if it runs, and remove its files. */
void asym_bus_daemon_stop(void);

/** Connect to the bus. This works in a child process of another user, too; there a failure ends the process. */
sd_bus *asym_bus_daemon_connect(void);

/** Connect to the bus, and wait until asymd has its name. */
sd_bus *asym_bus_daemon_await_asymd(void);

/** Wait until asymd listens on DIR/bus, and connect to it. */
sd_bus *asym_bus_daemon_direct(const char *dir);

/**
 * Call a method of asymd without a result, and without arguments if types is NULL. Returns 0; -errno. ret_error gets the D-Bus
 * name of the error, "" for none; NULL: not wanted.
 */
int asym_bus_daemon_call(sd_bus *bus, const char *member, char ret_error[128], const char *types, ...);

/** Read a property of asymd into ret, of a basic type. Returns 0; -errno. */
int asym_bus_daemon_get(sd_bus *bus, const char *name, char type, void *ret);

#endif
