/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counters of the running asymd, from the bus, as text. */
#include "daemon/exporter/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/macro.h"
#include "base/text.h"
#include "client/client.h"
#include "report/json.h"
#include "report/openmetrics.h"

/* Returns 0; the errors of client/client.h. */
static int read_counters(struct asym_exporter_text *t, json_t **ret, struct asym_error *err)
{
    int r = t->client ? 0 : asym_client_open(&t->client, err);
    if (r >= 0)
        r = asym_client_get_report(t->client, "counters", 0, ret, err);
    if (r < 0)
        asym_client_close(ASYM_TAKE(t->client));
    return r;
}

/* asymd may have been restarted since the last scrape. Then the old connection fails, and a new one does not. */
static int read_counters_again(struct asym_exporter_text *t, json_t **ret, struct asym_error *err)
{
    const bool had_connection = t->client;
    const int r = read_counters(t, ret, err);
    return r < 0 && had_connection && r != -ETIMEDOUT ? read_counters(t, ret, err) : r;
}

/* The user IDs that systemd gives to DynamicUser=. systemd hides their names from the bus daemon, whatever they are here. */
enum { DYNAMIC_UID_MIN = 61184, DYNAMIC_UID_MAX = 65519 };

static bool is_unknown_to_the_bus(uid_t uid)
{
    errno = 0;
    /* A name service that fails sets another error. */
    return (uid >= DYNAMIC_UID_MIN && uid <= DYNAMIC_UID_MAX) ||
           (!getpwuid(uid) && (errno == 0 || errno == ENOENT || errno == ESRCH));
}

/* Returns a sentence; NULL: no memory. The bus daemon closes the connection of a user that it does not know. */
static char *make_failure(const char *why)
{
    char *text = NULL;
    const uid_t uid = getuid();
    const char *said = *why ? why : "asymd did not answer";
    /* The service stops first: libnss-systemd shows systemd-sysusers the name of a running service's user. */
    const int n = is_unknown_to_the_bus(uid)
                      ? asprintf(&text,
                                 "%s\nIf asymd runs, the bus daemon does not know user %u, and closes its connections. "
                                 "Root can mend that: systemctl stop asymd-exporter.socket asymd-exporter && "
                                 "systemd-sysusers asymd-exporter.conf && systemctl start asymd-exporter.socket\n",
                                 said, (unsigned)uid)
                      : asprintf(&text, "%s\n", said);
    return n < 0 ? NULL : text;
}

static void forget(struct asym_exporter_text *t)
{
    free(ASYM_TAKE(t->text));
    free(ASYM_TAKE(t->plain));
}

/* Returns the text; NULL: no memory. */
static char *make_text(const json_t *counters, bool is_open)
{
    char *text = NULL;
    size_t size, n;
    FILE *out = open_memstream(&text, &size);
    ASYM_AUTO_FREE struct asym_metric *metrics = asym_metrics_read(counters, &n);
    const int r = out && metrics ? asym_openmetrics_print(metrics, n, is_open, out) : -ENOMEM;
    if (out && asym_close_text(out, &text) == 0 && r >= 0)
        return text;
    free(text);
    return NULL;
}

int asym_exporter_text_read(struct asym_exporter_text *t)
{
    ASYM_AUTO_JSON json_t *counters = NULL;
    struct asym_error err = {""};
    if (t->text && asym_clock_now() < t->expiry)
        return 0;
    forget(t);
    t->good = read_counters_again(t, &counters, &err) >= 0;
    t->text = t->good ? make_text(counters, true) : make_failure(err.text);
    t->plain = t->good ? make_text(counters, false) : NULL;
    if (!t->text || (t->good && !t->plain)) {
        forget(t);
        return -ENOMEM;
    }
    /* asymd may have taken seconds to answer, so the time before the read does not count. */
    t->expiry = asym_clock_now() + ASYM_EXPORTER_FRESH;
    return 0;
}

void asym_exporter_text_done(struct asym_exporter_text *t)
{
    asym_client_close(t->client);
    forget(t);
}

/* The listening socket. */

#define WAITING_CONNECTIONS 32

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse_port(const char *text, in_port_t *ret)
{
    char *end;
    const size_t digits = strspn(text, "0123456789");
    const unsigned long port = strtoul(text, &end, 10);
    if (digits == 0 || digits > 5 || text[digits] != '\0' || port > UINT16_MAX)
        return false;
    *ret = htons((uint16_t)port);
    return true;
}

/* Returns the bytes of *ret_address; 0: the text is no address. */
static socklen_t parse(const char *text, union address *ret_address)
{
    char host[INET6_ADDRSTRLEN];
    in_port_t port;
    const bool v6 = text[0] == '[';
    const char *end = strstr(text, v6 ? "]:" : ":");
    const char *start = text + v6;
    if (!end || (size_t)(end - start) >= sizeof host || !parse_port(end + 1 + v6, &port))
        return 0;
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    memset(ret_address, 0, sizeof *ret_address);
    if (v6) {
        ret_address->v6.sin6_family = AF_INET6;
        ret_address->v6.sin6_port = port;
        return inet_pton(AF_INET6, host, &ret_address->v6.sin6_addr) == 1 ? sizeof ret_address->v6 : 0;
    }
    ret_address->v4.sin_family = AF_INET;
    ret_address->v4.sin_port = port;
    return inet_pton(AF_INET, host, &ret_address->v4.sin_addr) == 1 ? sizeof ret_address->v4 : 0;
}

static int open_socket(const union address *address, socklen_t size)
{
    const int yes = 1;
    ASYM_AUTO_CLOSE int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 || bind(fd, &address->any, size) < 0 ||
        listen(fd, WAITING_CONNECTIONS) < 0)
        return -errno;
    const int opened = fd;
    fd = -1;
    return opened;
}

int asym_exporter_listen(const char *text, struct asym_error *err)
{
    union address address;
    char printable[128];
    const socklen_t size = parse(text, &address);
    asym_text_show(text, printable, sizeof printable);
    if (size == 0)
        return asym_fail(
            err, -EINVAL,
            "--listen: '%s' is not accepted; accepted are an IP address and a port, such as " ASYM_EXPORTER_ADDRESS
            " or [::1]:10642",
            printable);
    const int fd = open_socket(&address, size);
    return fd < 0 ? asym_fail(err, fd, "cannot listen on %s: %s", printable, strerror(-fd)) : fd;
}

int asym_exporter_take_socket(struct asym_error *err)
{
    const int n = sd_listen_fds(1);
    if (n == 0)
        return -ENOENT;
    if (n != 1)
        return asym_fail(err, -EINVAL,
                         n < 0 ? "LISTEN_FDS is not a number of sockets"
                               : "systemd has handed over several sockets; the exporter serves one");
    if (sd_is_socket_inet(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1, 0) <= 0)
        return asym_fail(err, -EINVAL, "the socket that systemd has handed over is no listening TCP socket");
    return SD_LISTEN_FDS_START;
}

const char *asym_exporter_address(int socket, char *buf, size_t size)
{
    union address address;
    char host[INET6_ADDRSTRLEN] = "";
    socklen_t n = sizeof address;
    snprintf(buf, size, "an unknown address");
    if (getsockname(socket, &address.any, &n) < 0)
        return buf;
    if (address.any.sa_family == AF_INET6 && inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host))
        snprintf(buf, size, "[%s]:%u", host, ntohs(address.v6.sin6_port));
    else if (address.any.sa_family == AF_INET && inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host))
        snprintf(buf, size, "%s:%u", host, ntohs(address.v4.sin_port));
    return buf;
}

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
