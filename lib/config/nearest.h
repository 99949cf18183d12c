/* SPDX-License-Identifier: GPL-2.0-or-later */
/** "did you mean": finds the accepted word nearest to a wrong one, and lists the accepted words. */
#ifndef ASYM_CONFIG_NEAREST_H
#define ASYM_CONFIG_NEAREST_H

#include <stddef.h>

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

#endif
