/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The listening socket. */
#include "daemon/exporter/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"

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
