/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of asymctl status: the state of a running asymd on one screen, or as JSON. */
#ifndef ASYM_DAEMON_ASYMCTL_STATUS_H
#define ASYM_DAEMON_ASYMCTL_STATUS_H

#include <stdbool.h>
#include <stdio.h>

#include "client/client.h"
#include "report/columns.h"

struct asym_status {
    struct asym_client_state state;
    struct asym_client_cpus cpus;
    struct asym_client_apps apps;
    asym_usec now; /**< time of day */
    bool unicode;  /**< the terminal shows UTF-8: bars of block characters */
};

/** Ask asymd. Sets all but now and unicode. Returns 0; an error of client.h with err. */
int asym_status_ask(struct asym_client *client, struct asym_status *ret, struct asym_error *err);

void asym_status_done(struct asym_status *status);

/** Print at most 24 lines if the terminal has 80 columns and the texts of asymd are short. Returns 0; -EIO, -ENOMEM. */
int asym_status_text(const struct asym_status *status, const struct asym_terminal *terminal);

/** { "schema": "asymctl.status/1", ... }. Returns 0; -EIO, -ENOMEM. */
int asym_status_json(const struct asym_status *status, FILE *out);

#endif
