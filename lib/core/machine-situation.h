/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Says in one sentence what asymd can do for a machine, as asymd --check does, and which policy it selects there. Pure. */
#ifndef ASYM_CORE_MACHINE_SITUATION_H
#define ASYM_CORE_MACHINE_SITUATION_H

#include <asym/machine.h>
#include <asym/policy.h>
#include <asym/signal.h>

#include <stdbool.h>
#include <stddef.h>

/**
 * Finds the CPUs of the fastest core type that have its largest L3, and the others of that type. The others reach a higher clock:
 * the stacked cache costs some. Returns false, and two empty masks, if all caches of the type are of one size.
 */
bool asym_machine_caches_differ(const struct asym_machine *m, struct asym_mask *ret_big_cache,
                                struct asym_mask *ret_high_clock);

/** In this order: the first that fits applies. */
enum asym_situation {
    ASYM_SITUATION_ONE_CPU,  /**< one usable CPU: asymd has nothing to choose */
    ASYM_SITUATION_POLICY,   /**< the configured policy cannot run here */
    ASYM_SITUATION_ISOLATED, /**< ordinary threads get one CPU, or fast or slow CPUs only: the others are isolated */
    ASYM_SITUATION_ASSUMED,  /**< the configuration calls some CPUs slow, but nothing slows them */
    ASYM_SITUATION_UNPRIVILEGED, /**< hybrid, but asymd may steer only its own user's threads */
    ASYM_SITUATION_VM_HYBRID, /**< a virtual machine that shows fast and slow CPUs; the host may run them otherwise */
    ASYM_SITUATION_HYBRID,    /**< fast and slow CPUs */
    ASYM_SITUATION_NEAR,      /**< core types differ in speed, but all are fast */
    ASYM_SITUATION_CPUSET,    /**< hybrid, but the allowed CPUs are alike */
    ASYM_SITUATION_UNORDERED, /**< CPUs of several kinds; no source says which are faster */
    ASYM_SITUATION_NO_SPEEDS, /**< no source gives a speed of any CPU, and this is no virtual machine */
    ASYM_SITUATION_VM_ALIKE,  /**< a virtual machine that shows equal CPUs; those of the host may differ */
    ASYM_SITUATION_FAVOURED,  /**< one core type with favoured cores */
    ASYM_SITUATION_ALIKE,     /**< one core type, all equal */
    ASYM_N_SITUATIONS
};

/** The facts that the sentence depends on. */
struct asym_situation_facts {
    const struct asym_machine *machine; /**< finished */
    const char *policy;                 /**< name of the configured policy */
    bool policy_runs;                   /**< the machine has every signal that the policy needs */
    bool may_steer;                     /**< asymd may steer other users' threads too; true for a captured machine */
    bool is_virtual;                    /**< a hypervisor provides the CPUs */
    bool assumed_slow;                  /**< the configuration calls the slow CPUs slow, but nothing slows them */
    bool hidden, unordered, unknown;    /**< as in struct asym_topology_notes */
};

enum asym_situation asym_situation_of(const struct asym_situation_facts *facts);

/** Returns "hybrid", "alike" and so on. JSON output promises these names. Static. */
const char *asym_situation_name(enum asym_situation situation);

/** Writes the sentence for these facts and returns buf. 400 bytes are enough; a smaller buffer cuts it. */
const char *asym_situation_text(const struct asym_situation_facts *facts, char *buf, size_t size);

/** Why no CPU that ordinary threads get is faster than another, and what the user can do. Static texts. */
struct asym_alike {
    const char *why;    /**< such as "all CPUs are alike" */
    const char *remedy; /**< "": none */
};

/** Returns the first cause that applies, by machine, hidden, unordered and unknown; NULL: the CPUs differ in speed. */
const struct asym_alike *asym_situation_alike(const struct asym_situation_facts *facts);

/* The policy for `auto`, and which policies a machine can run. The daemon and the simulator both use it. */

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
