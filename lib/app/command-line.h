/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The command line of a program: its options, its terminal, the end of its output, and its exit status. */
#ifndef ASYM_APP_COMMAND_LINE_H
#define ASYM_APP_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <asym/types.h>
#include <asym/option.h>

#include "report/columns.h"

/** Users rely on these numbers (asymd(8), EXIT STATUS): they do not change. */
enum asym_exit {
    ASYM_EXIT_DONE = 0,
    ASYM_EXIT_FAILED = 1,
    ASYM_EXIT_USAGE = 2,
    ASYM_EXIT_NO_SIGNAL = 3,
    ASYM_EXIT_NOT_PERMITTED = 4,
    ASYM_EXIT_NO_SERVICE = 5,
};

/** The exit status for a set-up that failed with error, an -errno. */
enum asym_exit asym_exit_status(int error);

/** An option. The last row of a table has no key. */
struct asym_arg {
    struct asym_option
        option;           /**< key: "--pid"; section: the section of the configuration whose option it sets, or NULL */
    const char *argument; /**< the name of its argument, "PID"; NULL: it takes none */
    unsigned modes;       /**< asymd: the modes that take it, as bits by enum asym_mode */
    bool or_next;         /**< the user gives this option or the one of the next row: "[--fast | --slow]" */
};

/** The most bytes of a struct with the parsed options of a verb. */
#define ASYM_ARGS_MAX 256

/** The place of a field in such a struct. A larger struct does not compile. */
#define ASYM_ARG_AT(struct_, field_)                                                                                   \
    (offsetof(struct_, field_) + 0 * sizeof(char[sizeof(struct_) <= ASYM_ARGS_MAX ? 1 : -1]))

/** The fields of a row of a verb: key, type, argument, a field of that struct, and further fields of the option. */
#define ASYM_ARG_FIELDS(struct_, key_, type_, argument_, field_, ...)                                                  \
    .option = {.key = key_, .type = ASYM_OPTION_##type_, .offset = ASYM_ARG_AT(struct_, field_), __VA_ARGS__},         \
    .argument = argument_

#define ASYM_ARG_OF(...)                                                                                               \
    {                                                                                                                  \
        ASYM_ARG_FIELDS(__VA_ARGS__)                                                                                   \
    }

/** A row, with a field of the struct arguments of that file, that excludes the next row. */
#define ASYM_ARG_OR(...)                                                                                               \
    {                                                                                                                  \
        ASYM_ARG_FIELDS(struct arguments, __VA_ARGS__), .or_next = true                                                \
    }

/** The same with a field of the struct arguments of that file. */
#define ASYM_ARG(...) ASYM_ARG_OF(struct arguments, __VA_ARGS__)

/** Set the defaults of the rows in base, which must be zero. Returns 0; -EINVAL, -ENOMEM. */
int asym_args_default(const struct asym_arg *rows, void *base);

/**
 * Parse the option at argv[*at], with its argument after '=' or in the next word, into base. Sets *at to the last word used.
 * Returns 1, and sets *ret_row; 0 if no row has that key; -EINVAL, -ENOMEM with err.
 */
int asym_args_take(const struct asym_arg *rows, int argc, char **argv, int *at, void *base, size_t *ret_row,
                   struct asym_error *err);

/** Returns -EINVAL with err: there is no option arg. err ends with the nearest option, or with remedy if none is near. */
int asym_args_unknown(const struct asym_arg *rows, const char *arg, const char *remedy, struct asym_error *err);

/** Write "--pid=PID". Returns buf. */
const char *asym_args_name(const struct asym_arg *row, char *buf, size_t size);

/** Print a line of a help text: what, in a column of that width, then text, wrapped as wide as the terminal. */
void asym_args_line(const struct asym_terminal *terminal, int width, const char *what, const char *text);

/**
 * Flush standard output. Returns 0; -errno of the write that failed; -EIO if an earlier write failed and the C library no
 * longer has its errno. A second call returns an error again.
 */
int asym_output_end(void);

/**
 * The terminal behind out, for reports. Colour: out is a terminal, and the user did not set NO_COLOR. The width: what the user
 * set in COLUMNS; else that of the terminal; else ASYM_COLUMNS_DEFAULT.
 */
struct asym_terminal asym_terminal_of(FILE *out);

/** Print a message and a newline: wrapped if out is a terminal, else as one line. Further lines begin at column 2. */
void asym_terminal_message(FILE *out, const char *text);

/** Returns the width by the value of COLUMNS (NULL: not set) and the terminal's own columns (0: no terminal). */
size_t asym_terminal_columns(const char *variable, unsigned columns);

#endif
