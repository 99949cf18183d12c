/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The command line of asymd: one table of rows for parsing, --help and the manual. */
#ifndef ASYM_DAEMON_CLI_H
#define ASYM_DAEMON_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <asym/error.h>

enum asym_mode {
    ASYM_MODE_SERVICE, /**< none is given */
    ASYM_MODE_DRY_RUN,
    ASYM_MODE_ONCE,
    ASYM_MODE_RESTORE,
    ASYM_MODE_CHECK,
    ASYM_MODE_PRINT_CONFIG,
    ASYM_MODE_HELP,
    ASYM_MODE_VERSION,
};

struct asym_cli_assignment {
    char *text;         /**< SECTION.KEY=VALUE; owned */
    const char *origin; /**< the option that said it; static */
};

struct asym_cli {
    enum asym_mode mode;
    bool json;
    const char *config, *root, *topology; /**< borrowed from argv; NULL: not given */
    int32_t *pids;
    size_t n_pids;
    struct asym_cli_assignment *assignments; /**< in the order given */
    size_t n_assignments;
    uint32_t given; /**< the rows of the table that argv named, as bits */
};

/**
 * 0; -EINVAL with err: an unknown option, with the nearest one; two modes; an option that the mode does not take, with the
 * modes that do. -ENOMEM. Whether settings are right is not looked at here.
 */
int asym_cli_parse(int argc, char **argv, struct asym_cli *ret_cli, struct asym_error *err);
void asym_cli_done(struct asym_cli *cli);

/** The command line and the options of the configuration, from their tables. 0; -EIO, -ENOMEM. */
int asym_cli_help(FILE *out);

/** A row, for the manual. name: "--pid"; argument NULL: takes none; help: a phrase, for --help and the manual. */
struct asym_cli_row {
    const char *name, *argument, *help;
    unsigned modes; /**< the modes that take it: bits, by enum asym_mode; 0: it is a mode */
};

/** NULL behind the last. */
const struct asym_cli_row *asym_cli_row_at(size_t i);

/**
 * The modes that take the option of a row, in words: "--dry-run or --check". "": the service is one of them, or the row is a
 * mode. Returns buf.
 */
const char *asym_cli_row_modes(const struct asym_cli_row *row, char *buf, size_t size);

#endif
