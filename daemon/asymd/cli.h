/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The command line of asymd. One table of rows serves the parser, --help and the manual. */
#ifndef ASYM_DAEMON_ASYMD_CLI_H
#define ASYM_DAEMON_ASYMD_CLI_H

#include <stddef.h>

#include <asym/error.h>

#include "app/command-line.h"
#include "app/run.h"

/**
 * Parse the command line. It does not check the values of settings.
 * Returns 0; -ENOMEM; -EINVAL with err: an unknown option (err names the nearest one), two modes, or an option that the mode
 * does not take (err names the modes that take it).
 */
int asym_cli_parse(int argc, char **argv, struct asym_invocation *ret_cli, struct asym_error *err);
void asym_cli_done(struct asym_invocation *cli);

/** Print the options of the command line, from their table. Returns 0; -EIO. */
int asym_cli_help(const struct asym_terminal *terminal);
/** Print the options of the configuration and of each policy, from their tables. Returns 0; -EIO, -ENOMEM. */
int asym_cli_help_config(const struct asym_terminal *terminal);

/** The maximum number of rows, including the last row, which has no key. */
enum { ASYM_CLI_MAX_ROWS = 33 };

/** Write the rows of the modes (their field modes is 0), then those of the options. Returns their number. */
size_t asym_cli_rows(struct asym_arg ret[ASYM_CLI_MAX_ROWS]);

/**
 * Write the modes that take the option of a row: "--dry-run or --check". The text is empty if the service is one of them, or if
 * the row is a mode. Returns buf.
 */
const char *asym_cli_row_modes(const struct asym_arg *row, char *buf, size_t size);

#endif
