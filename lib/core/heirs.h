/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Who may have inherited what. A thread or process that a steered thread creates starts with the mask that was set for
 * its creator; from the outside it looks as if it had chosen it. So every mask that was set is kept for each process
 * it was set in, also for a while after it was given back, with what it had stood in the place of.
 */
#ifndef ASYM_CORE_HEIRS_H
#define ASYM_CORE_HEIRS_H

#include <stdbool.h>

#include "core/memory.h"
#include "core/table.h"

struct asym_heirs {
    struct asym_table legacies;
    asym_usec swept;
};

void asym_heirs_init(struct asym_heirs *h);
void asym_heirs_done(struct asym_heirs *h);

/**
 * What m.set and m.set_nice replaced is now to be found under m's process. Without memory for it nothing is noted: the
 * guard, which works on events, is the first line; this is the second.
 */
void asym_heirs_note(struct asym_heirs *h, const struct asym_thread_memory *m, asym_usec now);

/**
 * Did this thread, first seen now, inherit its mask (or its nice with it)? It must carry exactly what was set for a
 * thread of its process or of the process that created its own, and have been born since: the source says newborn, or
 * its process is younger than the setting. If so m gets what its creator had before, and is marked as heir.
 */
bool asym_heirs_adopt(struct asym_heirs *h, struct asym_thread_memory *m, const struct asym_task *task,
                      const struct asym_proc *proc, asym_usec now);

/** Forget what is in force on no thread of threads and was not within the last keep. Looks once a second. */
void asym_heirs_sweep(struct asym_heirs *h, const struct asym_table *threads, asym_usec now, asym_usec keep);

#endif
