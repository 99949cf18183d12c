/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Finds the thread that another one has inherited its mask from, among the entries of the ledger. Needs no memory but the
 * ledger's: a machine without memory is one on which threads must be restored. Reads every entry once for each process, and
 * once for each thread of a process that descends from a steered one.
 */
#ifndef ASYM_LINUX_ENFORCE_CREATOR_H
#define ASYM_LINUX_ENFORCE_CREATOR_H

#include <stddef.h>
#include <stdint.h>

#include "linux/enforce/ancestry.h"
#include "linux/enforce/ledger-internal.h"

/** The entries whose threads may have passed a mask to one process. They are marked until another process is selected. */
struct asym_creators {
    struct asym_ledger *ledger;
    size_t n;
    uint64_t since; /**< the least of them: threads that started earlier inherited nothing */
    uint64_t
        masks[16]; /**< a bit for each hash of a mask that they may have passed on: most threads have another one */
    /** Threads are assumed to have started at this time (monotonic), as in asym_ledger_looks_inherited. The caller sets it. */
    asym_usec begun;
};

/** Selects the process with these ancestors. c->ledger and c->begun are set. */
void asym_creators_select(struct asym_creators *c, const struct asym_ancestors *ancestors);

/**
 * Finds the entry that a thread of the selected process has inherited its mask and nice value from. found and nice: what the
 * thread has now. An entry that explains the exact nice value comes first, then the one whose thread originally had the most
 * online CPUs, then the one of the nearest ancestor. Returns NULL if there is none.
 */
const struct asym_ledger_entry *asym_creators_find(const struct asym_creators *c, const struct asym_taskid *id,
                                                   const struct asym_mask *found, int8_t nice);

#endif
