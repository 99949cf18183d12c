/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The three parts of asymd-exporter: its HTTP server, the text that this serves, and the listening socket. */
#ifndef ASYM_DAEMON_EXPORTER_H
#define ASYM_DAEMON_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

/*
 * The HTTP server: /metrics and nothing else. One thread of its own serves all clients. If too many clients keep their
 * connections, it ends the oldest one.
 */

struct asym_exporter_http;

/**
 * Serve on a listening socket, which asym_exporter_http_stop closes. Another process that has the socket can use it afterwards.
 * Returns 0; -ENOMEM; -EIO: the server cannot start.
 */
int asym_exporter_http_start(int socket, struct asym_exporter_http **ret);

/** End all connections. http: may be NULL. */
void asym_exporter_http_stop(struct asym_exporter_http *http);

/* The counters of the running asymd, from the bus, as text. */

/** The time for which an answer of asymd, or its absence, counts, from its arrival. Scrapes in this time do not ask asymd again. */
#define ASYM_EXPORTER_FRESH ASYM_SEC

/** Start with zeros. */
struct asym_exporter_text {
    struct asym_client *client; /**< NULL: not connected */
    bool good; /**< true: text is OpenMetrics; false: text is a sentence that says why there are no metrics */
    char *text;
    char *plain;      /**< the same in Prometheus' older format, if good */
    asym_usec expiry; /**< CLOCK_MONOTONIC */
};

/** Read the counters, unless the text is fresh. Returns 0; -ENOMEM: there is no text. */
int asym_exporter_text_read(struct asym_exporter_text *t);

void asym_exporter_text_done(struct asym_exporter_text *t);

/* The listening socket of asymd-exporter. */

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
