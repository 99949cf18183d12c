/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subscribers and their events. asymd sends an event to each subscriber by name, and no event to others. Direct clients show by
 * their queue that they do not read. For a client of the system bus the bus daemon reads, and keeps up to 127 MiB for it; so
 * asymd pings such a client, and its library answers when the client reads.
 */
#include "bus/bus-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"

/* Messages that wait in sd-bus before asymd leaves further events in the ring. */
#define QUEUE_FULL 64

static const char *name_of(sd_bus_message *m)
{
    const char *name = sd_bus_message_get_sender(m);
    return name ? name : "";
}

static struct asym_bus_subscriber *find(struct asym_bus *bus, const struct asym_bus_link *link, const char *name)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_SUBSCRIBERS; i++)
        if (bus->subscribers[i].link == link && (!link->is_system || strcmp(bus->subscribers[i].name, name) == 0))
            return &bus->subscribers[i];
    return NULL;
}

static void drop(struct asym_bus_subscriber *s)
{
    struct asym_bus *bus = s->owner;
    sd_bus_slot_unref(s->leaves);
    sd_bus_slot_unref(s->ping);
    *s = (struct asym_bus_subscriber){.owner = bus};
    if (--bus->n_subscribers == 0)
        asym_event_ring_free(&bus->ring);
}

/* A direct connection closes: its client sees that it has lost events. One of the system bus gets no more. */
static void lose(struct asym_bus_subscriber *s, const char *why)
{
    struct asym_bus *bus = s->owner;
    struct asym_bus_link *link = s->link;
    if (link->is_system) {
        bus->totals.lost++;
        asym_bus_say(bus, ASYM_BUS_CLIENTS, LOG_NOTICE,
                     "asymd sends no more decisions to %s (uid %u) on the system bus: %s", s->name, (unsigned)s->uid,
                     why);
    } else {
        asym_bus_link_end(link, why);
    }
    drop(s);
}

static int on_leave(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus_subscriber *s = userdata;
    (void)m;
    (void)error;
    drop(s);
    return 0;
}

/* Any answer of the client itself shows that it reads, an error of it, too. */
static int on_pong(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus_subscriber *s = userdata;
    const char *sender = sd_bus_message_get_sender(m);
    (void)error;
    s->owner->payer = s->uid;
    s->ping = sd_bus_slot_unref(s->ping);
    if (!sender || strcmp(sender, s->name) != 0)
        lose(s, "it does not answer");
    return 0;
}

static int ping(struct asym_bus_subscriber *s)
{
    sd_bus_message *m = NULL;
    int r = sd_bus_message_new_method_call(s->link->bus, &m, s->name, "/", "org.freedesktop.DBus.Peer", "Ping");
    if (r >= 0)
        r = sd_bus_call_async(s->link->bus, &s->ping, m, on_pong, s, ASYM_BUS_NO_TIMEOUT);
    sd_bus_message_unref(m);
    s->pinged = s->sent;
    s->wait = asym_bus_link_ask(s->link);
    return r;
}

void asym_bus_lose_late(struct asym_bus *bus)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_SUBSCRIBERS; i++) {
        struct asym_bus_subscriber *s = &bus->subscribers[i];
        if (s->ping && asym_bus_link_is_late(s->link, &s->wait, ASYM_BUS_PING_WITHIN))
            lose(s, "it does not answer");
    }
}

/* Without a callback sd-bus would close the connection when the bus daemon refuses the match. Then the next ping fails. */
static int on_match(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    (void)m;
    (void)userdata;
    (void)error;
    return 0;
}

/* One match a subscriber: a match for all names would wake asymd for every client of the bus. */
static int watch_name(struct asym_bus_subscriber *s)
{
    char match[256];
    snprintf(
        match, sizeof match,
        "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',interface='org.freedesktop.DBus',"
        "member='NameOwnerChanged',arg0='%s'",
        s->name);
    int r = sd_bus_add_match_async(s->link->bus, &s->leaves, match, on_leave, on_match, s);
    /* The client may have left before the match is there: then the ping fails. */
    return r < 0 ? r : ping(s);
}

static struct asym_bus_subscriber *find_place(struct asym_bus *bus, const struct asym_bus_link *link,
                                              const struct asym_bus_caller *caller)
{
    struct asym_bus_subscriber *place = NULL;
    unsigned n_of_user = 0, n_of_others = 0;
    for (size_t i = 0; i < ASYM_BUS_MAX_SUBSCRIBERS; i++) {
        struct asym_bus_subscriber *s = &bus->subscribers[i];
        if (!s->link && !place)
            place = s;
        n_of_user += s->link && s->link->is_system && s->uid == caller->uid;
        n_of_others += s->link && !s->is_root;
    }
    const bool is_refused = link->is_system && !caller->is_root &&
                            (n_of_user >= ASYM_BUS_MAX_SUBSCRIBERS_OF_USER ||
                             n_of_others >= ASYM_BUS_MAX_SUBSCRIBERS - ASYM_BUS_SUBSCRIBERS_OF_ROOT);
    return is_refused ? NULL : place;
}

int asym_bus_subscribe(struct asym_bus *bus, sd_bus_message *m, const struct asym_bus_caller *caller)
{
    struct asym_bus_link *link = asym_bus_link_of(bus, m);
    if (!link || strlen(name_of(m)) >= ASYM_BUS_NAME_SIZE)
        return -EINVAL;
    if (find(bus, link, name_of(m)))
        return 0;
    struct asym_bus_subscriber *s = find_place(bus, link, caller);
    if (!s)
        return -EBUSY;
    int r = asym_event_ring_alloc(&bus->ring, bus->config.event_size, ASYM_BUS_EVENTS);
    if (r < 0)
        return r;
    *s = (struct asym_bus_subscriber){
        .owner = bus, .link = link, .uid = caller->uid, .is_root = caller->is_root, .next = bus->ring.end};
    strcpy(s->name, name_of(m));
    bus->n_subscribers++;
    r = link->is_system ? watch_name(s) : 0;
    if (r < 0)
        drop(s);
    return r;
}

void asym_bus_unsubscribe(struct asym_bus *bus, sd_bus_message *m)
{
    const struct asym_bus_link *link = asym_bus_link_of(bus, m);
    struct asym_bus_subscriber *s = link ? find(bus, link, name_of(m)) : NULL;
    if (s)
        drop(s);
}

void asym_bus_forget_subscribers(struct asym_bus *bus, const struct asym_bus_link *link)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_SUBSCRIBERS; i++)
        if (bus->subscribers[i].link == link)
            drop(&bus->subscribers[i]);
}

bool asym_bus_is_subscribed(struct asym_bus *bus, const struct asym_bus_link *link)
{
    return find(bus, link, "") != NULL;
}

bool asym_bus_has_subscribers(const struct asym_bus *bus)
{
    return bus->n_subscribers > 0;
}

void asym_bus_push(struct asym_bus *bus, const void *event, uid_t visible_to)
{
    asym_event_ring_push(&bus->ring, event, visible_to);
}

static int send_event(struct asym_bus_subscriber *s, const void *event)
{
    struct asym_bus *bus = s->owner;
    sd_bus_message *signal = NULL;
    int r = sd_bus_message_new_signal(s->link->bus, &signal, ASYM_BUS_PATH, ASYM_BUS_INTERFACE, bus->config.signal);
    if (r >= 0)
        r = bus->config.append(bus->config.userdata, signal, event);
    if (r >= 0)
        r = s->link->is_system ? sd_bus_send_to(s->link->bus, signal, s->name, NULL)
                               : sd_bus_send(s->link->bus, signal, NULL);
    sd_bus_message_unref(signal);
    bus->totals.events += r >= 0;
    s->sent += r >= 0;
    return r;
}

static bool may_send(const struct asym_bus_subscriber *s, asym_usec now)
{
    const struct asym_bus_link *link = s->link;
    if (link->is_system && (!asym_token_bucket_has(&s->owner->cpu_time, now) || !asym_bus_user_may(s->owner, s->uid)))
        return false;
    /* The bus daemon holds at most this many for a client that does not read. */
    if (s->ping && s->sent - s->pinged >= ASYM_BUS_PING_AFTER)
        return false;
    return asym_bus_link_queued(link) < QUEUE_FULL;
}

/* Sends what the subscriber takes, limit events of the ring at most. It may have lost its place in the ring meanwhile. */
static void pump(struct asym_bus_subscriber *s, size_t limit, asym_usec now)
{
    struct asym_bus *bus = s->owner;
    const void *event;
    uid_t user;
    int r = 0;
    while (r >= 0 && limit-- > 0 && may_send(s, now) && (event = asym_event_ring_at(&bus->ring, s->next, &user))) {
        if (s->is_root || user == ASYM_BUS_ALL_USERS || user == s->uid)
            r = send_event(s, event);
        s->next++;
        if (r >= 0 && s->link->is_system && !s->ping && s->sent - s->pinged >= ASYM_BUS_PING_AFTER)
            r = ping(s);
    }
    if (r < 0)
        lose(s, "asymd cannot send to it");
}

static void lose_if_late(struct asym_bus_subscriber *s)
{
    const struct asym_bus *bus = s->owner;
    if (s->link && bus->ring.end - s->next > bus->ring.n_places)
        lose(s, "it takes decisions more slowly than asymd makes them");
}

static void pump_and_charge(struct asym_bus_subscriber *s, size_t limit, asym_usec now)
{
    struct asym_bus *bus = s->owner;
    const bool is_system = s->link->is_system;
    const uid_t uid = s->uid;
    const asym_usec begun = asym_clock_thread_cpu();
    pump(s, limit, now);
    const asym_usec cpu = asym_clock_thread_cpu() - begun;
    bus->spent += cpu;
    bus->spent_on_events += cpu;
    if (is_system)
        asym_bus_charge_events(bus, uid, cpu, asym_clock_now());
}

/* Called for each event: an attempt in vain is not charged to the user, who would never get out of debt otherwise. */
static void serve(struct asym_bus_subscriber *s, size_t limit)
{
    const asym_usec now = asym_clock_now();
    if (may_send(s, now))
        pump_and_charge(s, limit, now);
    lose_if_late(s);
}

void asym_bus_send(struct asym_bus *bus)
{
    /* A reply does not wait for all that the subscribers have not taken yet: it follows at the end of the dispatch. */
    if (!bus->is_dispatching)
        asym_bus_send_some(bus, SIZE_MAX);
}

void asym_bus_send_some(struct asym_bus *bus, size_t limit)
{
    for (size_t i = 0; i < ASYM_BUS_MAX_SUBSCRIBERS && bus->n_subscribers > 0; i++) {
        struct asym_bus_subscriber *s = &bus->subscribers[i];
        if (s->link && !s->link->ended && s->next != bus->ring.end)
            serve(s, limit);
    }
    /* A method may call this. Then the sweep follows at the end of the dispatch. */
    if (!bus->is_dispatching)
        asym_bus_sweep(bus);
}
