/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Decides from facts whether asymd may steer a thread, and to which CPUs. */
#ifndef ASYM_CORE_EXCLUSION_H
#define ASYM_CORE_EXCLUSION_H

#include <asym/engine.h>

#include "core/thread-state.h"

/** Returns the CPUs that the rule of the process names; NULL: none. */
const struct asym_mask *asym_rule_cpus(const struct asym_proc *proc);

/** How much longer asymd does not steer a process that forked, in microseconds; 0: it may. */
asym_usec asym_fork_holdoff_left(const struct asym_proc *proc, asym_usec now,
                                 const struct asym_enforce_settings *settings);

/**
 * Returns why asymd steers no thread of the process for as long as flags and rule of proc stay; ASYM_WHY_NONE: they do not forbid
 * it. Time plays no part.
 */
enum asym_exclusion asym_lasting_exclusion(const struct asym_proc *proc);

/** Returns whether that is one of the reasons that asym_lasting_exclusion() returns. */
bool asym_is_lasting_exclusion(const struct asym_reason *reason);

/** Returns why asymd may steer no thread of the process; ASYM_WHY_NONE: the process does not forbid it. */
enum asym_exclusion asym_eligible_proc(const struct asym_proc *proc, asym_usec now,
                                       const struct asym_enforce_settings *settings, double ret_figure[2]);

/** Returns why asymd may not steer the thread; ASYM_WHY_NONE: it may. Does not check idleness. Always writes ret_figure. */
enum asym_exclusion asym_eligible(const struct asym_thread_state *m, const struct asym_task *task,
                                  const struct asym_proc *proc, asym_usec now,
                                  const struct asym_enforce_settings *settings, double ret_figure[2]);

/**
 * Returns the CPUs that asymd may give a thread: the usable CPUs of its cpuset that its original mask allows. original NULL:
 * the thread had its whole cpuset, so any CPU of today's cpuset is allowed. The rule of proc narrows the result, by its CPUs
 * first and then to the fast or slow ones, each unless that leaves no CPU. The result may be empty.
 */
struct asym_mask asym_allowed_cpus(const struct asym_mask *original, const struct asym_mask *cpuset,
                                   const struct asym_proc *proc, const struct asym_machine *machine);

#endif
