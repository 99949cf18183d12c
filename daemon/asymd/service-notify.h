/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The messages of the service to its manager ($NOTIFY_SOCKET, sd_notify(3)), without waiting. sd_notify() and the watchdog of
 * sd-event wait while the queue of the socket is full: a manager that hangs would stop asymd. Here a state waits until there is
 * room, and a status that finds no room is dropped.
 */
#ifndef ASYM_DAEMON_ASYMD_SERVICE_NOTIFY_H
#define ASYM_DAEMON_ASYMD_SERVICE_NOTIFY_H

#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

enum {
    ASYM_NOTIFY_STATES = 4,      /**< the states that wait; the oldest one goes first */
    ASYM_NOTIFY_STATE_SIZE = 64, /**< bytes of a state, with the NUL */
};

struct asym_notify {
    char states[ASYM_NOTIFY_STATES][ASYM_NOTIFY_STATE_SIZE]; /* the oldest first */
    size_t n_states;
    sd_event_source *watchdog; /* NULL: the manager expects no pings */
    uint64_t period;           /* between two pings, in microseconds */
};

/**
 * Send a state ("READY=1") as soon as there is room: now, in a later call of one of these functions, or, with a watchdog, in an
 * attempt every 10 ms. States keep their order; of more than ASYM_NOTIFY_STATES the oldest is lost.
 */
void asym_notify_state(struct asym_notify *n, const char *state);

/** Send "STATUS=" and the text now, or not at all: the next one follows. */
void asym_notify_status(struct asym_notify *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * If the manager expects pings of a watchdog, send them while the event loop runs, before the work of sources with the priority
 * IMPORTANT or a lower one. Returns 0; -errno.
 */
int asym_notify_watchdog(struct asym_notify *n, sd_event *event);

/** Stop the pings. */
void asym_notify_done(struct asym_notify *n);

#endif
