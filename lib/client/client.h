/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The client's side of org.asymd.Manager, the bus object of a running asymd: its reports, which are JSON, and its orders.
 *
 * Each call waits at most 5 s for the answer. Functions that change something wait 60 s. On the system bus
 * they wait 180 s, because polkit may ask the user for a password (asym/manager.h). Errors are one sentence in err, and one of:
 *     -ENOTCONN   no asymd runs; the sentence says how to start it
 *     -EACCES     not permitted; the sentence says how to get the permission
 *     -ESRCH      asymd does not know the process
 *     -ENOTSUP    not possible here; the sentence says why
 *     -ENODATA    this machine lacks a signal that the policy needs
 *     -EBUSY      too many calls wait for an answer of the bus daemon or of polkit
 *     -EINVAL     wrong argument
 *     -ETIMEDOUT  no answer
 *     -EBADMSG    an answer of another version of asymd
 *     -errno      the connection was lost, and the like
 */
#ifndef ASYM_CLIENT_CLIENT_H
#define ASYM_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <asym/types.h>

/** The socket of the direct connection, which root can use without a bus daemon. */
#define ASYM_CLIENT_SOCKET "/run/asymd/bus"

/** The environment variable that names another socket; then the system bus is not tried. */
#define ASYM_CLIENT_SOCKET_VARIABLE "ASYMD_BUS"

struct asym_client;

/** Connect to the socket if the user may, else to the system bus. Does not start asymd. Returns 0; see above. */
int asym_client_open(struct asym_client **ret, struct asym_error *err);

/** client: may be NULL. */
void asym_client_close(struct asym_client *client);

/**
 * Let polkit ask the user for a password, by the agent of the user's session, for each call that changes something. Without this,
 * polkit refuses at once where it would ask, and a change waits for asymd as long as a question does: 5 s.
 */
void asym_client_let_polkit_ask(struct asym_client *client);

static inline void asym_client_close_p(struct asym_client **client)
{
    asym_client_close(*client);
}

/**
 * Ask for a report: org.asymd.Manager(5) has the topics and their keys. *ret: a new reference to an object. Its texts are as
 * programs have chosen them, and may hold control characters: escape them before you print them (asym_text_escape). A key that
 * is missing counts as 0, false or "" (asym_json_get_text in report/json.h, and the like).
 */
int asym_client_get_report(struct asym_client *client, const char *topic, uint64_t argument, json_t **ret,
                           struct asym_error *err);

/** *ret: the effective configuration as INI, for asym_settings_read_printed, with a NUL behind it; free it. */
int asym_client_get_configuration(struct asym_client *client, char **ret, size_t *ret_len, struct asym_error *err);

/**
 * Call a method that changes something and returns nothing. types: those of its arguments, as sd_bus_message_append(3) takes them;
 * NULL: none.
 */
int asym_client_change(struct asym_client *client, struct asym_error *err, const char *member, const char *types, ...);

/**
 * Write a lasting rule for the program of the process. action: as below; "auto" removes it. *ret_file: the path of the file;
 * *ret_before: the name of the rule that matches the program, too, and comes first, or "". Free both.
 */
int asym_client_set_rule(struct asym_client *client, uint32_t pid, const char *action, char **ret_file,
                         char **ret_before, struct asym_error *err);

/** The place of a client in the decisions of asymd. All zero: their end, which the first answer says. */
struct asym_client_since {
    uint64_t number; /**< of the last decision */
    asym_usec start; /**< of the asymd that has numbered it, time of day; 0: none has answered yet */
    uint64_t lost;   /**< how many of those that the last call asked for asymd does not remember */
};

/**
 * Call on_decision for each decision that asymd has made since the last call with this since. asymd remembers ten decisions of a
 * thread: ask several times a second. Waits for at most the time `wait`: the next call takes an answer that comes later, and asks
 * again if asymd has refused. Returns 0; an error as above, but -EBUSY. -ENOTCONN: asymd has ended, or was started again.
 */
int asym_client_get_decisions(struct asym_client *client, struct asym_client_since *since, asym_usec wait,
                              void (*on_decision)(void *ctx, const json_t *decision), void *ctx,
                              struct asym_error *err);

/** As asym_client_open, with another socket, for the test. then_system: try the system bus if the socket cannot be used. */
int client_open(const char *path, bool then_system, struct asym_client **ret, struct asym_error *err);

#endif
