/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Returns whether two letters next to each other have changed places. */
static bool is_swapped(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    return a[i] && a[i + 1] && a[i + 1] == b[i] && a[i] == b[i + 1] && strcmp(a + i + 2, b + i + 2) == 0;
}

void asym_nearest_consider(struct asym_nearest *n, const char *word)
{
    char lower[65];
    size_t i = 0;
    for (; i + 1 < sizeof lower && n->wanted[i]; i++)
        lower[i] = (char)tolower((unsigned char)n->wanted[i]);
    lower[i] = '\0';
    /* The beginning of a word is nearer than its distance says: --dry for --dry-run. */
    unsigned d = i > 1 && strncmp(lower, word, i) == 0 ? word[i] != '\0'
                 : is_swapped(lower, word)             ? 1
                                                       : asym_text_distance(lower, word);
    if (!n->best || d < n->distance) {
        n->best = word;
        n->distance = d;
    }
}

void asym_nearest_list(struct asym_nearest *n, const char *word)
{
    const size_t used = strlen(n->list);
    asym_nearest_consider(n, word);
    if (used + strlen(word) + sizeof ", " <= sizeof n->list)
        snprintf(n->list + used, sizeof n->list - used, "%s%s", used ? ", " : "", word);
}

/* At a distance of 2 most words of up to four letters are near another one. */
const char *asym_nearest_hint(const struct asym_nearest *n, char *buf, size_t size)
{
    size_t len = n->best ? strlen(n->best) : 0;
    unsigned near = len <= 4 ? 1 : 2 + (unsigned)(len / 8);
    buf[0] = '\0';
    if (len > 0 && n->distance <= near && n->distance < len)
        snprintf(buf, size, " (did you mean '%s'?)", n->best);
    return buf;
}
