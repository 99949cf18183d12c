/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads, prints, copies and frees the value of an option. The row (asym/option.h) says where the value is, and its range. */
#ifndef ASYM_CONFIG_OPTION_VALUE_H
#define ASYM_CONFIG_OPTION_VALUE_H

#include <stddef.h>

#include <asym/types.h>
#include <asym/option.h>

#include "base/ini.h"

/** "did you mean": finds the accepted word nearest to a wrong one, and lists the accepted words. */

struct asym_nearest {
    const char *wanted; /* the word given; borrowed; the caller sets it */
    const char *best;   /* the nearest word so far; NULL: none */
    unsigned distance;
    char list[512]; /* "a, b, c": the words listed so far */
};

/** Compare word with the nearest so far. word must live as long as n. */
void asym_nearest_consider(struct asym_nearest *n, const char *word);

/** Consider word, and add it to the list if it has room there. */
void asym_nearest_list(struct asym_nearest *n, const char *word);

/** Writes " (did you mean 'WORD'?)", or "" if no word is near enough. Returns buf. */
const char *asym_nearest_hint(const struct asym_nearest *n, char *buf, size_t size);

/**
 * Longest value of a text option, in bytes. With this limit asymd can print
 * each value on one line and read it back unchanged.
 */
#define ASYM_VALUE_MAX ASYM_INI_VALUE_MAX

/**
 * Parse value into the row's field of the struct at base. err names the option SECTION.KEY, or KEY if section is NULL; it says
 * what is wrong, which values the option accepts, and the nearest word among them. It does not name file and line, which the
 * caller knows. Returns 0; -EINVAL, -ENOMEM with err.
 */
int asym_option_parse(const struct asym_option *row, const char *section, void *base, const char *value,
                      struct asym_error *err);
/** Parse the row's default, if it has one. base must be zero. Returns 0; -EINVAL, -ENOMEM. */
int asym_option_default(const struct asym_option *row, const char *section, void *base);
/** Write the field as a text that asym_option_parse reads back unchanged. Returns buf. */
const char *asym_option_format(const struct asym_option *row, const void *base, char *buf, size_t size);
/** Write in words which values the row accepts, with range and unit. Returns buf. */
const char *asym_option_accepted(const struct asym_option *row, char *buf, size_t size);
/** Free the memory that the field owns. */
void asym_option_done(const struct asym_option *row, void *base);

/**
 * Report that the section has no key keys->wanted; keys lists the keys that it has. elsewhere: another section that has the
 * key; NULL: none is known. Returns -EINVAL with err.
 */
int asym_option_unknown(const struct asym_nearest *keys, const char *section, const char *elsewhere,
                        struct asym_error *err);

/** Parse a time with unit (ns too) into nanoseconds: "80ns", "1.5 ms". Returns 0; -EINVAL, -ERANGE. */
int asym_option_parse_ns(const char *text, size_t len, double *ret);

#endif
