/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Threads that arrive and are pulled, the part that Roehrich's strategies share (Roehrich 2007, 3.1.3 and 3.2): who is
 * known stays where it is, who is new goes where entering costs least, and then a CPU pulls a thread from another as long
 * as entering here costs less than staying there. The rule of a policy says what that costs.
 *
 * Threads with equal may and weight are interchangeable. For each such group it is first decided how many each CPU gets,
 * and then who goes where: at home as long as there is room, else under the same LLC, else on the same node. So a pull
 * displaces nobody but the one that is pulled.
 *
 * Costs rise with the load of a CPU. So there is a sum over all CPUs that each pull makes smaller, by what it gains:
 * pulling ends, threads never chase each other, and a second plan finds nothing to pull.
 */
#ifndef ASYM_POLICY_BALANCE_H
#define ASYM_POLICY_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "policy/spread.h"

/** What a policy wants. load is of the CPU, in weights; CPUs of one core type have one speed. */
struct asym_balance_rule {
    /** Cost of entering a CPU whose load does not hold the thread yet: the more load, the more. */
    double (*enter)(double load, double weight, double speed);
    /** Cost of staying on a CPU whose load holds it: not above enter(load - weight, ...), or it would come back. */
    double (*leave)(double load, double weight, double speed);
    bool weighted; /**< by nice value; else each thread weighs 1 */
};

struct asym_balance_group;

struct asym_balance {
    struct asym_spread *sp;
    const struct asym_balance_rule *rule;
    double *load; /**< per CPU */
    bool *known;  /**< per thread, for the policy to fill: it was planned for before, and stays at home */

    /* of the group at hand, per CPU */
    uint32_t *have; /* how many of its threads */
    double *enter, *leave;
    uint32_t *tie;
    uint32_t *cpus, *leaf; /* those it may have; where each stands in cpus */
    uint32_t n_cpus;
    uint32_t *best_in, *best_out; /* tournaments: the winner is at 1 */

    /* of a set of threads with equal may, per core type: the CPU with the least load */
    uint32_t least[ASYM_MAX_TYPES];
    double cost[ASYM_MAX_TYPES];   /* of entering there */
    uint32_t least_set;            /* which set */
    size_t changes, least_changes; /* of loads, up to now and up to when it was looked for */

    struct asym_balance_group *groups;
    uint32_t n_groups;
    uint32_t *threads, *loose;
    size_t pulls_left;
};

/** Takes its memory from the arena; known is all false. 0; -ENOBUFS. */
int asym_balance_init(struct asym_balance *b, struct asym_spread *sp, const struct asym_balance_rule *rule);

/**
 * Place the threads of list that are not placed yet on the CPUs of open (one that may run on none of them: on any that it
 * may). Loads of earlier calls count, but only threads of this list are pulled.
 * Cost: O(n log CPUs), and O(CPUs) for each group.
 */
void asym_balance_place(struct asym_balance *b, const uint32_t *list, size_t n, const struct asym_mask *open);

/** What it remembers of a thread. */
struct asym_balance_thread {
    bool known; /**< it was planned for before */
};

/**
 * The whole of a policy that does nothing but balance: all threads by the rule over all CPUs; where those are of one core
 * type they are only spread. Its per-thread state is struct asym_balance_thread. explain: give each thread its reason. 0; -ENOBUFS.
 */
int asym_balance_plan(const struct asym_policy_input *in, struct asym_assignment *ret,
                      const struct asym_balance_rule *rule, void (*explain)(const struct asym_balance *b));

/** The speed that counts for a CPU: that of its core type. */
static inline double asym_balance_speed(const struct asym_machine *m, int cpu)
{
    return m->types[m->cpus[cpu].type].speed;
}

#endif
