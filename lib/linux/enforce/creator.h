/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Finds the thread that another one has inherited its mask from, among the entries of the ledger. Needs no memory but the
 * ledger's: a machine without memory is one on which threads must be restored. Reads every entry once for each process, and
 * once for each thread of a process that descends from a steered one.
 */
#ifndef ASYM_LINUX_ENFORCE_CREATOR_H
#define ASYM_LINUX_ENFORCE_CREATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linux/enforce/ledger-internal.h"

/** Longest chain of parents that is followed. Inherited steering does not pass through a longer chain. */
#define ASYM_ANCESTORS_MAX 64

/** An origin of a process: the process itself, an ancestor, or its session. */
struct asym_ancestor {
    int32_t number; /**< PID or session ID */
    uint64_t start; /**< of the process or the session leader, clock ticks since boot; 0: the leader has exited */
    /**
     * Earliest start of the processes below this origin, down to and including the process itself; clock ticks since
     * boot. UINT64_MAX: this origin is the process itself.
     */
    uint64_t oldest;
};

struct asym_ancestors {
    struct asym_ancestor processes[ASYM_ANCESTORS_MAX + 1]; /**< from the process upwards, without init */
    size_t n;
    /**
     * The session of the process, if the process may be an orphan; else number 0. A chain of parents that reaches init
     * without the session leader has lost a process. Then only the session shows where the process came from. The child
     * of a live leader is no orphan: a shell whose children set their own masks looks the same.
     */
    struct asym_ancestor session;
};

/** A process that was looked up. pid 0: none. */
struct asym_ancestry_process {
    int32_t pid, parent, session;
    uint64_t start;
    bool gone;
};

#define ASYM_ANCESTRY_SLOTS 512

/** By PID: a process takes the slot of another one. All zero at first, and again to forget all processes. */
struct asym_ancestry {
    struct asym_ancestry_process slots[ASYM_ANCESTRY_SLOTS];
};

/**
 * Finds the origins of the process. If the process has exited, ret holds none. If an ancestor has exited, ret ends below that
 * ancestor.
 */
void asym_ancestry_of(struct asym_ancestry *ancestry, int32_t pid, struct asym_ancestors *ret);

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
