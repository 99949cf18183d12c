/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Arrivals and pulls, the part that Roehrich's strategies share (Roehrich 2007, 3.1.3 and 3.2). A known thread stays where
 * it is. A new thread goes to the CPU where entering costs least. Then a CPU pulls a thread from another as long as entering
 * here costs less than staying there. The rule of a policy defines both costs.
 *
 * Threads with equal `allowed` and weight are interchangeable; they form a group. For the new threads of a group the code first
 * decides how many each CPU gets, and then which: on the preferred CPU of the thread as long as there is room, else under the
 * same LLC, else on the same node. A pull moves no other thread than the one that is pulled, to the nearest of equal CPUs.
 *
 * Costs rise with the load of a CPU. So each pull reduces a sum over all CPUs by the gain of the pull. Therefore pulling
 * ends, threads never chase each other, and a second plan finds nothing to pull.
 *
 * A rule may ask less of a short way. Then each CPU first pulls from all CPUs, next from those of its node, last from those
 * under its LLC, and again until none of them finds a thread to pull.
 */
#ifndef ASYM_POLICY_PLACEMENT_BALANCE_H
#define ASYM_POLICY_PLACEMENT_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "policy/placement/spread.h"

/** The costs of a policy. load is that of the CPU, in weights; speed is that of the thread's seat (balance.c, seat_speed). */
struct asym_balance_rule {
    /** Cost of entering a CPU whose load does not include the thread. It must rise with load. */
    double (*enter)(double load, double weight, double speed);
    /**
     * Cost of staying on a CPU whose load includes the thread: at most enter(load - weight, ...), or it would come back.
     * near: how far the CPU that would pull is at most, from ASYM_SAME_LLC to ASYM_ANYWHERE. The cost must not rise with it.
     */
    double (*leave)(double load, double weight, double speed, enum asym_nearness near);
    bool weighted;    /**< a thread has the weight of its nice value; else each thread weighs 1 */
    bool by_distance; /**< leave depends on near; else near is always ASYM_ANYWHERE */
};

struct asym_balance_group;

struct asym_balance {
    struct asym_spread *sp;
    const struct asym_balance_rule *rule;
    double *load; /**< per CPU */
    bool *known;  /**< per thread, set by the policy: an earlier plan placed it, and it stays on its preferred CPU */

    /* per CPU, for the current group */
    uint32_t *have, *came; /* how many of its threads; how many of them are new */
    double *enter, *leave;

    double beside[ASYM_MAX_TYPES], full[ASYM_MAX_TYPES]; /* per core type: see seat_speed */

    struct asym_balance_group *groups;
    uint32_t n_groups;
    uint32_t *threads, *loose; /* by set and weight; those of a group without a CPU */
    enum asym_nearness near;   /* how far threads are pulled now */
    size_t pulls_left;
};

/** Takes its memory from the arena; known is all false. The caller asks asym_arena_is_short. */
void asym_balance_init(struct asym_balance *b, struct asym_spread *sp, const struct asym_balance_rule *rule);

/**
 * Places the threads of list that are not placed yet on the CPUs of open. A thread that may run on none of them goes to any
 * CPU that it may run on. Loads of earlier calls count, but only threads of this list are pulled.
 * Cost: O(n), and O(CPUs) for each group and each thread that comes; O(CPUs + n of its group) for each that is pulled.
 */
void asym_balance_place(struct asym_balance *b, const uint32_t *list, size_t n, const struct asym_mask *open);

/** State of a thread. */
struct asym_balance_thread {
    bool known; /**< an earlier plan placed it */
};

/**
 * The plan function of a policy that only balances: it places all threads by the rule over all CPUs. If all CPUs are of one
 * core type, it only spreads the threads. The per-thread state is struct asym_balance_thread. explain sets the reason of
 * each thread. Returns 0, or -ENOBUFS if the arena is too small.
 */
int asym_balance_plan(const struct asym_policy_input *in, struct asym_assignment *ret,
                      const struct asym_balance_rule *rule, void (*explain)(const struct asym_balance *b));

/** Returns the speed that a thread has on this CPU beside the siblings that have threads. */
double asym_balance_speed_now(const struct asym_balance *b, int cpu);

/** Returns the speed that a thread has on this CPU while all hardware threads of the core are busy. */
static inline double asym_balance_speed(const struct asym_machine *m, int cpu)
{
    const struct asym_core_type *type = &m->types[m->cpus[cpu].type];
    return type->speed * (1 + m->smt_gain * (type->siblings - 1)) / type->siblings;
}

/**
 * A rule that places threads in proportion to speed. No CPU is idle before any has two threads; the fastest
 * CPUs fill first. When all are busy, a thread moves if that brings the speeds per thread of two CPUs, the effective CPU
 * power of Roehrich 2007, nearer to each other. This is Dean's method of apportionment, whose divisor is the harmonic mean
 * of n and n + 1.
 */
extern const struct asym_balance_rule asym_proportion_rule;

/** Returns the sum of the speeds of cpus. */
double asym_proportion_total(const struct asym_machine *m, const struct asym_mask *cpus);

/** Sets the reason of thread t. n threads share CPUs of that total speed. */
void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total);

#endif
