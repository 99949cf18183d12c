/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Selects the policy for `auto`, and checks which policies a machine can run. The daemon and the simulator both use it. */
#ifndef ASYM_CORE_POLICY_SELECT_H
#define ASYM_CORE_POLICY_SELECT_H

#include <stdbool.h>

#include <asym/policy.h>
#include <asym/signal.h>

/** The facts that `auto` depends on. */
struct asym_policy_facts {
    const char *alike;          /**< why no CPU is faster than another; NULL: CPUs differ in speed. Static */
    bool kernel_knows;          /**< the kernel places threads by these speeds */
    const char *const *missing; /**< ASYM_N_SIGNALS reasons; NULL: the signal is there */
};

struct asym_policy_choice {
    const struct asym_policy *policy; /**< NULL: no policy has that name */
    const char *why;                  /**< why `auto` selects it; NULL: the user gave the name. Static */
};

/** Returns the policy of that name, or the one that "auto" selects. */
struct asym_policy_choice asym_policy_select(const char *name, const struct asym_policy_facts *facts);

/**
 * Returns the first signal, starting at from, that the policy needs and the machine lacks; ASYM_N_SIGNALS: it lacks none.
 * missing: ASYM_N_SIGNALS reasons; NULL: the machine has the signal.
 */
enum asym_signal asym_policy_lacks(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS],
                                   enum asym_signal from);

/** True when a live machine without these signals can run the policy: the policy does not refuse and lacks no signal. */
bool asym_policy_can_run(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS]);

#endif
