/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the engine remembers of a thread, and what follows from it. */
#ifndef ASYM_CORE_MEMORY_H
#define ASYM_CORE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/engine.h>

#include "core/intern.h"

/** All zero: new. In the table it is followed by the policy's per-thread state.
 * Masks are by number. */
struct asym_thread_memory {
    _Alignas(16) struct asym_taskid id;
    uint64_t seen;     /**< step that saw it last */
    uint64_t assigned; /**< plan that it has an assignment of */
    asym_usec class_since, last_active;
    asym_usec steered_since; /**< when asymd set something first; 0: never */
    asym_usec set_at;        /**< when set was last known to be in force */
    asym_usec doubted_at;    /**< when doubt was found first */
    struct asym_assignment assignment;
    uint32_t original;     /**< what it had; kept up to date while not steered */
    uint32_t asked;        /**< what asymd last asked for: the kernel keeps it (6.2 and
                     later) */
    uint32_t set;          /**< what the kernel made of it: in force as far as asymd knows */
    uint32_t before;       /**< what was in force before that, and may have been inherited */
    uint32_t doubt;        /**< found in place of set, and nobody knows yet by whom; 0: none */
    uint32_t doubt_cpuset; /**< its cgroup's then */
    uint32_t cpuset;       /**< its cgroup's when set was in force last */
    enum asym_class class;
    enum asym_reason hands_off; /**< FOREIGN or DENIED: never again */
    int hands_off_error;
    int32_t given; /**< target in force, where steered or fits */
    int8_t original_nice, set_nice, nice_before;
    uint8_t doubts;    /**< looks that have found it */
    bool known;        /**< was in a snapshot before */
    bool steered;      /**< set is in force, as far as asymd knows */
    bool fits;         /**< not steered: its last assignment asked for nothing but what it
                has */
    bool boosted;      /**< set_nice is in force and not its own, or what the thread has made of it */
    bool nice_foreign; /**< changed by others: no boost any more; the rest of one goes back */
    bool lost;         /**< somebody else has taken its mask, and the actuator is to be told */
    bool heir;         /**< inherited what was set for its creator: original is the
                  creator's, to be given back */
    bool whole;        /**< original is all that its cpuset allows */
    bool narrow;       /**< its own mask leaves out online CPUs of its cpuset */
};

/** A thread of the snapshot with what belongs to it. */
struct asym_seen {
    const struct asym_task *task;
    const struct asym_proc *proc;
    uint32_t mask, cpuset; /**< by number */
};

struct asym_circumstances {
    asym_usec now;
    const struct asym_machine *machine;
    const struct asym_masks *masks;
    const struct asym_enforce_settings *settings;
};

/**
 * Hold what the snapshot says of a thread against what asymd has set: was it
 * released by the guard, reset or cut down by its cpuset, or changed by
 * somebody else? Leaves the memory true to what is in force.
 */
void asym_memory_observe(struct asym_thread_memory *m, const struct asym_seen *seen,
                         const struct asym_circumstances *c);

/** What was asked for is in force. original_nice and original stay. */
void asym_memory_steered(struct asym_thread_memory *m, uint32_t mask, int8_t nice, asym_usec now);

/** It has what it had before. */
void asym_memory_released(struct asym_thread_memory *m);

/** Did it use or wait for a CPU in the interval? */
bool asym_task_is_active(const struct asym_task *task);

#endif
