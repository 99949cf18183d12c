/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A policy in an engine, over a load whose threads run where the plan puts them. */
#ifndef ASYM_TESTS_SUPPORT_TURNS_H
#define ASYM_TESTS_SUPPORT_TURNS_H

#include <asym/engine.h>

#include "base/macro.h"
#include "support/generate.h"

#define TURN (100 * ASYM_MSEC)

enum { TURNS_MOST = 64 };

struct turns {
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_engine *e;
    const struct asym_plan *plan;
    size_t n_actions;
    struct asym_outcome outcomes[2 * TURNS_MOST];
};

/** Begin with so many CPUs, the first n_fast of them fast, and an application of each size. */
void turns_begin(struct turns *w, const struct asym_engine_config *config, unsigned n_cpus, unsigned n_fast,
                 const unsigned *sizes, size_t n);
/** The same with the defaults of a policy, but for sp_boost if it is not NULL. */
void turns_begin_policy(struct turns *w, const char *policy, const char *sp_boost, asym_usec swap_period,
                        unsigned n_cpus, unsigned n_fast, const unsigned *sizes, size_t n);
void turns_end(struct turns *w);

/** Declare turns w that last until the end of the block; the sizes of the applications come last. */
#define TURNS_WITH(w, policy, sp_boost, swap_period, n_cpus, n_fast, ...)                                              \
    const unsigned w##_sizes[] = {__VA_ARGS__};                                                                        \
    ASYM_CLEANUP(turns_end) struct turns w;                                                                            \
    turns_begin_policy(&w, policy, sp_boost, swap_period, n_cpus, n_fast, w##_sizes, ASYM_LENGTH(w##_sizes))
#define TURNS(w, policy, ...) TURNS_WITH(w, policy, NULL, TURN, __VA_ARGS__)

/** Let time pass; every action succeeds. */
void pass(struct turns *w, asym_usec time);

/** Let one turn pass. */
void turn(struct turns *w);

/** Let turns pass, and add those that each thread had on a fast CPU. */
void count_turns(struct turns *w, unsigned turns, unsigned *had);

/** Whether the plan has thread i on a fast CPU, and how many threads it has on this CPU. */
bool is_fast(const struct turns *w, size_t i);
unsigned count_on(const struct turns *w, int cpu);

#endif
