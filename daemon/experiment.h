/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A scenario under several policies, over several seeds, and the measures of lib/measure of what came of it. */
#ifndef ASYM_DAEMON_EXPERIMENT_H
#define ASYM_DAEMON_EXPERIMENT_H

#include <stdio.h>

#include "daemon/sim_trial.h"

enum { ASYM_EXPERIMENT_MAX_POLICIES = 64, ASYM_EXPERIMENT_MAX_REPEAT = 1000 };

struct asym_experiment {
    const struct asym_scenario *scenario; /* borrowed */
    const struct asym_policy *policies[ASYM_EXPERIMENT_MAX_POLICIES];
    size_t n_policies;
    unsigned repeat;
    uint64_t seed;                 /* the first */
    struct asym_sim_trial *trials; /* owned: by policy and seed; then each program alone, by program and seed */
    size_t n_trials;
};

/** What is measured of a policy; of one of its programs. */
enum asym_figure {
    ASYM_FIGURE_THROUGHPUT,   /* instructions per second, all programs (Morad 2008, 4) */
    ASYM_FIGURE_MEAN_SPEEDUP, /* over the programs: performance beside the others / alone under stock */
    ASYM_FIGURE_WORST_SPEEDUP,
    ASYM_FIGURE_FAIRNESS,
    ASYM_FIGURE_MIGRATIONS, /* per second */
    ASYM_FIGURE_CHANGES,    /* masks and nice values set, per second: what plans cost a live machine in system calls */
    ASYM_FIGURE_TOTAL,      /* seconds until the last program has ended */
    ASYM_FIGURE_TURNAROUND, /* mean time from arrival to end, all programs, seconds (Snavely 2002, 6) */
    ASYM_FIGURE_PLANS,      /* per second */
    ASYM_FIGURE_PLANNED,    /* threads that a plan places, mean */
    ASYM_FIGURE_PLAN_CPU,   /* CPU time of a plan, mean, microseconds: another one in every run */
    ASYM_N_FIGURES,
    ASYM_FIGURE_PERFORMANCE = ASYM_N_FIGURES, /* runs per second of those that end, else instructions per second */
    ASYM_FIGURE_SPEEDUP,
    ASYM_FIGURE_RUN_TIME,    /* mean life of those that have ended, seconds */
    ASYM_FIGURE_CPU_TIME,    /* mean CPU time of those: Roehrich's Avg */
    ASYM_FIGURE_GEOMEAN,     /* geometric mean of lives (Saez 2010, 3) */
    ASYM_FIGURE_TURNED_AWAY, /* jobs that arrived when too many waited */
    ASYM_FIGURES_END
};

/** Make the trials. 0; -ENOMEM. */
int asym_experiment_init(struct asym_experiment *x);
void asym_experiment_done(struct asym_experiment *x);

/** Trials that came to their end. */
size_t asym_experiment_finished(const struct asym_experiment *x);

/** Of a policy with seed k; of program i where the figure is of one. NAN: not known. */
double asym_experiment_value(const struct asym_experiment *x, enum asym_figure figure, size_t policy, unsigned k,
                             unsigned i);

/** Over the seeds: those that are known, their mean and half the width of its 95 % interval. */
struct asym_estimate {
    unsigned n;
    double mean, confidence, least, most;
};

struct asym_estimate asym_experiment_estimate(const struct asym_experiment *x, enum asym_figure figure, size_t policy,
                                              unsigned i);

/** Mean over the programs of the jitter of their run times over the seeds (Morad 2008, eq. 6). */
double asym_experiment_jitter(const struct asym_experiment *x, size_t policy);

/** Half the width of its 95 % interval, from what it is without one seed at a time (jackknife). NAN: fewer than three. */
double asym_experiment_jitter_confidence(const struct asym_experiment *x, size_t policy);

/**
 * Print them for people, not wider than ASYM_COLUMNS; as JSON, asymctl.sim/1. With cost, CPU times of plans too: without,
 * the same trials print the same bytes. 0; -EIO, -ENOMEM.
 */
int asym_experiment_text(const struct asym_experiment *x, const char *name, bool cost, FILE *out);
int asym_experiment_json(const struct asym_experiment *x, const char *name, bool cost, FILE *out);

#endif
