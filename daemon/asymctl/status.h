/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of asymctl status: the state of a running asymd on one screen. */
#ifndef ASYM_DAEMON_ASYMCTL_STATUS_H
#define ASYM_DAEMON_ASYMCTL_STATUS_H

#include <stdbool.h>

#include <jansson.h>

#include "report/columns.h"

struct asym_status {
    const json_t *of; /**< the report of asymd (org.asymd.Manager(5), the topic status) */
    asym_usec now;    /**< time of day */
    bool unicode;     /**< the terminal shows UTF-8: bars of block characters */
};

/** Print at most 24 lines if the terminal has 80 columns and the texts of asymd are short. Returns 0; -EIO, -ENOMEM. */
int asym_status_text(const struct asym_status *status, const struct asym_terminal *terminal);

#endif
