/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Trials of a scenario: each a run of the simulated machine under a policy, with a seed. The cycle that drives a live
 * machine drives it. Trials are shared out to threads; their results do not depend on how many.
 */
#ifndef ASYM_DAEMON_SIM_TRIAL_H
#define ASYM_DAEMON_SIM_TRIAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include <asym/policy.h>

#include "sim/sim.h"

/** Programs whose results are kept apart. */
enum { ASYM_SIM_MAX_PROGRAMS = 64 };

/** Who looks on. */
struct asym_sim_watch {
    struct asym_sim_tracer sim;
    void (*planned)(void *ctx, const struct asym_snapshot *s, const struct asym_plan *plan);
    void *ctx;
};

struct asym_sim_trial {
    const struct asym_scenario *scenario; /* borrowed */
    const struct asym_policy *policy;
    int only; /* the one program that runs; -1: all */
    uint64_t seed;
    const struct asym_sim_watch *watch; /* NULL: nobody */
    /* What came of it. */
    int error; /* -errno; -ECANCELED: interrupted or not begun */
    double seconds;
    struct asym_sim_tally tally[ASYM_SIM_MAX_PROGRAMS];
    struct asym_sim_totals totals;
    uint64_t planned;   /* threads, summed over all plans */
    asym_usec plan_cpu; /* CPU time of the engine: not the same in every run */
};

/**
 * No more workers than there is memory for, in bytes: output does not depend on their number. name: of the scenario file.
 * 0; -EINVAL with err: not even one trial fits.
 */
int asym_sim_trials_fit(const struct asym_scenario *scenario, const char *name, uint64_t memory, unsigned *workers,
                        struct asym_error *err);

/** One trial, in this thread. stop: set from outside, it ends the trial with -ECANCELED. */
void asym_sim_trial_run(struct asym_sim_trial *trial, const volatile sig_atomic_t *stop);

/** All of them by so many threads. progress: told on the caller's thread, about ten times a second; NULL: nobody. 0; -errno. */
int asym_sim_trials_run(struct asym_sim_trial *trials, size_t n, unsigned workers, const volatile sig_atomic_t *stop,
                        void (*progress)(void *ctx, size_t done, size_t all), void *ctx);

#endif
