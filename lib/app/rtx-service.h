/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * RTX in the service: the server for programs that report their threads, on the event loop, and a cycle at once when a serial
 * phase begins or ends.
 */
#ifndef ASYM_APP_RTX_SERVICE_H
#define ASYM_APP_RTX_SERVICE_H

#include <stddef.h>

#include <systemd/sd-event.h>

#include <asym/types.h>
#include <asym/port.h>

#include "app/run.h"

struct asym_rtx_service;

/** Open the server in the state directory, and an overlay around inner. Borrows run and inner. Returns 0; -errno with err. */
int asym_rtx_service_new(struct asym_run *run, struct asym_source *inner, struct asym_rtx_service **ret_rtx,
                         struct asym_error *err);

/** Free rtx, before inner and the event loop. Accepts NULL. */
void asym_rtx_service_free(struct asym_rtx_service *rtx);

/** The overlay: the snapshots of inner with the reports of programs. The caller borrows it. */
struct asym_source *asym_rtx_service_source(struct asym_rtx_service *rtx);

/** Answer the programs from the loop, with a plan at once when one has reported a phase (app/prompt.h). Returns 0; -errno. */
int asym_rtx_service_attach(struct asym_rtx_service *rtx, sd_event *event);

/** Call this about every second, once it is attached. */
void asym_rtx_service_housekeeping(struct asym_rtx_service *rtx, asym_usec now);

/** The number of programs that report. Accepts NULL. */
size_t asym_rtx_service_count(const struct asym_rtx_service *rtx);

#endif
