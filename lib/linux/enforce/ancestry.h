/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The ancestors of processes on the live machine. Recent look-ups are remembered, in a table of a fixed size. */
#ifndef ASYM_LINUX_ENFORCE_ANCESTRY_H
#define ASYM_LINUX_ENFORCE_ANCESTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
