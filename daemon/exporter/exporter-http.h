/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The HTTP server of asymd-exporter: /metrics and nothing else. One thread of its own serves all clients. If too many clients keep
 * their connections, it ends the oldest one.
 */
#ifndef ASYM_DAEMON_EXPORTER_HTTP_H
#define ASYM_DAEMON_EXPORTER_HTTP_H

struct asym_exporter_http;

/**
 * Serve on a listening socket, which asym_exporter_http_stop closes. Another process that has the socket can use it afterwards.
 * Returns 0; -ENOMEM; -EIO: the server cannot start.
 */
int asym_exporter_http_start(int socket, struct asym_exporter_http **ret);

/** End all connections. http: may be NULL. */
void asym_exporter_http_stop(struct asym_exporter_http *http);

#endif
