/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The socket of the state directory: for root, and for the user who runs asymd. */
#include "bus/bus-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/macro.h"

/* Linux 6.16; libc's headers do not have it yet. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static int on_hello(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return sd_bus_reply_method_return(m, "s", ":1.1");
}

/* A client such as busctl expects a bus, and greets it before it calls asymd. There is no bus daemon here to answer. */
static const sd_bus_vtable greeting[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Hello", SD_BUS_NO_ARGS, "s", on_hello, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

/* Takes fd. */
static int start(int fd, sd_bus **ret)
{
    sd_id128_t id;
    sd_bus *bus = NULL;
    int r = sd_bus_new(&bus);
    if (r >= 0)
        r = sd_bus_set_fd(bus, fd, fd);
    if (r < 0) {
        close(fd);
        sd_bus_unref(bus);
        return r;
    }
    r = sd_id128_randomize(&id);
    if (r >= 0)
        r = sd_bus_set_server(bus, true, id);
    if (r >= 0)
        r = sd_bus_negotiate_fds(bus, false);
    if (r >= 0)
        r = sd_bus_negotiate_creds(bus, false, 0);
    if (r >= 0)
        r = sd_bus_set_description(bus, "asymd-direct");
    if (r >= 0)
        r = sd_bus_start(bus);
    if (r >= 0)
        r = asym_bus_add_object(bus, "/org/freedesktop/DBus", "org.freedesktop.DBus", greeting, NULL);
    if (r < 0) {
        sd_bus_close_unref(bus);
        return r;
    }
    /* sd-bus has made it 8 MiB, which a client that does not read would fill. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ASYM_BUS_SOCKET_BUFFER}, sizeof(int));
    *ret = bus;
    return 0;
}

int asym_bus_add_direct(struct asym_bus *bus, int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    size_t place = 0;
    sd_bus *connection;
    while (place < ASYM_BUS_MAX_DIRECT && bus->direct[place])
        place++;
    int r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 ? -errno : 0;
    if (r >= 0 && peer.uid != 0 && peer.uid != geteuid())
        r = -EACCES;
    if (r >= 0 && place == ASYM_BUS_MAX_DIRECT)
        r = -EBUSY;
    if (r < 0) {
        close(fd);
        return r;
    }
    r = start(fd, &connection);
    if (r >= 0)
        r = asym_bus_link_new(bus, connection, false, peer.uid, &bus->direct[place]);
    return r;
}

/*
 * The listening socket stays readable while more clients wait: one a call. Where asymd has no descriptor or memory for a client,
 * it would wake again at once: it waits for the next housekeeping.
 */
static int on_listen(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
    struct asym_bus *bus = userdata;
    const asym_usec begun = asym_bus_take_turn(bus);
    const int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
    if (client >= 0 && asym_bus_add_direct(bus, client) < 0)
        bus->totals.refused++;
    bus->spent += asym_clock_thread_cpu() - begun;
    return 0;
}

/* bind(2) gives the file the mode of the socket, so that there is no moment in which others can connect. */
static int bind_socket(const char *path, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int off = 0;
    memcpy(address.sun_path, path, sizeof address.sun_path);
    ASYM_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* The kernel refuses descriptors at the sender, from Linux 6.16 on. Accepted sockets inherit that. */
    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
    /* A killed asymd leaves its socket behind. No other asymd runs here: this one holds the lock of the ledger. */
    if ((unlink(path) < 0 && errno != ENOENT) || fchmod(fd, 0600) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, ASYM_BUS_MAX_DIRECT) < 0)
        return -errno;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int asym_bus_listen(struct asym_bus *bus, const char *dir, struct asym_error *err)
{
    const int n = snprintf(bus->path, sizeof bus->path, "%s/bus", dir);
    if (n < 0 || (size_t)n >= sizeof bus->path) {
        bus->path[0] = '\0';
        return asym_fail(err, -ENAMETOOLONG, "%s/bus: %s", dir, strerror(ENAMETOOLONG));
    }
    int r = bind_socket(bus->path, &bus->listener);
    if (r >= 0)
        r = sd_event_add_io(bus->config.event, &bus->listen, bus->listener, EPOLLIN, on_listen, bus);
    return r < 0 ? asym_fail(err, r, "%s: %s", bus->path, strerror(-r)) : 0;
}

void asym_bus_unlisten(struct asym_bus *bus)
{
    sd_event_source_disable_unref(bus->listen);
    if (bus->listener >= 0) {
        close(bus->listener);
        unlink(bus->path);
    }
}
