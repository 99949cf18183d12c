/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the engine remembers of a thread, and the parts of a step that work on it. */
#ifndef ASYM_CORE_MEMORY_H
#define ASYM_CORE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/engine.h>

#include "core/classify.h"
#include "core/table.h"

/** All zero: new. In the table it is followed by the policy's per-thread state. */
struct asym_thread_memory {
    struct asym_taskid id;
    struct asym_mask original; /**< what it had; kept up to date while not steered */
    struct asym_mask set;      /**< what asymd last set, also after a release: heirs carry it */
    struct asym_mask cpuset;   /**< its cgroup's when it was last set */
    int8_t original_nice, set_nice;
    bool known;        /**< was in a snapshot before */
    bool steered;      /**< set is in force, as far as asymd knows */
    bool ever_steered; /**< set means something */
    bool boosted;      /**< set_nice is in force */
    bool nice_foreign; /**< somebody else changed its nice: never touched again */
    bool heir;         /**< inherited what was set for its creator: original is the creator's, to be given back */
    bool whole;        /**< original is all that its cpuset allows */
    enum asym_reason hands_off; /**< FOREIGN or DENIED: never again */
    int hands_off_error;
    enum asym_class class;
    asym_usec class_since, last_active;
    uint64_t seen;     /**< step that saw it last */
    uint64_t assigned; /**< plan that it has an assignment of: valid when it is the last plan's */
    struct asym_assignment assignment;
};

/**
 * Hold what the snapshot says of a thread against what asymd has set: was it released by the guard, reset by its cpuset,
 * or changed by somebody else? Leaves the memory true to what is in force.
 */
void asym_memory_observe(struct asym_thread_memory *m, const struct asym_task *task, const struct asym_proc *proc,
                         const struct asym_snapshot *s, const struct asym_enforce_settings *settings);

/** May the thread be steered? ASYM_WHY_NONE: yes. figure: of the reason. */
enum asym_reason asym_eligible(const struct asym_thread_memory *m, const struct asym_task *task,
                               const struct asym_proc *proc, const struct asym_snapshot *s,
                               const struct asym_enforce_settings *settings, double figure[2]);

/** CPUs it may be given: its original mask within its cpuset and the machine, narrowed by a rule; may be empty. */
struct asym_mask asym_may(const struct asym_thread_memory *m, const struct asym_task *task,
                          const struct asym_proc *proc, const struct asym_machine *machine);

#endif
