/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/exporter/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "client/client.h"
#include "report/json.h"
#include "report/openmetrics.h"

/* A client that stays silent for this time loses its connection, so that silent clients cannot shut others out. */
#define TIMEOUT_SECONDS 10u
#define CONNECTIONS_MAX 64u
/*
 * With more clients than this the oldest connection has to go. A client that sends a byte now and then is not silent, and would
 * keep its place for ever. It is below CONNECTIONS_MAX, at which libmicrohttpd accepts nothing.
 */
#define CONNECTIONS_KEPT (CONNECTIONS_MAX - 16u)
#define PLAIN            "text/plain; charset=utf-8"

struct connection {
    bool used;
    int fd;          /* -1: told to go */
    uint64_t number; /* in the order of the connections */
};

/* Only the thread of the server uses what follows the server. */
struct asym_exporter_http {
    struct MHD_Daemon *server;
    struct asym_exporter_text text;
    struct connection connections[CONNECTIONS_MAX];
    uint64_t n_connections; /* since the start */
};

/* Ends the oldest connection if there are too many. libmicrohttpd sees the end, and frees the place. */
static void make_room(struct asym_exporter_http *http)
{
    struct connection *oldest = NULL;
    unsigned n = 0;
    for (struct connection *c = http->connections; c < http->connections + CONNECTIONS_MAX; c++) {
        if (!c->used || c->fd < 0)
            continue;
        n++;
        if (!oldest || c->number < oldest->number)
            oldest = c;
    }
    if (n <= CONNECTIONS_KEPT)
        return;
    shutdown(oldest->fd, SHUT_RDWR);
    oldest->fd = -1;
}

static void add_connection(struct asym_exporter_http *http, struct MHD_Connection *from, void **ret_connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *c = http->connections;
    while (c < http->connections + CONNECTIONS_MAX && c->used)
        c++;
    if (!info || c == http->connections + CONNECTIONS_MAX)
        return;
    *c = (struct connection){.used = true, .fd = info->connect_fd, .number = http->n_connections++};
    *ret_connection = c;
    make_room(http);
}

/* libmicrohttpd calls it when a connection starts, and when it ends, before it closes the socket. */
static void on_connection(void *ctx, struct MHD_Connection *from, void **connection,
                          enum MHD_ConnectionNotificationCode code)
{
    struct connection *c = *connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        add_connection(ctx, from, connection);
    else if (c)
        c->used = false;
}

/* Queues an answer of which the library keeps a copy. */
static enum MHD_Result answer(struct MHD_Connection *to, unsigned status, const char *type, const char *text)
{
    /* The library copies the text, and does not change it. */
    struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                                    MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    enum MHD_Result r = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (r == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        r = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (r == MHD_YES)
        r = MHD_queue_response(to, status, response);
    MHD_destroy_response(response);
    return r;
}

/* A client that names OpenMetrics gets it, as Prometheus does. Others may know the older format only. */
static bool reads_openmetrics(struct MHD_Connection *from)
{
    const char *accepts = MHD_lookup_connection_value(from, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    return accepts && strstr(accepts, "application/openmetrics-text");
}

static enum MHD_Result answer_metrics(struct asym_exporter_http *http, struct MHD_Connection *to)
{
    if (asym_exporter_text_read(&http->text) < 0)
        return answer(to, MHD_HTTP_INTERNAL_SERVER_ERROR, PLAIN, "The exporter has no memory.\n");
    if (!http->text.good)
        return answer(to, MHD_HTTP_SERVICE_UNAVAILABLE, PLAIN, http->text.text);
    if (reads_openmetrics(to))
        return answer(to, MHD_HTTP_OK, ASYM_OPENMETRICS_TYPE, http->text.text);
    return answer(to, MHD_HTTP_OK, ASYM_PROMETHEUS_TYPE, http->text.plain);
}

/* libmicrohttpd calls it for the head of a request, and again for each part of the body and at its end. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *from, const char *url, const char *method,
                                  const char *version, const char *body, size_t *body_size, void **request)
{
    static int head_was_read;
    if (!*request) {
        *request = &head_was_read;
        return MHD_YES;
    }
    if (*body_size > 0) {
        *body_size = 0;
        return MHD_YES;
    }
    if (strcmp(url, "/metrics") != 0)
        return answer(from, MHD_HTTP_NOT_FOUND, PLAIN, "Not found. The metrics are at /metrics.\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer(from, MHD_HTTP_METHOD_NOT_ALLOWED, PLAIN, "Only GET and HEAD are allowed.\n");
    return answer_metrics(ctx, from);
}

int asym_exporter_http_start(int socket, struct asym_exporter_http **ret)
{
    struct asym_exporter_http *http = calloc(1, sizeof *http);
    if (!http)
        return -ENOMEM;
    http->server = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, on_request, http,
                                    MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
                                    MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_SECONDS, MHD_OPTION_NOTIFY_CONNECTION,
                                    on_connection, http, MHD_OPTION_END);
    if (!http->server) {
        free(http);
        return -EIO;
    }
    *ret = http;
    return 0;
}

void asym_exporter_http_stop(struct asym_exporter_http *http)
{
    if (!http)
        return;
    /*
     * Without this, libmicrohttpd shuts the listening socket down. systemd has the same socket, and could not start the exporter
     * with it again.
     */
    const int socket = MHD_quiesce_daemon(http->server);
    MHD_stop_daemon(http->server);
    if (socket >= 0)
        close(socket);
    asym_exporter_text_done(&http->text);
    free(http);
}
