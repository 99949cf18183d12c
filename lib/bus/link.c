/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection on the event loop. asymd drives sd-bus itself, and not by sd_bus_attach_event: so it can leave the socket of the
 * system bus alone while its CPU time is spent.
 */
#include "bus/bus-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <syslog.h>

#include "base/clock.h"

/* Messages come after samples, programs that report, and signals. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

static bool is_overdrawn(const struct asym_bus_link *link)
{
    return link->is_system && !asym_token_bucket_has(&link->owner->cpu_time, asym_clock_now());
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

asym_usec asym_bus_take_turn(struct asym_bus *bus)
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
    const asym_usec begun = asym_bus_take_turn(bus);
    asym_usec at = begun;
    bus->is_dispatching = true;
    while (serve(link, &at) && link->is_system && at - begun < ASYM_BUS_SLICE && !is_overdrawn(link))
        ;
    bus->is_dispatching = false;
    asym_bus_sweep(bus);
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
        asym_bus_sweep(link->owner); /* the bucket was overdrawn: read the socket again */
    return 0;
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

int asym_bus_add_object(sd_bus *bus, const char *path, const char *interface, const sd_bus_vtable *vtable,
                        void *userdata)
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
    return r < 0 ? r
                 : asym_bus_add_object(link->bus, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, link->owner->config.vtable, link);
}

int asym_bus_link_new(struct asym_bus *owner, sd_bus *bus, bool is_system, uid_t uid, struct asym_bus_link **ret)
{
    struct asym_bus_link *link = calloc(1, sizeof *link);
    if (!link) {
        sd_bus_close_unref(bus);
        return -ENOMEM;
    }
    *link = (struct asym_bus_link){.owner = owner, .bus = bus, .is_system = is_system, .uid = uid};
    int r = attach(link);
    if (r < 0) {
        asym_bus_link_free(link);
        return r;
    }
    arm_link(link);
    *ret = link;
    return 0;
}

/* sd_bus_close discards what is queued; sd_bus_flush would wait for the client. */
void asym_bus_link_free(struct asym_bus_link *link)
{
    sd_event_source_disable_unref(link->io);
    sd_event_source_disable_unref(link->timer);
    sd_bus_close_unref(link->bus);
    free(link);
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

void asym_bus_sweep(struct asym_bus *bus)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_DIRECT; i++) {
        struct asym_bus_link *link = bus->direct[i];
        if (link)
            bound(link);
        if (!link || !link->ended)
            continue;
        if (link->why_end) {
            bus->totals.lost++;
            asym_bus_say(bus, ASYM_BUS_CLIENTS, LOG_NOTICE, "asymd closes a connection to %s: %s", bus->path,
                         link->why_end);
        }
        bus->direct[i] = NULL;
        asym_bus_link_free(link);
    }
    if (bus->system)
        bound(bus->system);
    if (bus->system && bus->system->ended)
        asym_bus_lose_system(bus, asym_clock_now());
}
