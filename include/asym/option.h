/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The row that describes an option. asymd parses, checks, prints and documents the option by its row. The configuration
 * (asym/settings-options.h), the scenarios of the simulator and the command lines of the programs have tables of such rows.
 */
#ifndef ASYM_OPTION_H
#define ASYM_OPTION_H

#include <stddef.h>

/** The type of an option and of its field. [VALUE]: the field has this value when the user gives the row's keyword. */
enum asym_option_type {
    ASYM_OPTION_BOOL,     /**< bool: yes/no */
    ASYM_OPTION_COUNT,    /**< unsigned [UINT_MAX] */
    ASYM_OPTION_WHOLE,    /**< uint64_t [UINT64_MAX] */
    ASYM_OPTION_NUMBER,   /**< double [NAN] */
    ASYM_OPTION_SHARE,    /**< double: "80%" is 0.8 */
    ASYM_OPTION_DURATION, /**< asym_usec, microseconds: a number with us, ms, s, min, h */
    ASYM_OPTION_NS,       /**< uint64_t, nanoseconds: a number with ns, us, ms, s [UINT64_MAX] */
    ASYM_OPTION_NICE,     /**< int: -20..19 */
    ASYM_OPTION_ENUM,     /**< int: index into values [-1] */
    ASYM_OPTION_TEXT,     /**< char *: owned by the struct */
    ASYM_OPTION_STRING,   /**< const char *: borrowed from the value, which is not empty */
    ASYM_OPTION_CUSTOM,   /**< the row's own parse reads the value; it is not printed */
};

struct asym_option {
    const char *section; /**< such as "asymd"; NULL on a command line, and in the table of a policy: policy.NAME */
    const char *key;     /**< with its dashes on a command line: "--pid" */
    enum asym_option_type type;
    size_t offset;   /**< offset of the field in its struct */
    const char *def; /**< the default as the user would write it, the keyword included; NULL: the field stays zero */
    double min, max; /**< the range of a number, inclusive, in the field's unit (microseconds for a duration) */
    /** A word that stands for a value, such as "auto"; min and max do not apply to it. NULL: none */
    const char *keyword;
    const char *const *values; /**< the names of an enum, NULL-terminated */
    const char *help;          /**< one sentence for --help, --print-config and the man page */
    const char *accepted;      /**< for CUSTOM: describes the accepted values in words */
    /** For CUSTOM: parse value into the struct at base. Returns 0; -EINVAL if value is not accepted; -ENOMEM. */
    int (*parse)(const struct asym_option *row, void *base, const char *value);
};

/** The list of the names of an enum, for a row. */
#define ASYM_OPTION_VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})

/** A row whose key is the name of its field in the struct base. type: the end of an ASYM_OPTION_* name. */
#define ASYM_OPTION(base, type_, key_, ...)                                                                            \
    {                                                                                                                  \
        .key = #key_, .type = ASYM_OPTION_##type_, .offset = offsetof(base, key_), __VA_ARGS__                         \
    }

#endif
