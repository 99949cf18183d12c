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

/* Programs and settings that place the same threads as asymd, and what follows from each. Reads files only. */

/** A look for rivals. */
struct asym_rivals;

/** Returns a look that has not begun; NULL: no memory. It keeps up to five directories open until its end. */
struct asym_rivals *asym_rivals_new(void);
void asym_rivals_free(struct asym_rivals *r);

/**
 * Go on with the look: at so many processes and control groups at most.
 * Returns true at its end: it has read the name of each process, and 2,000 control groups at most.
 */
bool asym_rivals_look(struct asym_rivals *r, const struct asym_root *root, unsigned at_most);

/**
 * Call fn for each rival that the look has seen, as a fact with a remedy; name is a static string. Stops when fn returns
 * other than 0. with_pids: the facts have the PIDs of rivals, which hidepid may hide from a user who reads the facts.
 * Returns the last result of fn; 0: there is none.
 */
int asym_rivals_each(const struct asym_rivals *r, bool with_pids,
                     int (*fn)(void *ctx, const char *name, const struct asym_fact *fact), void *ctx);

/* Only machine-facts*.c include this. */

/** Reads the first line of a file and escapes it for print. Returns 0; -ENODATA: the line is empty; -errno. */
int asym_facts_line(const struct asym_root *root, const char *path, char *buf, size_t size);

/** Reads a file that holds one number and nothing else. Returns false for any other. */
bool asym_facts_number(const struct asym_root *root, const char *path, long long *ret);

void asym_facts_say(struct asym_fact *f, enum asym_fact_level level, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

int asym_facts_read_cgroups(const struct asym_root *root, struct asym_fact *ret);

#endif
