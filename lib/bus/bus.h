/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Serves one D-Bus object: on the system bus, and without a bus daemon on a socket of the state directory. The caller brings the
 * object's vtable and its methods; this room brings the connections, the permissions, and the bounds.
 *
 * Two kinds of connection:
 *
 * - The socket DIR/bus has mode 0600. So root alone, and the user who runs asymd, can connect, and both may change everything.
 *   A message can carry descriptors, and a close of what another user passes can block. So asymd reads no socket to which other
 *   users can write.
 * - The system bus serves all users. asymd does not negotiate the passing of descriptors there, so the bus daemon refuses, at
 *   the sender, each message that carries one. The uid of a sender comes from the bus daemon; polkit decides whether a user
 *   other than root may change something.
 *
 * No call waits: for a client, for the bus daemon or for polkit. Bounds:
 *
 * - The messages of the system bus cost asym_bus_config.share of one CPU in the long run. When this is spent, asymd leaves that
 *   socket alone until it has earned more, and all users wait: a refusal would cost, too, so a user who goes on asking could spend
 *   the share in any case. After ASYM_BUS_SLICE other events go first. The socket of root has no such bound, but serves at most one
 *   message between two other events.
 * - ASYM_BUS_MAX_DIRECT direct connections. One with ASYM_BUS_MAX_QUEUED unread messages is closed. So is the one to the system
 *   bus, when the bus daemon leaves as many unread. asymd connects again.
 * - ASYM_BUS_MAX_CALLS calls that wait for the bus daemon or polkit, ASYM_BUS_MAX_CALLS_OF_USER of them of one user. Others are
 *   refused: org.asymd.Error.Refused. A call waits for the bus daemon, which knows its user, only if it changes something, or if
 *   what it reads depends on the user.
 *
 * asymd tells clients nothing on its own, but for PropertiesChanged on the system bus: who wants to follow it asks again. So no
 * client can be late, and asymd holds nothing for one. The bus daemon answers every call, or closes the connection: these answers
 * have no time limit, but for the answer to Hello, the first call of a connection.
 */
#ifndef ASYM_BUS_BUS_H
#define ASYM_BUS_BUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <asym/manager.h>
#include <asym/types.h>

/** The bus may use this share of one CPU, and save up at most this CPU time, in microseconds. */
#define ASYM_BUS_SHARE (0.01) /* where the configuration gives none */
#define ASYM_BUS_BURST (100.0 * ASYM_MSEC)
/**
 * The part of ASYM_BUS_BURST that all users together can owe, 10 ms: with a share of 1 % asymd serves the system bus again after
 * 1.2 s, whatever a call has cost.
 */
#define ASYM_BUS_DEBT (0.1)
/**
 * CPU time of messages of the system bus, in us, after which other events go first. To wake up for one message costs as much as
 * to answer a small one (measured).
 */
#define ASYM_BUS_SLICE 200

/** The part of its burst that an overdrawn token bucket has to earn, so that asymd does not wake for one message at a time. */
#define ASYM_BUS_RESUME 0.02

enum {
    ASYM_BUS_MAX_DIRECT = 16,
    ASYM_BUS_MAX_QUEUED = 128,           /**< messages that a connection may leave unread, beside the socket's buffer */
    ASYM_BUS_SOCKET_BUFFER = 256 * 1024, /**< bytes that a direct client may leave unread in its socket */
    ASYM_BUS_MAX_CALLS = 64,             /**< calls that wait for an answer of the bus daemon or of polkit */
    ASYM_BUS_MAX_CALLS_OF_USER = 8,      /**< of one user, and of one connection */
    ASYM_BUS_MAX_TEXT = 4096,            /**< bytes of a text argument */
};

/** The time between two attempts to reach a system bus that is not there. */
#define ASYM_BUS_RETRY (5 * ASYM_SEC)

struct asym_bus;

/** A user of the system bus where what a method reads is the same for all of them. */
#define ASYM_BUS_ANY_USER ((uid_t)-1)

/** The caller of a method. */
struct asym_bus_caller {
    uid_t uid;    /**< ASYM_BUS_ANY_USER: not known */
    bool is_root; /**< root, or the user who runs asymd: sees all processes */
};

/** A method of the object. */
struct asym_bus_method {
    const char *name; /**< NULL ends a table */
    bool manages;     /**< for root, and for users whom polkit allows ASYM_BUS_POLKIT */
    /** Reply to m. Returns 0 or more; -errno, after it has set error or not: then asymd sends the error. */
    int (*run)(void *userdata, sd_bus_message *m, const struct asym_bus_caller *caller, sd_bus_error *error);
};

/** The subject of a line for the log. Users other than root can provoke lines about clients as often as they like. */
enum asym_bus_topic { ASYM_BUS_CLIENTS, ASYM_BUS_SYSTEM };

struct asym_bus_config {
    sd_event *event;
    const char *dir;            /**< directory of the socket "bus"; borrowed for the call; NULL: no socket */
    const char *system_address; /**< D-Bus address of the system bus; NULL: $DBUS_SYSTEM_BUS_ADDRESS or the usual one */
    bool no_system_bus;         /**< for tests */
    double share;               /**< of one CPU, for the messages of the system bus; 0: ASYM_BUS_SHARE */
    const sd_bus_vtable *vtable; /**< its method handlers are asym_bus_on_method; borrowed, as are the next ones */
    const struct asym_bus_method *methods;
    void *userdata;                /**< of the methods; a property's getter gets it by asym_bus_userdata */
    bool (*hides)(void *userdata); /**< whether what a method reads depends on the user now; NULL: it never does */
    /** A line for the log: LOG_NOTICE and the like. May be NULL. */
    void (*say)(void *userdata, enum asym_bus_topic topic, int priority, const char *text);
};

/**
 * Open the socket and connect to the system bus. If there is no bus, asym_bus_housekeeping tries again. Returns 0; -errno of the
 * socket, with err.
 */
int asym_bus_open(const struct asym_bus_config *config, struct asym_bus **ret_bus, struct asym_error *err);

/** Close all connections, and remove the socket. NULL is accepted. */
void asym_bus_close(struct asym_bus *bus);

/** Serve a connected stream socket as if a client had connected to DIR/bus. Takes fd. Returns 0; -errno, and fd is closed. */
int asym_bus_add_direct(struct asym_bus *bus, int fd);

/**
 * Call this before each turn of the event loop. If the loop then handles an event of the bus, the bus has used the CPU time since
 * this call: the wait for the event costs half as much as the answer to a small call. Without it the bus counts only its handlers.
 * NULL is accepted.
 */
void asym_bus_begin_turn(struct asym_bus *bus);

/** Connect to the system bus if there is none, and listen again after a client that it could not accept. Call it every second. */
void asym_bus_housekeeping(struct asym_bus *bus, asym_usec now);

/** The method handler of each method of the vtable: checks the caller, then runs the row of the method. */
int asym_bus_on_method(sd_bus_message *m, void *link, sd_bus_error *error);

/** Returns the userdata of the configuration. link: what the getter of a property gets. */
void *asym_bus_userdata(void *link);

/** Emit PropertiesChanged on the system bus, where match rules decide who gets it. names: NULL-terminated. */
void asym_bus_emit_changed(struct asym_bus *bus, char *const *names);

/** Returns the CPU time, in microseconds, of all that the bus has done. NULL is accepted. */
asym_usec asym_bus_spent(const struct asym_bus *bus);

/** Counts since the start. */
struct asym_bus_totals {
    uint64_t calls;   /**< methods that ran */
    uint64_t refused; /**< calls that were refused: too many wait */
    uint64_t lost;    /**< connections that asymd ended because the client did not read */
};

/** Write the totals. bus may be NULL: then all are 0. */
void asym_bus_totals(const struct asym_bus *bus, struct asym_bus_totals *ret);

#endif
