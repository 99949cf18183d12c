/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Programs and settings that place the same threads as asymd, and what follows from each. Reads files only. */
#ifndef ASYM_LINUX_CHECK_RIVALS_H
#define ASYM_LINUX_CHECK_RIVALS_H

#include <stdbool.h>

#include "linux/check/machine-facts.h"
#include "linux/sys/root.h"

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

#endif
