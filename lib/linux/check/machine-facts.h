/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The facts of asymd --check: features that the machine has or lacks, one a line, with a remedy. */
#ifndef ASYM_LINUX_CHECK_MACHINE_FACTS_H
#define ASYM_LINUX_CHECK_MACHINE_FACTS_H

#include <stdbool.h>

#include "linux/sys/root.h"

enum asym_fact_level {
    ASYM_FACT_GOOD,
    ASYM_FACT_NOTE, /* asymd works, but a feature does less than the user may expect */
    ASYM_FACT_LACK, /* a feature that asymd can use is missing */
};

struct asym_fact {
    enum asym_fact_level level;
    char text[200];   /* printable, one line */
    char remedy[200]; /* "": none exists or none is needed */
};

/**
 * Calls fn for each fact in the order of the table; for a captured root, only for the facts that its files show. Stops when fn
 * returns other than 0. Returns the last result of fn; 0: no facts. It opens no file for writing and no proc connector
 * (process-events.h).
 */
int asym_facts_each(const struct asym_root *root, int (*fn)(void *ctx, const char *name, const struct asym_fact *fact),
                    void *ctx);

/** Returns whether asymd may steer other users' threads (CAP_SYS_NICE). True for a captured root, which asymd only reads. */
bool asym_facts_may_steer(const struct asym_root *root);

/* For the files of the room. */

/** Reads the first line of a file and escapes it for print. Returns 0; -ENODATA: the line is empty; -errno. */
int asym_facts_line(const struct asym_root *root, const char *path, char *buf, size_t size);

void asym_facts_say(struct asym_fact *f, enum asym_fact_level level, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
