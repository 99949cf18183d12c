/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Placement of threads on CPUs, the part that all policies share: even, sticky, and near.
 *
 * Sticky (docs/policies.md, rule 4): among equal choices a thread stays on its preferred CPU, then under the same LLC, then
 * on the same NUMA node (Saez 2010, 3.4: migrating across memory domains costs up to 18 %). Among equally loaded CPUs the
 * seats fill in the order of asym_machine.rows: a core before the second hardware thread of a faster one. The remaining ties go
 * by the order of favoured cores (asym_cpu.rank).
 */
#ifndef ASYM_POLICY_PLACEMENT_SPREAD_H
#define ASYM_POLICY_PLACEMENT_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "base/mask.h"

/** How far one CPU is from another, in increasing order. */
enum asym_nearness { ASYM_AT_PREFERRED, ASYM_SAME_LLC, ASYM_SAME_NODE, ASYM_ANYWHERE };

/** State of a placement in progress. Policies read in, ret and load. */
struct asym_spread {
    const struct asym_policy_input *in;
    struct asym_assignment *ret;
    uint32_t *load;            /* per CPU: threads placed on it */
    struct asym_mask reserved; /* by the policy: CPUs that others should not slow; their siblings fill last */

    int32_t *places;  /* CPUs for threads of one set, a place each; -1: it is taken */
    uint32_t *cursor; /* per CPU, LLC or node: the places before are taken, or elsewhere; or marks of LLCs */
    uint32_t *extra;  /* per core: threads that prefer one of its CPUs */
    uint32_t *want;   /* per CPU: threads not placed yet that prefer it */

    const struct asym_mask **sets; /* the different `allowed` masks, fewest CPUs first */
    uint32_t *set_of;              /* per thread */
    uint32_t *set_mark;            /* per set: scratch for loops over sets; has n_sets + 1 entries */
    uint32_t *set_reach;           /* per set: ASYM_REACH_* */
    uint32_t n_sets;
    uint32_t *list, *scratch; /* n_threads each */

    uint8_t *holds;    /* per thread: 1 + the row of the seat that asym_spread_give gave it; 0: none */
    bool is_again;     /* a second plan at the same time, in which rule 3 moves no thread from its CPU */
    const bool *stays; /* per thread, set by the policy: rule 3 does not move it; NULL: it moves any thread */
};

/** First: takes its memory from in->arena, marks all of ret as not placed (cpu -1). The caller asks asym_arena_is_short. */
void asym_spread_init(struct asym_spread *sp, const struct asym_policy_input *in, struct asym_assignment *ret);

/** Begins a second plan at the same time: each thread stays on its preferred CPU. */
void asym_spread_stay(struct asym_spread *sp);

/** Moves the threads that may run on one of cpus to the front of list, in their order. Returns how many. */
size_t asym_spread_able(struct asym_spread *sp, uint32_t *list, size_t n, const struct asym_mask *cpus);

/** Gives each of n threads one of the n places: its preferred CPU if that is one, else the first of those nearest to it. */
void asym_spread_hand_out(struct asym_spread *sp, const uint32_t *list, size_t n);

/** Returns the seats of cpus that are left: an idle CPU of each idle core; or, if is_beside, the idle CPUs with a busy sibling. */
struct asym_mask asym_spread_seats(const struct asym_spread *sp, const struct asym_mask *cpus, bool is_beside);

/** Returns their number. */
uint32_t asym_spread_room(const struct asym_spread *sp, const struct asym_mask *cpus, bool is_beside);

/**
 * Gives threads of list an idle CPU of *avail each, and removes that CPU from *avail: on idle cores, one thread a core; or, if
 * is_beside, beside busy siblings. The first thread of list chooses first: its preferred CPU if that is such a seat, else one
 * near it. A thread of list that has a CPU already keeps it. A thread for which no seat is left keeps cpu -1. Threads that spin
 * (RTX) choose after all others of list: "avoid mapping spinning threads to fast cores" (Saez 2010, 2.2).
 * Cost: O(n + CPUs of avail squared).
 */
void asym_spread_give(struct asym_spread *sp, const uint32_t *list, size_t n, bool is_beside, struct asym_mask *avail);

/**
 * Does the same for serial threads. Then it offers the idle cores of *avail, best first, to the threads of list: the first
 * thread of list on a CPU of a slower type or of less favour moves there. An RTX master stays.
 * Cost: that of asym_spread_give, and O(n) for each core that is idle.
 */
void asym_spread_give_serial(struct asym_spread *sp, const uint32_t *list, size_t n, bool is_beside,
                             struct asym_mask *avail);

/** Gives the seats of cpus in one of these ways, row by row, what adds most first: those of the machine's first n_rows rows. */
void asym_spread_give_rows(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus,
                           unsigned n_rows, bool serial);

/**
 * Rule 3, the last step of a placement: a thread beside a busy sibling moves to an idle core that adds more, and a thread of a
 * slow CPU with two or more moves to an idle fast CPU or an idle core. Threads that stay or hold their CPU do not move.
 * Cost: O(n), and O(CPUs) for each thread that moves.
 */
void asym_spread_fill_seats(struct asym_spread *sp);

/** The second half of that: for pulls, which leave siblings themselves, and for threads that stay on their core type. */
void asym_spread_fill_fast(struct asym_spread *sp);

/** Returns the place of a seat in the order of seats: the best is 0. holds: of struct asym_spread, also of an earlier plan. */
static inline uint8_t asym_spread_place(uint8_t holds)
{
    return (uint8_t)(holds - 1);
}

/** Bits: the kinds of CPU that a thread may run on. */
enum { ASYM_REACH_FAST = 1 << 0, ASYM_REACH_SLOW = 1 << 1 };

/** Returns the ASYM_REACH_* bits of thread t. */
static inline unsigned asym_spread_reach(const struct asym_spread *sp, size_t t)
{
    return sp->set_reach[sp->set_of[t]];
}

/** Reasons of threads that may run on one kind of CPU only, so that their rank does not matter. */
extern const struct asym_reason asym_spread_no_fast, asym_spread_only_fast;

/** The reason of a thread that waits by spinning (RTX). */
extern const struct asym_reason asym_spread_spinning;

/** Returns a list of all threads, 0 .. n_threads - 1, from the arena; NULL if the arena is too small. */
uint32_t *asym_spread_all(const struct asym_policy_input *in);

/* --- even placement, by spread-even.c: fills CPUs so that their counts of threads differ by at most one --- */

/**
 * Spreads the threads of list that are not placed yet over cpus so that the counts are even. A thread that may run on none
 * of cpus is spread over all CPUs that it may run on.
 * Cost: O(n) for all, and O(CPUs) for each set of threads with equal `allowed`.
 */
void asym_spread_even(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *cpus);

/**
 * Gives the first threads of list an idle CPU of *free_fast beside a busy sibling, and removes it, if the threads that are not
 * placed yet are more than the slow CPUs and *free_fast: no thread shares a slow CPU while it could be first to such a seat.
 */
void asym_spread_give_siblings(struct asym_spread *sp, const uint32_t *list, size_t n, struct asym_mask *free_fast);

/**
 * Spreads the threads of list that are not placed yet over the slow CPUs and free_fast, the fast CPUs that no thread was
 * given; then fills idle seats. This is the last step of a policy that gives fast seats one each.
 */
void asym_spread_rest(struct asym_spread *sp, const uint32_t *list, size_t n, const struct asym_mask *free_fast);

/**
 * Gives the seats that add more than a core of the slowest type to the first n_ranked threads of list, best first, and places the
 * rest as asym_spread_rest does: the cores of the slowest type, and what adds less, need no rank, unless there are too few for all.
 */
void asym_spread_by_rank(struct asym_spread *sp, const uint32_t *list, size_t n_ranked, size_t n);

/** For a machine whose CPUs are all alike: spreads every thread that is not placed yet evenly, and gives that as the reason. */
void asym_spread_alike(struct asym_spread *sp, const uint32_t *list, size_t n);

/**
 * Begins a plan that prefers fast CPUs, once all memory is taken. Returns 1: place the threads; 0: the plan is done, because no CPU
 * is known to be faster, and all threads, which are those of list, are spread alike; -ENOBUFS: the arena is too small.
 */
int asym_spread_begin(struct asym_spread *sp, const uint32_t *list);

/*
 * --- by gain, by spread-even.c: for policies that give the faster CPUs to the threads that gain most from them, static-ipc and
 * ipc-driven. The policy sets the gain of each thread; the placement is the same for both. ---
 */

struct asym_ranked {
    struct asym_spread *sp;
    float *gain;    /**< per thread, set by the policy: how many times as fast it is on a fast CPU; 0: not known */
    uint8_t *holds; /**< per thread, as in struct asym_spread: in, by its rank in the last plan; out, in this plan */
    uint32_t *keys; /* per thread; the least key goes first */
    uint32_t *order, *scratch;
};

/** Takes its memory from the arena; gain and holds are all zero. The caller asks asym_arena_is_short. */
void asym_ranked_init(struct asym_ranked *r, struct asym_spread *sp);

/**
 * Ranks the threads over the rows of seats: gives the seats of each row, what adds most first, to the threads that gain most, and
 * spreads the rest over the slow CPUs and the fast ones that are left. Threads that are already placed stay.
 * Gains that differ by less than a hundredth are equal: then a thread that had a CPU by its rank goes first, then the thread on
 * the faster type. Threads with an unknown gain come last.
 */
void asym_ranked_place(struct asym_ranked *r);

/** Sets the reason of thread t; figure 0 is its gain. unknown is the reason of threads with an unknown gain. */
void asym_ranked_explain(const struct asym_ranked *r, size_t t, const struct asym_reason *unknown);

/*
 * --- the boost of light threads, by spread-even.c: a nice delta that gives a thread, which shares its fast CPU because it sleeps
 * much, that CPU when it wakes. Only serial phases and serial programs have it, and only while all CPUs are busy. ---
 */

/** The params and the options of a policy with this boost. */
struct asym_boost_params {
    int sp_boost;
};
extern const struct asym_option asym_boost_options[];

/** Boost the light threads on fast CPUs, which the policy has placed. */
void asym_boost_light(const struct asym_policy_input *in, struct asym_assignment *ret);

/* --- for placements of a policy's own --- */

static inline enum asym_nearness asym_nearness(const struct asym_machine *m, int preferred_cpu, int cpu)
{
    if (cpu == preferred_cpu)
        return ASYM_AT_PREFERRED;
    if (preferred_cpu < 0)
        return ASYM_ANYWHERE;
    const struct asym_cpu *h = &m->cpus[preferred_cpu], *c = &m->cpus[cpu];
    return h->llc == c->llc ? ASYM_SAME_LLC : h->node == c->node ? ASYM_SAME_NODE : ASYM_ANYWHERE;
}

static inline void asym_spread_put(struct asym_spread *sp, uint32_t t, int32_t cpu)
{
    sp->ret[t].cpu = cpu;
    sp->load[cpu]++;
}

/* Returns the siblings of cpu that have more than `least` threads. One that is reserved counts twice. */
static inline uint32_t asym_spread_beside(const struct asym_spread *sp, int cpu, uint32_t least)
{
    const struct asym_cpu *cpus = sp->in->machine->cpus;
    uint32_t n = 0;
    for (int s = cpus[cpu].sibling; s != cpu; s = cpus[s].sibling)
        n += sp->load[s] > least ? 1u + asym_mask_has(&sp->reserved, s) : 0;
    return n;
}

/* Returns whether no CPU of the core of cpu has a thread. */
static inline bool asym_spread_core_is_idle(const struct asym_spread *sp, int cpu)
{
    return sp->load[cpu] == 0 && asym_spread_beside(sp, cpu, 0) == 0;
}

#endif
