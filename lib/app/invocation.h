/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The parsed command line of asymd (daemon/asymd/cli.h). Every mode gets it. */
#ifndef ASYM_APP_INVOCATION_H
#define ASYM_APP_INVOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct asym_invocation_setting {
    char *text;         /**< SECTION.KEY=VALUE; owned */
    const char *origin; /**< the option of the command line that set it; static */
};

struct asym_invocation {
    unsigned mode; /**< enum asym_mode (daemon/asymd/cli.h); the overview if argv names none */
    bool json;
    const char *config, *root, *topology; /**< borrowed from argv; NULL: not given */
    int32_t *pids;
    size_t n_pids;
    struct asym_invocation_setting *assignments; /**< in the order given */
    size_t n_assignments;
    uint32_t given; /**< a bit for each row of the table that argv names */
};

#endif
