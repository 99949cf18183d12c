/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Programs and settings that place the same threads as asymd, and what follows from each. Reads files only. */
#ifndef ASYM_LINUX_CHECK_RIVALS_H
#define ASYM_LINUX_CHECK_RIVALS_H

#include "linux/check/machine-facts.h"

/**
 * Call fn for each rival that is at work, as a fact with a remedy; name is a static string. Stops when fn returns other than 0.
 * Returns the last result of fn; 0: there is none. It reads the name of each process, and some 2,000 control groups at most.
 */
int asym_rivals_each(const struct asym_root *root, int (*fn)(void *ctx, const char *name, const struct asym_fact *fact),
                     void *ctx);

#endif
