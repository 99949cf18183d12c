/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A verb of asymctl: one file, which ends in one struct, and a row in verbs.def. */
#ifndef ASYM_DAEMON_ASYMCTL_VERB_H
#define ASYM_DAEMON_ASYMCTL_VERB_H

#include <stdbool.h>

#include <asym/types.h>

#include "app/command-line.h"
#include "app/settings-setup.h"

/** The verb at index i; NULL after the last. */
const struct asym_verb *asym_verb_at(size_t i);

/** The verb of that name; NULL: there is none. */
const struct asym_verb *asym_verb_find(const char *name);

/** Print on stderr that there is no verb of that name, and the nearest name. Returns the exit status. */
int asym_verb_unknown(const char *name);

/** The words of a verb other than options. */
enum asym_operands {
    ASYM_OPERANDS_NONE,
    ASYM_OPERANDS_MAY,    /**< at most one */
    ASYM_OPERANDS_MUST,   /**< exactly one */
    ASYM_OPERANDS_TWO,    /**< exactly two */
    ASYM_OPERANDS_SOME,   /**< at most two */
    ASYM_OPERANDS_ANY,    /**< at most ASYM_OPERANDS_MAX */
    ASYM_OPERANDS_RUN,    /**< a command: from the first word that is no option, or after "--" */
    ASYM_OPERANDS_BEHIND, /**< a command, after "--" only */
};

/** The options of a verb that has --json only. */
struct asym_verb_json {
    bool json;
};

extern const struct asym_arg asym_verb_json_args[];

/** Those of a verb that has --config, too. */
struct asym_verb_config {
    const char *config; /**< NULL: that of the running asymd, or the installed one */
    bool json;
};

extern const struct asym_arg asym_verb_config_args[];

struct asym_verb {
    const char *name;
    const struct asym_arg *args; /**< the last row has no key; NULL: the verb has no options */
    enum asym_operands operands;
    const char *usage;       /**< the operands in the usage line: "SCENARIO.ini"; NULL: none */
    const char *needs;       /**< the operands in an error: "a scenario", "a PID and an action" */
    const char *summary;     /**< one line, for asymctl help */
    const char *help;        /**< for asymctl help VERB; ends in a newline */
    const char *file_option; /**< the option whose default is an installed file; NULL: none */
    enum asym_path file;
    /**
     * args: the struct of the rows; operands ends in NULL. Prints errors on stderr, except those of writing to stdout. Returns the
     * exit status.
     */
    int (*run)(const void *args, char **operands);
};

/** Parse the words after the verb, and run it. argv[0] is the verb. Returns the exit status. */
int asym_verb_run(const struct asym_verb *verb, int argc, char **argv);

/** Print "asymctl: " and a message on stderr. Returns status. */
int asym_verb_fail(enum asym_exit status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Print what, and the usage of the verb, on stderr. Returns the exit status. */
int asym_verb_wrong_usage(const struct asym_verb *verb, const char *what);

/** Returns the exit status after a report to stdout that returned r, and prints its error, except that of writing. */
int asym_verb_reported(int r);

/**
 * Call fn for each word of a list, which commas separate; list: NULL: it has none. Returns what fn has returned for the first word;
 * below 0: that of the word at which fn has failed.
 */
int asym_verb_each_word(const char *list, int (*fn)(void *ctx, const char *word, struct asym_error *err), void *ctx,
                        struct asym_error *err);

/** Flush stdout, for main. If it could not be written, print that on stderr, and return 1; else return status. */
int asym_verb_end(int status);

#define ASYM_VERB(name) extern const struct asym_verb asym_verb_##name;
#include "daemon/asymctl/verbs.def"
#undef ASYM_VERB

#endif
