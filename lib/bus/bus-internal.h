/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The state that the files of this room share, and the functions that they call of each other. */
#ifndef ASYM_BUS_BUS_INTERNAL_H
#define ASYM_BUS_BUS_INTERNAL_H

#include <sys/un.h>

#include "base/token-bucket.h"
#include "bus/bus.h"

/** The timeout of sd-bus for calls of the bus daemon, in us: a year. */
#define ASYM_BUS_NO_TIMEOUT (365 * 24 * 3600 * ASYM_SEC)

/** No user. */
#define ASYM_BUS_NO_USER ((uid_t)-1)

/** A unique name of a client of the system bus (":1.42"), with the NUL. The bus daemon's own names are far shorter. */
enum { ASYM_BUS_NAME_SIZE = 64, ASYM_BUS_SENDERS = 128, ASYM_BUS_USERS = 32 };

/** A connection: one client, or the system bus. */
struct asym_bus_link {
    struct asym_bus *owner;
    sd_bus *bus;
    sd_event_source *io, *timer;
    bool is_system;
    bool has_more;       /**< there is work that neither the socket nor the timeout of sd-bus shows: process it now */
    bool is_drained;     /**< sd-bus has no message left of the read that ended the handshake */
    bool ended;          /**< closed at the next asym_bus_sweep() */
    uid_t uid;           /**< of a direct client */
    const char *why_end; /**< why asymd ended it; NULL: the client did. Static */
};

/** The user behind a unique name. The bus daemon never gives a name twice. */
struct asym_bus_sender {
    struct asym_bus *owner;
    char name[ASYM_BUS_NAME_SIZE]; /**< "": free */
    sd_bus_slot *question;         /**< to the bus daemon, for the user; NULL: the user is known */
    uid_t uid;
    unsigned n_early; /**< messages before the user was known */
    asym_usec debt;   /**< CPU time of these */
    uint64_t used;    /**< asym_bus.clock of the last use */
};

/** The CPU time that one user may use. */
struct asym_bus_user {
    uid_t uid;
    struct asym_token_bucket cpu_time; /**< microseconds of CPU time */
    uint64_t used;                     /**< 0: free */
};

/** A call that waits for the bus daemon or for polkit. */
struct asym_bus_call {
    struct asym_bus *owner;
    sd_bus_message *message; /**< NULL: the place is free */
    const struct asym_bus_method *method;
    sd_bus_slot *slot; /**< the question to polkit */
    uid_t uid;
    bool is_identified;
    uint64_t number; /**< a later call has a higher one */
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
    struct asym_bus_sender senders[ASYM_BUS_SENDERS];
    struct asym_bus_user users[ASYM_BUS_USERS];
    uint64_t clock; /**< counts uses, for the places used longest ago */
    struct asym_bus_call calls[ASYM_BUS_MAX_CALLS];
    bool is_dispatching; /**< sd_bus_process runs: no connection may be freed */
    uid_t payer;         /**< the user of the system bus whose message is served; ASYM_BUS_NO_USER: none */
    struct asym_bus_sender
        *unknown;         /**< the sender of that message, while asymd does not know its user; NULL: it does */
    asym_usec turn_begun; /**< the CPU time of the thread at the begin of this turn of the event loop; 0: not known */
    asym_usec spent;
    struct asym_bus_totals totals;
};

/** link.c: a connection on the event loop. */

/**
 * Add an object to a started connection. Returns 0 or more; -errno. Where memory is short, libsystemd leaves a part of the path
 * behind, and aborts when it frees the connection: after -ENOMEM it is closed like another, and never freed.
 */
int asym_bus_add_object(sd_bus *bus, const char *path, const char *interface, const sd_bus_vtable *vtable,
                        void *userdata);

/** Put a started connection on the event loop, with the object. Takes bus. Returns 0; -errno. */
int asym_bus_link_new(struct asym_bus *owner, sd_bus *bus, bool is_system, uid_t uid, struct asym_bus_link **ret);
void asym_bus_link_free(struct asym_bus_link *link);
/** Watch for what the connection waits for now. Call it after each use of the connection. */
void asym_bus_link_arm(struct asym_bus_link *link);
/** Returns the messages that the client has not taken. */
uint64_t asym_bus_link_queued(const struct asym_bus_link *link);
/** End the connection at the next sweep, because asymd wants it so. why: a static string. */
void asym_bus_link_end(struct asym_bus_link *link, const char *why);
/** Free the connections that have ended, and arm the others. */
void asym_bus_sweep(struct asym_bus *bus);
/** Returns the CPU time of the thread from which on it works for the bus. The begin of a turn counts once. */
asym_usec asym_bus_take_turn(struct asym_bus *bus);
/** direct.c: the socket. */
int asym_bus_listen(struct asym_bus *bus, const char *dir, struct asym_error *err);
void asym_bus_unlisten(struct asym_bus *bus);

/** system.c: the system bus. */
void asym_bus_connect_system(struct asym_bus *bus, asym_usec now);
void asym_bus_lose_system(struct asym_bus *bus, asym_usec now);

/** caller.c: who calls, and whether it may. */

/** Run the method of a message of the system bus, once its sender is known and allowed. Returns 1; -errno with error. */
int asym_bus_call_system(struct asym_bus *bus, sd_bus_message *m, const struct asym_bus_method *method,
                         sd_bus_error *error);
/** Run a method, and reply with its error. Returns 1. */
int asym_bus_run(struct asym_bus *bus, sd_bus_message *m, const struct asym_bus_method *method, uid_t uid);
/** Continue with the calls of a sender that have waited for its user. uid: NULL: the sender has left. */
void asym_bus_identify_calls(struct asym_bus *bus, const char *name, const uid_t *uid);
/** Returns whether there is a call whose user is known by now, and that polkit was not asked about. */
bool asym_bus_has_ready(struct asym_bus *bus);
/** Run the next of these calls. Returns whether there was one. */
bool asym_bus_run_ready(struct asym_bus *bus);
/** Forget the calls of the system bus. */
void asym_bus_forget_callers(struct asym_bus *bus);

/** sender.c: the users of the system bus, and what they have used. */

#define ASYM_BUS_REFUSED_MANY "asymd has too many unanswered calls"
#define ASYM_BUS_REFUSED_COST "the calls of this user have used their share of asymd's CPU time"

/** The filter of the system bus: asks for the sender's user, and sets who pays. Returns 1: it has refused the message. */
int asym_bus_on_message(sd_bus_message *m, void *link, sd_bus_error *error);
/** Answer with ASYM_BUS_ERROR_REFUSED, if the message is a call. Returns 1; -errno. */
int asym_bus_refuse(struct asym_bus *bus, sd_bus_message *m, const char *why);
/** Returns whether the user is root or the one who runs asymd. */
bool asym_bus_is_root(uid_t uid);
/** Returns a full token bucket of CPU time, in microseconds: for that share of one CPU, 0 to 1, and that burst. */
struct asym_token_bucket asym_bus_token_bucket(double share, double burst, asym_usec now);
/** Returns whether the user has some CPU time left. */
bool asym_bus_user_may(struct asym_bus *bus, uid_t uid);
/** Charge CPU time of the system bus to everybody and to the payer. */
void asym_bus_charge(struct asym_bus *bus, asym_usec cpu, asym_usec now);

/** Forget the senders, not what their users have used. */
void asym_bus_forget_senders(struct asym_bus *bus);

/** bus.c */

/** Log a line, if there is a log. */
void asym_bus_say(const struct asym_bus *bus, enum asym_bus_topic topic, int priority, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
