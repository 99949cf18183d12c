/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The modes of asymd. A mode is a struct at the end of its file, and a row in modes.def. mode.c has those that print a text. */
#ifndef ASYM_DAEMON_ASYMD_MODE_H
#define ASYM_DAEMON_ASYMD_MODE_H

#include <stddef.h>

#include <asym/types.h>

#include "app/command-line.h"
#include "app/run.h"

/** The modes, in the order of modes.def. */
enum asym_mode {
#define ASYM_MODE(NAME, name) ASYM_MODE_##NAME,
#include "daemon/asymd/modes.def"
#undef ASYM_MODE
    ASYM_N_MODES
};

/** Indexed by enum asym_mode. */
extern const struct asym_mode_entry *const asym_modes[ASYM_N_MODES];

/** The preparations that asymd makes before it runs a mode. A later value includes the earlier ones. */
enum asym_mode_needs {
    ASYM_NEEDS_NOTHING,       /**< it reads no configuration, and ignores every option */
    ASYM_NEEDS_CONFIGURATION, /**< the configuration, and the root of the files that it reads */
    ASYM_NEEDS_MACHINE,       /**< the machine and the policy */
    ASYM_NEEDS_SIGNALS,       /**< the signals of the policy; asymd ends if one is missing */
};

/** The reaction of asymd if a preparation fails. */
enum asym_mode_failure {
    ASYM_FAILURE_ENDS,
    ASYM_FAILURE_LENIENT,  /**< if the configuration has a mistake, the mode runs with the valid part of it */
    ASYM_FAILURE_RESTORES, /**< asymd ends; before, it restores what an earlier asymd has left */
};

struct asym_mode_entry {
    const char *name; /**< "--dry-run"; NULL: no option asks for it */
    const char *help; /**< a phrase, for --help and the manual */
    /** Runs the mode, and logs its errors, except those of writing to stdout, which main logs. Returns the exit status. */
    enum asym_exit (*run)(struct asym_run *run);
    enum asym_mode_needs needs;
    enum asym_mode_failure failure;
};

/** Returns the exit status after a report to stdout that returned r, and logs its error, except that of writing. */
enum asym_exit asym_mode_reported(const struct asym_run *run, int r);

/** Log err. Returns the exit status for error, an -errno. */
enum asym_exit asym_mode_fail(const struct asym_run *run, int error, const struct asym_error *err);

#define ASYM_MODE(NAME, name) extern const struct asym_mode_entry asym_mode_##name;
#include "daemon/asymd/modes.def"
#undef ASYM_MODE

/* The command line of asymd. One table of rows serves the parser, --help and the manual. */

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
