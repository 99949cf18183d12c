/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The listening socket of asymd-exporter. */
#ifndef ASYM_DAEMON_EXPORTER_LISTEN_H
#define ASYM_DAEMON_EXPORTER_LISTEN_H

#include <stddef.h>

#include <asym/error.h>

/** Loopback. The port is outside of 9100 to 9999, in which other exporters have every number. */
#define ASYM_EXPORTER_ADDRESS "127.0.0.1:10642"

/**
 * Listen on an address: "127.0.0.1:10642", "[::1]:10642". Port 0 is a free one. Returns the socket; -EINVAL: it is no such
 * address; -errno: the kernel refuses. Errors are one sentence in err.
 */
int asym_exporter_listen(const char *address, struct asym_error *err);

/** Returns the socket that systemd has handed over (LISTEN_FDS); -ENOENT without err: none; -EINVAL: not one TCP socket. */
int asym_exporter_take_socket(struct asym_error *err);

/** Write the address of the socket, as asym_exporter_listen takes it. Returns buf. */
const char *asym_exporter_address(int socket, char *buf, size_t size);

#endif
