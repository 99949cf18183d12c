/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The state that the files of this room share, and the functions that they call of each other. */
#ifndef ASYM_BUS_BUS_INTERNAL_H
#define ASYM_BUS_BUS_INTERNAL_H

#include <sys/un.h>

#include "base/token-bucket.h"
#include "bus/bus.h"

/** The timeout of sd-bus for calls of the bus daemon, in us: a year. */
#define ASYM_BUS_NO_TIMEOUT (365 * 24 * 3600 * ASYM_SEC)

/** A connection: one client, or the system bus. */
struct asym_bus_link {
    struct asym_bus *owner;
    sd_bus *bus;
    sd_event_source *io, *timer;
    bool is_system;
    bool has_more;       /**< there is work that neither the socket nor the timeout of sd-bus shows: process it now */
    bool is_drained;     /**< sd-bus has no message left of the read that ended the handshake */
    bool ended;          /**< closed at the next sweep (bus.c) */
    uid_t uid;           /**< of a direct client */
    const char *why_end; /**< why asymd ended it; NULL: the client did. Static */
};

/** A call that waits for the bus daemon or for polkit. */
struct asym_bus_call {
    struct asym_bus *owner;
    sd_bus_message *message; /**< NULL: the place is free */
    const struct asym_bus_method *method;
    sd_bus_slot *slot; /**< the question for the user, or to polkit */
    uid_t uid;
    bool is_identified;
};

enum asym_bus_system_state {
    ASYM_BUS_SYSTEM_UNKNOWN,
    ASYM_BUS_SYSTEM_ABSENT,
    ASYM_BUS_SYSTEM_REFUSED, /**< connected, without the name */
    ASYM_BUS_SYSTEM_OWNED,
};

struct asym_bus {
    struct asym_bus_config config;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /**< of the socket; "": none */
    int listener;
    sd_event_source *listen;
    struct asym_bus_link *direct[ASYM_BUS_MAX_DIRECT];
    struct asym_bus_link *system;            /**< NULL: not connected */
    bool has_name;                           /**< ASYM_BUS_NAME on the system bus */
    enum asym_bus_system_state system_state; /**< as last logged */
    asym_usec retry_at;
    struct asym_token_bucket cpu_time; /**< microseconds of CPU time for the system bus */
    struct asym_bus_call calls[ASYM_BUS_MAX_CALLS];
    bool is_dispatching;  /**< sd_bus_process runs: no connection may be freed */
    asym_usec turn_begun; /**< the CPU time of the thread at the begin of this turn of the event loop; 0: not known */
    asym_usec spent;
    struct asym_bus_totals totals;
};

/** caller.c: forget the calls of the system bus. */
void asym_bus_forget_callers(struct asym_bus *bus);

#endif
