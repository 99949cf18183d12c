/* SPDX-License-Identifier: GPL-2.0-or-later */
/** "did you mean": the nearest of the words that would have been right. */
#ifndef ASYM_SETTINGS_NEAREST_H
#define ASYM_SETTINGS_NEAREST_H

#include <stddef.h>

struct asym_nearest {
    const char *wanted; /* borrowed; set by the caller */
    const char *best;   /* NULL so far */
    unsigned distance;
};

/** word: borrowed as long as n is used. */
void asym_nearest_consider(struct asym_nearest *n, const char *word);

/** " (did you mean 'WORD'?)", or "" when none is near enough to be what was meant. Returns buf. */
const char *asym_nearest_hint(const struct asym_nearest *n, char *buf, size_t size);

#endif
