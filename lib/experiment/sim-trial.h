/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A trial is one run of a scenario under a policy with a seed. The cycle that steers a live machine (app/cycle.h) steers the
 * simulated one. Worker threads share the trials; the results do not depend on the number of workers.
 */
#ifndef ASYM_EXPERIMENT_SIM_TRIAL_H
#define ASYM_EXPERIMENT_SIM_TRIAL_H

#include <signal.h>
#include <stddef.h>

#include <asym/policy.h>

#include "sim/sim.h"

/** The most programs whose results a trial keeps. */
enum { ASYM_SIM_MAX_PROGRAMS = 64 };

/** Callbacks that observe a trial. */
struct asym_sim_watch {
    struct asym_sim_tracer sim;
    void (*planned)(void *ctx, const struct asym_snapshot *s, const struct asym_plan *plan);
    void *ctx;
};

struct asym_sim_trial {
    const struct asym_scenario *scenario; /* borrowed */
    const struct asym_policy *policy;
    int only; /* index of the one program that runs; -1: all */
    uint64_t seed;
    const struct asym_sim_watch *watch; /* borrowed; NULL: none */
    /* Results. */
    int error; /* 0; -errno; -ECANCELED: interrupted or not started */
    double seconds;
    struct asym_sim_tally tally[ASYM_SIM_MAX_PROGRAMS];
    struct asym_sim_totals totals;
    uint64_t planned;   /* number of threads, summed over all plans */
    asym_usec plan_cpu; /* CPU time of the engine, us; it differs from run to run */
};

/**
 * Lowers *workers to the number of trials that fit into memory bytes. The output does not depend on it. name: of the scenario
 * file, for err. Returns 0; -EINVAL with err: not one trial fits.
 */
int asym_sim_trials_fit(const struct asym_scenario *scenario, const char *name, uint64_t memory, unsigned *workers,
                        struct asym_error *err);

/** Runs one trial in the calling thread. When *stop is set, the trial ends with -ECANCELED. */
void asym_sim_trial_run(struct asym_sim_trial *trial, const volatile sig_atomic_t *stop);

/**
 * Runs n trials in up to workers threads: trials 0, stride, 2 stride, ..., then 1, 1 + stride, ...; stride divides n. The
 * calling thread calls progress, which may be NULL, about ten times a second.
 * Returns 0; -errno: the first error of a trial other than -ECANCELED.
 */
int asym_sim_trials_run(struct asym_sim_trial *trials, size_t n, size_t stride, unsigned workers,
                        const volatile sig_atomic_t *stop, void (*progress)(void *ctx, size_t done, size_t all),
                        void *ctx);

#endif
