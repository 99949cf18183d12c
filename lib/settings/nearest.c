/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

void asym_nearest_consider(struct asym_nearest *n, const char *word)
{
    char lower[65];
    size_t i = 0;
    for (; i + 1 < sizeof lower && n->wanted[i]; i++)
        lower[i] = (char)tolower((unsigned char)n->wanted[i]);
    lower[i] = '\0';
    /* A word cut short is nearer than its distance says: --dry for --dry-run. */
    unsigned d = i > 1 && strncmp(lower, word, i) == 0 ? word[i] != '\0' : asym_text_distance(lower, word);
    if (!n->best || d < n->distance) {
        n->best = word;
        n->distance = d;
    }
}

/* Two swapped letters are a distance of 2; in a word of two letters that is any other word. */
const char *asym_nearest_hint(const struct asym_nearest *n, char *buf, size_t size)
{
    size_t len = n->best ? strlen(n->best) : 0;
    unsigned near = len <= 2 ? 1 : 2 + (unsigned)(len / 8);
    buf[0] = '\0';
    if (len > 0 && n->distance <= near && n->distance < len)
        snprintf(buf, size, " (did you mean '%s'?)", n->best);
    return buf;
}
