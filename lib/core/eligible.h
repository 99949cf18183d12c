/* SPDX-License-Identifier: GPL-2.0-or-later */
/** From facts about a thread to whether it may be steered, and where. */
#ifndef ASYM_CORE_ELIGIBLE_H
#define ASYM_CORE_ELIGIBLE_H

#include <stdbool.h>

#include <asym/engine.h>

#include "core/memory.h"

/** What is left of the time in which a process that created another is not steered; 0: none. */
asym_usec asym_fork_holdoff_left(const struct asym_proc *proc, asym_usec now,
                                 const struct asym_enforce_settings *settings);

/** Does anything about the process itself speak against steering its threads? ASYM_WHY_NONE: no. */
enum asym_reason asym_eligible_proc(const struct asym_proc *proc, asym_usec now,
                                    const struct asym_enforce_settings *settings, double ret_figure[2]);

/** May the thread be steered? ASYM_WHY_NONE: yes. Idleness is not asked about here. ret_figure is always written. */
enum asym_reason asym_eligible(const struct asym_thread_memory *m, const struct asym_task *task,
                               const struct asym_proc *proc, asym_usec now,
                               const struct asym_enforce_settings *settings, double ret_figure[2]);

/**
 * CPUs that a thread with this original mask may be given: of its cpuset and the usable ones, those it had before
 * (original NULL: it had all of its cpuset, and has whatever that has grown to), narrowed by a rule where that leaves
 * any. May be empty.
 */
struct asym_mask asym_may(const struct asym_mask *original, const struct asym_mask *cpuset, enum asym_rule_action rule,
                          const struct asym_machine *machine);

#endif
