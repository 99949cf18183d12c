/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What a machine offers asymd and what it lacks, for asymd --check: one fact a line, with the remedy. */
#ifndef ASYM_LINUX_FACTS_H
#define ASYM_LINUX_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "linux/root.h"

enum asym_fact_level {
    ASYM_FACT_GOOD,
    ASYM_FACT_NOTE, /* works, but worth knowing: something acts less than one would think */
    ASYM_FACT_LACK, /* something asymd can use is not there */
};

struct asym_fact {
    enum asym_fact_level level;
    char text[200];   /* printable, one line */
    char remedy[200]; /* "" where there is none or none is needed */
};

/**
 * Call fn for each fact in the order of the table; of a captured root, only for what its files can tell. A fn that returns
 * other than 0 ends it. Returns what fn returned last, 0 when there was nothing to tell. Opens nothing for writing and
 * no proc connector (births.h).
 */
int asym_facts_each(const struct asym_root *root, int (*fn)(void *ctx, const char *name, const struct asym_fact *fact),
                    void *ctx);

/** May this process steer other users' threads (CAP_SYS_NICE)? True for a captured root, which is only read. */
bool asym_facts_may_steer(const struct asym_root *root);

#endif
