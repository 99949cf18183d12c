/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Programs that say what their threads do, in the service: the server on the event loop, and a turn at once when a serial
 * phase begins or ends.
 */
#ifndef ASYM_DAEMON_RTX_H
#define ASYM_DAEMON_RTX_H

#include <stddef.h>

#include <systemd/sd-event.h>

#include <asym/error.h>
#include <asym/port.h>

#include "daemon/run.h"

struct asym_rtx;

/** Listen in the state directory, and be a source around inner (a procfs source). Both borrowed. 0; -errno with err. */
int asym_rtx_new(struct asym_run *run, struct asym_source *inner, struct asym_rtx **ret_rtx, struct asym_error *err);

/** Free it before inner and the event loop. NULL is accepted. */
void asym_rtx_free(struct asym_rtx *rtx);

/** Borrowed: what inner sees, with what programs say. */
struct asym_source *asym_rtx_source(struct asym_rtx *rtx);

/** Call turn(userdata) from the loop when a program has told of a phase: its next snapshot is a hurried one. 0; -errno. */
int asym_rtx_attach(struct asym_rtx *rtx, sd_event *event, int (*turn)(void *userdata), void *userdata);

/** About every second. */
void asym_rtx_tend(struct asym_rtx *rtx, asym_usec now);

/**
 * A whole look begins and ends: what is read in it takes as long as there are processes, so that it is not done with a real-time
 * priority, which answering programs may have. NULL is accepted.
 */
void asym_rtx_look_begins(struct asym_rtx *rtx);
void asym_rtx_look_ends(struct asym_rtx *rtx);

/** CPU time that answering programs has taken so far: it has a budget of its own (linux/rtx-server.h). NULL is accepted. */
asym_usec asym_rtx_spent(const struct asym_rtx *rtx);

/** Programs that speak. NULL is accepted. */
size_t asym_rtx_count(const struct asym_rtx *rtx);

#endif
