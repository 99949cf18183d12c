/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What could not be seen or steered, in words; the same ones for the dry run, --once and the service. */
#ifndef ASYM_DAEMON_SIGHT_H
#define ASYM_DAEMON_SIGHT_H

#include <stdbool.h>

#include <asym/snapshot.h>

/** Call fn for each sentence. missed: some processes are left out because of it; else it only costs time. */
void asym_sight_each(const struct asym_sight *s, void (*fn)(void *ctx, bool missed, const char *text), void *ctx);

#endif
