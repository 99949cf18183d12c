/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Who has inherited what. A thread or process that a steered thread creates starts with the mask that was set for its
 * creator; from the outside it looks as if it had chosen it.
 *
 * The engine remembers of each thread what is in force on it and what was before, also for a while after it was
 * released. Only a step with candidates pays for looking: then all of it is put in order by process and mask, once.
 */
#ifndef ASYM_CORE_HEIRS_H
#define ASYM_CORE_HEIRS_H

#include <stdbool.h>

#include "core/memory.h"
#include "core/table.h"

struct asym_heirs {
    const struct asym_table *threads;
    struct entry {
        uint32_t thread; /* index in threads + 1; 0: free */
        bool before;     /* it is about what was in force before */
    } * slots;           /* n_slots is a power of two */
    size_t n_slots;
};

/**
 * May it have inherited anything? It is seen for the first time, is not whole or not of nice 0, and the source says
 * newborn, or its process is younger than anything that asymd has set.
 */
bool asym_heirs_is_candidate(const struct asym_thread_memory *m, const struct asym_seen *seen, asym_usec first_steered);

/** Take stock of what is to be inherited from threads. pool: for the slots. 0; -ENOMEM. */
int asym_heirs_list(struct asym_heirs *h, const struct asym_table *threads, struct asym_pool *pool);

/**
 * If it carries exactly what was set for a thread of its process, or of the process that created its own: m gets what
 * that thread had before, is marked as heir, and has heirs itself. True if so. parent: of its process; NULL: it is not seen.
 * Numbers are used again: a process that began after that thread is not the one it was of.
 */
bool asym_heirs_adopt(struct asym_heirs *h, struct asym_thread_memory *m, const struct asym_seen *seen,
                      const struct asym_proc *parent, asym_usec now);

#endif
