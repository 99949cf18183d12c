/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * An option is a row: the same row parses, checks, prints, and documents it.
 */
#ifndef ASYM_OPTION_H
#define ASYM_OPTION_H

#include <stddef.h>

/** Type of an option, and of the field at its offset. */
enum asym_option_type {
    ASYM_OPTION_BOOL,     /**< bool: yes/no */
    ASYM_OPTION_COUNT,    /**< unsigned; "auto" (where allow_auto) is UINT_MAX */
    ASYM_OPTION_NUMBER,   /**< double; "auto" is NAN */
    ASYM_OPTION_SHARE,    /**< double, 0.8 for "80%" */
    ASYM_OPTION_DURATION, /**< asym_usec: a number with us, ms, s */
    ASYM_OPTION_NICE,     /**< int: -20..19 */
    ASYM_OPTION_CPUS,     /**< struct asym_mask: the kernel's list format */
    ASYM_OPTION_ENUM,     /**< int: index into values; "auto" is -1 */
    ASYM_OPTION_TEXT,     /**< char *: owned by the struct */
};

/** min and max are in the field's unit (microseconds for a duration) and inclusive. */
struct asym_option {
    const char *section; /**< "asymd"; NULL in a policy's table, where it is policy.NAME */
    const char *key;
    enum asym_option_type type;
    size_t offset;   /**< of the field in its struct */
    const char *def; /**< the default as text, parsed like any other value */
    double min, max;
    int allow_auto;
    const char *const *values; /**< for an enum: names, NULL-terminated */
    const char *help;          /**< one sentence for --help, --print-config and the man page */
};

#endif
