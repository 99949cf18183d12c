/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What asymd can do for a machine, in one sentence: the first line of asymd --check. Pure. */
#ifndef ASYM_CORE_SITUATION_H
#define ASYM_CORE_SITUATION_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/machine.h>

/** The first that fits is the one. */
enum asym_situation {
    ASYM_SITUATION_ONE_CPU,      /**< there is nothing to choose */
    ASYM_SITUATION_POLICY,       /**< the configured policy cannot run here */
    ASYM_SITUATION_ASSUMED,      /**< some CPUs are only taken for slow */
    ASYM_SITUATION_UNPRIVILEGED, /**< hybrid, but asymd may steer only its own user's threads */
    ASYM_SITUATION_VM_HYBRID,    /**< a virtual machine that shows fast and slow CPUs, truly or not */
    ASYM_SITUATION_HYBRID,       /**< fast and slow CPUs */
    ASYM_SITUATION_NEAR,         /**< core types differ in speed, but all are fast */
    ASYM_SITUATION_CPUSET,       /**< hybrid, but the allowed CPUs are alike */
    ASYM_SITUATION_UNORDERED,    /**< CPUs of several kinds, and nothing says which are faster */
    ASYM_SITUATION_VM_ALIKE,     /**< a virtual machine whose CPUs are alike, or that hides that they are not */
    ASYM_SITUATION_FAVOURED,     /**< one core type with favoured cores */
    ASYM_SITUATION_ALIKE,        /**< one core type, all equal */
    ASYM_N_SITUATIONS
};

/** The facts that the sentence depends on. */
struct asym_situation_facts {
    const struct asym_machine *machine; /**< finished */
    const char *policy;                 /**< name of the configured one */
    bool policy_runs;                   /**< every signal that it needs is there */
    bool may_steer;                     /**< other users' threads too; true where asymd only reads a captured machine */
    bool is_virtual;                    /**< the CPUs are a hypervisor's */
    bool assumed_slow;                  /**< the slow CPUs are only taken for slow */
    bool hidden, unordered;             /**< as in struct asym_topology_notes */
};

enum asym_situation asym_situation_of(const struct asym_situation_facts *facts);

/** "hybrid", "alike": for JSON, a promise. Static. */
const char *asym_situation_name(enum asym_situation situation);

/** The sentence, for the situation that the facts are. Returns buf. 400 bytes are enough; what does not fit is cut. */
const char *asym_situation_text(const struct asym_situation_facts *facts, char *buf, size_t size);

#endif
