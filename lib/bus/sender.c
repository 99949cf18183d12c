/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user behind each message of the system bus, and the CPU time that each user has used. sd-bus shows a message here before it
 * answers by itself (properties, introspection, unknown methods) or calls a method. It offers no way to put a message back. So
 * asymd serves the first messages of a connection before it knows the user, and charges the user when the bus daemon has said
 * who it is.
 */
#include "bus/bus-internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

bool asym_bus_is_root(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

struct asym_token_bucket asym_bus_token_bucket(double share, double burst, asym_usec now)
{
    struct asym_token_bucket bucket = asym_token_bucket_full(share, burst, now);
    bucket.resume = burst * ASYM_BUS_RESUME;
    return bucket;
}

/* Returns the place of the user, or the place used longest ago. */
static struct asym_bus_user *find_user(struct asym_bus *bus, uid_t uid, asym_usec now)
{
    struct asym_bus_user *oldest = bus->users;
    for (size_t i = 0; i < ASYM_BUS_USERS; i++) {
        if (bus->users[i].used > 0 && bus->users[i].uid == uid) {
            bus->users[i].used = ++bus->clock;
            return &bus->users[i];
        }
        if (bus->users[i].used < oldest->used)
            oldest = &bus->users[i];
    }
    *oldest = (struct asym_bus_user){
        .uid = uid,
        .cpu_time = asym_bus_token_bucket(bus->config.share * ASYM_BUS_USER_SHARE, ASYM_BUS_BURST * ASYM_BUS_USER_SHARE,
                                          now),
        .used = ++bus->clock,
    };
    return oldest;
}

bool asym_bus_user_may(struct asym_bus *bus, uid_t uid)
{
    const asym_usec now = asym_clock_now();
    return asym_bus_is_root(uid) || asym_token_bucket_has(&find_user(bus, uid, now)->cpu_time, now);
}

static void charge_user(struct asym_bus *bus, uid_t uid, asym_usec cpu, asym_usec now)
{
    if (uid != ASYM_BUS_NO_USER && !asym_bus_is_root(uid))
        asym_token_bucket_charge(&find_user(bus, uid, now)->cpu_time, (double)cpu, now);
}

void asym_bus_charge(struct asym_bus *bus, asym_usec cpu, asym_usec now)
{
    asym_token_bucket_charge(&bus->cpu_time, (double)cpu, now);
    if (bus->unknown)
        bus->unknown->debt += cpu;
    else
        charge_user(bus, bus->payer, cpu, now);
}

int asym_bus_refuse(struct asym_bus *bus, sd_bus_message *m, const char *why)
{
    int r = 0;
    bus->totals.refused++;
    if (sd_bus_message_is_method_call(m, NULL, NULL) > 0)
        r = sd_bus_reply_method_errorf(m, ASYM_BUS_ERROR_REFUSED, "%s: try again later", why);
    return r < 0 ? r : 1;
}

static void forget(struct asym_bus_sender *s)
{
    sd_bus_slot_unref(s->question);
    *s = (struct asym_bus_sender){.owner = s->owner};
}

static int on_user(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    struct asym_bus_sender *s = userdata;
    struct asym_bus *bus = s->owner;
    uint32_t uid;
    (void)error;
    if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_read(m, "u", &uid) < 0) {
        /* The sender has left, and waits for no answer. */
        asym_bus_identify_calls(bus, s->name, NULL);
        forget(s);
        return 1;
    }
    s->question = sd_bus_slot_unref(s->question);
    s->uid = uid;
    bus->payer = s->uid;
    charge_user(bus, s->uid, s->debt, asym_clock_now());
    asym_bus_identify_calls(bus, s->name, &s->uid);
    return 1;
}

static struct asym_bus_sender *find_sender(struct asym_bus *bus, const char *name)
{
    for (size_t i = 0; i < ASYM_BUS_SENDERS; i++)
        if (strcmp(bus->senders[i].name, name) == 0)
            return &bus->senders[i];
    return NULL;
}

/* Takes the place used longest ago, and asks the bus daemon for the user. NULL: all places wait for an answer. */
static struct asym_bus_sender *add_sender(struct asym_bus *bus, sd_bus *b, const char *name)
{
    struct asym_bus_sender *place = NULL;
    for (size_t i = 0; i < ASYM_BUS_SENDERS; i++)
        if (!bus->senders[i].question && (!place || bus->senders[i].used < place->used))
            place = &bus->senders[i];
    if (!place || strlen(name) >= sizeof place->name)
        return NULL;
    *place = (struct asym_bus_sender){.owner = bus};
    if (sd_bus_call_method_async(b, &place->question, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                 "org.freedesktop.DBus", "GetConnectionUnixUser", on_user, place, "s", name) < 0)
        return NULL;
    strcpy(place->name, name);
    return place;
}

int asym_bus_on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    const struct asym_bus_link *link = userdata;
    struct asym_bus *bus = link->owner;
    const char *name = sd_bus_message_get_sender(m);
    (void)error;
    /* Clients have unique names. The bus daemon's own messages have not. */
    if (!name || name[0] != ':')
        return 0;
    struct asym_bus_sender *s = find_sender(bus, name);
    if (!s)
        s = add_sender(bus, link->bus, name);
    if (!s)
        return asym_bus_refuse(bus, m, ASYM_BUS_REFUSED_MANY);
    s->used = ++bus->clock;
    if (s->question)
        bus->unknown = s;
    else
        bus->payer = s->uid;
    if (s->question ? ++s->n_early > ASYM_BUS_MAX_CALLS_OF_USER : asym_bus_link_queued(link) >= ASYM_BUS_MAX_QUEUED / 2)
        return asym_bus_refuse(bus, m, ASYM_BUS_REFUSED_MANY);
    if (!s->question && !asym_bus_user_may(bus, s->uid))
        return asym_bus_refuse(bus, m, ASYM_BUS_REFUSED_COST);
    return 0;
}

void asym_bus_forget_senders(struct asym_bus *bus)
{
    for (size_t i = 0; i < ASYM_BUS_SENDERS; i++)
        forget(&bus->senders[i]);
    bus->unknown = NULL;
}
