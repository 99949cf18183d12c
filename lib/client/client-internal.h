/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The connection, for the files of this room and their test. */
#ifndef ASYM_CLIENT_CLIENT_INTERNAL_H
#define ASYM_CLIENT_CLIENT_INTERNAL_H

#include <systemd/sd-bus.h>

#include <asym/manager.h>

#include "base/macro.h"
#include "client/client.h"

#define CLIENT_NAME           "org.asymd"
#define CLIENT_OBJECT         "/org/asymd/Manager"
#define CLIENT_INTERFACE      "org.asymd.Manager"

#define CLIENT_READ_TIMEOUT   (5 * ASYM_SEC)
#define CLIENT_CHANGE_TIMEOUT (60 * ASYM_SEC)
/* For a change on the system bus, during which polkit may ask for a password (asym/manager.h). */
#define CLIENT_POLKIT_TIMEOUT (ASYM_BUS_POLKIT_WITHIN + CLIENT_CHANGE_TIMEOUT)

#define CLIENT_AUTO_MESSAGE   ASYM_CLEANUP(sd_bus_message_unrefp)

struct asym_client {
    sd_bus *bus;
    const char *destination; /**< NULL: a direct connection, on which only asymd can answer */
    int direct;              /**< on the system bus: why the socket could not be used, -errno */
    bool may_ask;            /**< polkit may ask the user for a password */
    bool is_asked;           /**< for decisions, and the answer was not taken */
    sd_bus_message *answer;  /**< the answer to that; NULL: it has not come */
};

/** As asym_client_open, with another socket. then_system: try the system bus if the socket cannot be used. */
int client_open(const char *path, bool then_system, struct asym_client **ret, struct asym_error *err);

/** Make a call of a method of the object. Returns 0; -errno of sd-bus, for client_send. */
int client_new_call(struct asym_client *c, const char *member, sd_bus_message **ret);

/**
 * Send a call, and wait for its answer. made: the result of making it. Returns 0; an error of client.h with err. timeout: one of
 * the three above.
 */
int client_send(struct asym_client *c, sd_bus_message *m, int made, asym_usec timeout, sd_bus_message **ret,
                struct asym_error *err);

/** Write the error of a call as one sentence. timeout: CLIENT_READ_TIMEOUT unless it changes something. Returns its -errno. */
int client_failed(const struct asym_client *c, const sd_bus_error *error, asym_usec timeout, struct asym_error *err);

/** Returns -EBADMSG with err: the two programs are of different versions. */
int client_not_understood(struct asym_error *err);

#endif
