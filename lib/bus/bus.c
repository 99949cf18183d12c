/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bus/bus-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/macro.h"

/* Logs a line, if there is a log. */
__attribute__((format(printf, 4, 5))) static void say(const struct asym_bus *bus, enum asym_bus_topic topic,
                                                      int priority, const char *format, ...)
{
    char text[512];
    va_list args;
    if (!bus->config.say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bus->config.say(bus->config.userdata, topic, priority, text);
}

/* A connection on the event loop. */

/* Messages come after samples, programs that report, and signals. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

static bool is_overdrawn(const struct asym_bus_link *link)
{
    return link->is_system && !asym_token_bucket_has(&link->owner->cpu_time, asym_clock_now());
}

static int watch(struct asym_bus_link *link, int events, uint64_t due)
{
    int r = 0;
    if (events != 0)
        r = sd_event_source_set_io_events(link->io, (uint32_t)events);
    if (r >= 0)
        r = sd_event_source_set_enabled(link->io, events != 0 ? SD_EVENT_ON : SD_EVENT_OFF);
    if (r >= 0 && due != UINT64_MAX)
        r = sd_event_source_set_time(link->timer, due);
    if (r >= 0)
        r = sd_event_source_set_enabled(link->timer, due != UINT64_MAX ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
    return r;
}

/* Watches for what the connection waits for now, after each use of it. */
static void arm_link(struct asym_bus_link *link)
{
    uint64_t due = UINT64_MAX;
    int r;
    const bool reads = !is_overdrawn(link);
    if (!reads) {
        r = watch(link, 0, asym_token_bucket_due(&link->owner->cpu_time));
    } else {
        const int events = sd_bus_get_events(link->bus);
        r = events < 0 ? events : sd_bus_get_timeout(link->bus, &due);
        if (r >= 0)
            r = watch(link, events, link->has_more ? 0 : due);
    }
    if (r < 0)
        link->ended = true;
}

/* sd_bus_close discards what is queued; sd_bus_flush would wait for the client. */
static void free_link(struct asym_bus_link *link)
{
    sd_event_source_disable_unref(link->io);
    sd_event_source_disable_unref(link->timer);
    sd_bus_close_unref(link->bus);
    free(link);
}

/* How asymd stands to the system bus, as last logged: it tries again every few seconds, and logs a change only. */
static void tell(struct asym_bus *bus, enum asym_bus_system_state state, const char *why)
{
    if (bus->system_state == state)
        return;
    bus->system_state = state;
    switch (state) {
    case ASYM_BUS_SYSTEM_OWNED:
        say(bus, ASYM_BUS_SYSTEM, LOG_INFO, "users can ask asymd, as " ASYM_BUS_NAME);
        break;
    case ASYM_BUS_SYSTEM_REFUSED:
        say(bus, ASYM_BUS_SYSTEM, LOG_NOTICE,
            "it does not give asymd the name " ASYM_BUS_NAME ": %s; only root and the user who runs asymd can ask it",
            why);
        break;
    case ASYM_BUS_SYSTEM_ABSENT:
        say(bus, ASYM_BUS_SYSTEM, LOG_NOTICE, "no connection: %s; only root and the user who runs asymd can ask it",
            why);
        break;
    case ASYM_BUS_SYSTEM_UNKNOWN:
        break;
    }
}

static void lose_system(struct asym_bus *bus, asym_usec now)
{
    const char *why = bus->system->why_end;
    bus->totals.lost += why != NULL;
    asym_bus_forget_callers(bus);
    free_link(bus->system);
    bus->system = NULL;
    bus->has_name = false;
    bus->retry_at = now + ASYM_BUS_RETRY;
    tell(bus, ASYM_BUS_SYSTEM_ABSENT, why ? why : "the bus daemon has closed the connection");
}

/*
 * The bus daemon does not read, either, while another client leaves unread what asymd has sent it. A new connection starts with
 * an empty queue.
 */
static void bound(struct asym_bus_link *link)
{
    uint64_t n = 0;
    if (!link->ended && sd_bus_get_n_queued_write(link->bus, &n) >= 0 && n >= ASYM_BUS_MAX_QUEUED) {
        link->ended = true;
        link->why_end = link->is_system ? "the bus daemon does not read, so asymd has closed the connection"
                                        : "it does not read its messages";
    }
    if (!link->ended)
        arm_link(link);
}

static void sweep(struct asym_bus *bus)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_DIRECT; i++) {
        struct asym_bus_link *link = bus->direct[i];
        if (link)
            bound(link);
        if (!link || !link->ended)
            continue;
        if (link->why_end) {
            bus->totals.lost++;
            say(bus, ASYM_BUS_CLIENTS, LOG_NOTICE, "asymd closes a connection to %s: %s", bus->path, link->why_end);
        }
        bus->direct[i] = NULL;
        free_link(link);
    }
    if (bus->system)
        bound(bus->system);
    if (bus->system && bus->system->ended)
        lose_system(bus, asym_clock_now());
}

/*
 * The end of the handshake and the first messages can come in one read: sd-bus then holds messages that no poll shows, until a
 * call of sd_bus_process finds none. From then on sd-bus reads no further than the end of a message, and the socket and the
 * timeout of sd-bus show all of its work.
 */
static bool has_hidden_work(struct asym_bus_link *link, bool was_ready, bool has_worked)
{
    link->is_drained |= was_ready && !has_worked;
    return has_worked && !link->is_drained;
}

/* Returns the CPU time of the thread from which on it works for the bus. The begin of a turn counts once. */
static asym_usec take_turn(struct asym_bus *bus)
{
    const asym_usec begun = bus->turn_begun ? bus->turn_begun : asym_clock_thread_cpu();
    bus->turn_begun = 0;
    return begun;
}

/* Serve one message, charge the CPU time since *at, and set *at. Returns whether there may be another one. */
static bool serve(struct asym_bus_link *link, asym_usec *at)
{
    struct asym_bus *bus = link->owner;
    const bool was_ready = sd_bus_is_ready(link->bus) > 0;
    const int r = sd_bus_process(link->bus, NULL);
    link->has_more = has_hidden_work(link, was_ready, r > 0);
    if (r < 0 || sd_bus_is_open(link->bus) <= 0)
        link->ended = true;
    const asym_usec now = asym_clock_thread_cpu(), cpu = now - *at;
    *at = now;
    bus->spent += cpu;
    if (link->is_system)
        asym_token_bucket_charge(&bus->cpu_time, (double)cpu, asym_clock_now());
    return r > 0 && !link->ended;
}

/* A client on the socket of its own waits for its answer: one message a turn. The system bus has the messages of all users. */
static void process(struct asym_bus_link *link)
{
    struct asym_bus *bus = link->owner;
    const asym_usec begun = take_turn(bus);
    asym_usec at = begun;
    bus->is_dispatching = true;
    while (serve(link, &at) && link->is_system && at - begun < ASYM_BUS_SLICE && !is_overdrawn(link))
        ;
    bus->is_dispatching = false;
    sweep(bus);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
    process(userdata);
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct asym_bus_link *link = userdata;
    uint64_t due = UINT64_MAX;
    if (!is_overdrawn(link) &&
        (link->has_more || (sd_bus_get_timeout(link->bus, &due) >= 0 && due <= asym_clock_now())))
        process(link);
    else
        sweep(link->owner); /* the bucket was overdrawn: read the socket again */
    return 0;
}

/*
 * Adds an object to a started connection. Returns 0 or more; -errno. Where memory is short, libsystemd leaves a part of the path
 * behind, and aborts when it frees the connection: after -ENOMEM it is closed like another, and never freed.
 */
static int add_object(sd_bus *bus, const char *path, const char *interface, const sd_bus_vtable *vtable, void *userdata)
{
    const int r = sd_bus_add_object_vtable(bus, NULL, path, interface, vtable, userdata);
    if (r == -ENOMEM)
        sd_bus_ref(bus);
    return r;
}

static int attach(struct asym_bus_link *link)
{
    sd_event *event = link->owner->config.event;
    int r = sd_event_add_io(event, &link->io, sd_bus_get_fd(link->bus), 0, on_io, link);
    if (r >= 0)
        r = sd_event_add_time(event, &link->timer, CLOCK_MONOTONIC, 0, ASYM_MSEC, on_timer, link);
    if (r >= 0)
        r = sd_event_source_set_priority(link->io, PRIORITY);
    if (r >= 0)
        r = sd_event_source_set_priority(link->timer, PRIORITY);
    return r < 0 ? r : add_object(link->bus, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, link->owner->config.vtable, link);
}

/* Puts a started connection on the event loop, with the object. Takes bus. Returns 0; -errno. */
static int new_link(struct asym_bus *owner, sd_bus *bus, bool is_system, uid_t uid, struct asym_bus_link **ret)
{
    struct asym_bus_link *link = calloc(1, sizeof *link);
    if (!link) {
        sd_bus_close_unref(bus);
        return -ENOMEM;
    }
    *link = (struct asym_bus_link){.owner = owner, .bus = bus, .is_system = is_system, .uid = uid};
    int r = attach(link);
    if (r < 0) {
        free_link(link);
        return r;
    }
    arm_link(link);
    *ret = link;
    return 0;
}

/* The socket. */

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
static int start_client(int fd, sd_bus **ret)
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
        r = add_object(bus, "/org/freedesktop/DBus", "org.freedesktop.DBus", greeting, NULL);
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
    r = start_client(fd, &connection);
    if (r >= 0)
        r = new_link(bus, connection, false, peer.uid, &bus->direct[place]);
    return r;
}

/*
 * The listening socket stays readable while more clients wait: one a call. Where asymd has no descriptor or memory for a client,
 * it would wake again at once: it waits for the next housekeeping.
 */
static int on_listen(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
    struct asym_bus *bus = userdata;
    const asym_usec begun = take_turn(bus);
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

static int open_listener(struct asym_bus *bus, const char *dir, struct asym_error *err)
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

static void close_listener(struct asym_bus *bus)
{
    sd_event_source_disable_unref(bus->listen);
    if (bus->listener >= 0) {
        close(bus->listener);
        unlink(bus->path);
    }
}

/* The system bus. */

#define USUAL_ADDRESS "unix:path=/run/dbus/system_bus_socket"

/* Answers of RequestName. */
enum { NAME_OWNED = 1, NAME_IS_MINE = 4 };

static int on_name(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus *bus = userdata;
    uint32_t answer = 0;
    if (sd_bus_message_is_method_error(m, NULL)) {
        tell(bus, ASYM_BUS_SYSTEM_REFUSED, sd_bus_message_get_error(m)->message);
    } else if (sd_bus_message_read(m, "u", &answer) < 0 || (answer != NAME_OWNED && answer != NAME_IS_MINE)) {
        tell(bus, ASYM_BUS_SYSTEM_REFUSED, "another process has it");
    } else {
        bus->has_name = true;
        tell(bus, ASYM_BUS_SYSTEM_OWNED, NULL);
    }
    return 0;
}

static int start(struct asym_bus *bus, sd_bus **ret)
{
    const char *set = bus->config.system_address ? bus->config.system_address : getenv("DBUS_SYSTEM_BUS_ADDRESS");
    sd_bus *b = NULL;
    int r = sd_bus_new(&b);
    if (r >= 0)
        r = sd_bus_set_address(b, set ? set : USUAL_ADDRESS);
    if (r >= 0)
        r = sd_bus_set_bus_client(b, true);
    if (r >= 0)
        r = sd_bus_negotiate_fds(b, false);
    if (r >= 0)
        r = sd_bus_set_description(b, "asymd-system");
    if (r >= 0)
        r = sd_bus_start(b); /* makes the first call, which keeps the timeout of sd-bus: the bus daemon may hang */
    if (r >= 0)
        r = sd_bus_set_method_call_timeout(b, ASYM_BUS_NO_TIMEOUT);
    if (r < 0)
        sd_bus_close_unref(b);
    else
        *ret = b;
    return r;
}

/* The request waits in the queue of the connection until the bus daemon has answered Hello. */
static int request_name(struct asym_bus *bus, sd_bus *b)
{
    return sd_bus_request_name_async(b, NULL, ASYM_BUS_NAME, 0, on_name, bus);
}

static void connect_system(struct asym_bus *bus, asym_usec now)
{
    sd_bus *b;
    if (bus->config.no_system_bus || now < bus->retry_at)
        return;
    bus->retry_at = now + ASYM_BUS_RETRY;
    if (bus->system) {
        /* The bus daemon may read asymd's policy file, or lose the other owner, only after asymd has asked. */
        if (bus->system_state == ASYM_BUS_SYSTEM_REFUSED && !bus->has_name)
            request_name(bus, bus->system->bus);
        return;
    }
    int r = start(bus, &b);
    if (r >= 0)
        r = new_link(bus, b, true, 0, &bus->system);
    if (r >= 0) {
        r = request_name(bus, b);
        bus->system->ended = r < 0;
        sweep(bus);
    }
    if (r < 0)
        tell(bus, ASYM_BUS_SYSTEM_ABSENT, strerror(-r));
}

int asym_bus_open(const struct asym_bus_config *config, struct asym_bus **ret_bus, struct asym_error *err)
{
    struct asym_bus *bus = calloc(1, sizeof *bus);
    if (!bus)
        return asym_fail(err, -ENOMEM, "no memory for the bus");
    bus->config = *config;
    bus->listener = -1;
    bus->cpu_time = asym_token_bucket_full(config->share > 0 ? config->share : ASYM_BUS_SHARE, ASYM_BUS_BURST,
                                           asym_clock_now());
    bus->cpu_time.resume = ASYM_BUS_BURST * ASYM_BUS_RESUME;
    /* The other users must not wait until a dear call is paid for. */
    bus->cpu_time.most_debt = ASYM_BUS_BURST * ASYM_BUS_DEBT;
    int r = config->dir ? open_listener(bus, config->dir, err) : 0;
    if (r < 0) {
        asym_bus_close(bus);
        return r;
    }
    connect_system(bus, asym_clock_now());
    *ret_bus = bus;
    return 0;
}

void asym_bus_close(struct asym_bus *bus)
{
    if (!bus)
        return;
    close_listener(bus);
    asym_bus_forget_callers(bus);
    for (size_t i = 0; i < ASYM_LENGTH(bus->direct); i++)
        if (bus->direct[i])
            free_link(bus->direct[i]);
    if (bus->system)
        free_link(bus->system);
    free(bus);
}

void asym_bus_begin_turn(struct asym_bus *bus)
{
    if (bus)
        bus->turn_begun = asym_clock_thread_cpu();
}

void asym_bus_housekeeping(struct asym_bus *bus, asym_usec now)
{
    if (bus->listen)
        sd_event_source_set_enabled(bus->listen, SD_EVENT_ON);
    connect_system(bus, now);
    if (!bus->is_dispatching)
        sweep(bus);
}

void *asym_bus_userdata(void *link)
{
    return ((struct asym_bus_link *)link)->owner->config.userdata;
}

void asym_bus_emit_changed(struct asym_bus *bus, char *const *names)
{
    const asym_usec begun = asym_clock_thread_cpu();
    if (bus->system && !bus->system->ended)
        sd_bus_emit_properties_changed_strv(bus->system->bus, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, (char **)names);
    /* The dispatch of a message counts its whole time, and sweeps at its end. */
    if (bus->is_dispatching)
        return;
    bus->spent += asym_clock_thread_cpu() - begun;
    sweep(bus);
}

asym_usec asym_bus_spent(const struct asym_bus *bus)
{
    return bus ? bus->spent : 0;
}

void asym_bus_totals(const struct asym_bus *bus, struct asym_bus_totals *ret)
{
    *ret = bus ? bus->totals : (struct asym_bus_totals){.calls = 0};
}
