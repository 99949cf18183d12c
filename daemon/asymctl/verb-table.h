/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The table of the verbs, from verbs.def. It holds help, which prints the table: these two files need each other. */
#ifndef ASYM_DAEMON_ASYMCTL_VERB_TABLE_H
#define ASYM_DAEMON_ASYMCTL_VERB_TABLE_H

#include "daemon/asymctl/verb.h"

/** The verb at index i; NULL after the last. */
const struct asym_verb *asym_verb_at(size_t i);

/** The verb of that name; NULL: there is none. */
const struct asym_verb *asym_verb_find(const char *name);

/** Print on stderr that there is no verb of that name, and the nearest name. Returns the exit status. */
int asym_verb_unknown(const char *name);

#endif
