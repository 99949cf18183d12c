/* SPDX-License-Identifier: GPL-2.0-or-later */
/** An experiment runs a scenario under several policies with several seeds, and computes the measures of the papers (measure.h). */
#ifndef ASYM_EXPERIMENT_EXPERIMENT_H
#define ASYM_EXPERIMENT_EXPERIMENT_H

#include <stddef.h>
#include <stdio.h>

#include <asym/error.h>

#include "experiment/sim-trial.h"
#include "report/columns.h"

enum { ASYM_EXPERIMENT_MAX_POLICIES = 64, ASYM_EXPERIMENT_MAX_REPEAT = 1000 };

struct asym_experiment {
    const struct asym_scenario *scenario;                             /* borrowed */
    const struct asym_policy *policies[ASYM_EXPERIMENT_MAX_POLICIES]; /* the first is none, the stock scheduler */
    size_t n_policies;
    unsigned repeat;
    uint64_t seed;                 /* the first */
    struct asym_sim_trial *trials; /* owned; order: by policy and seed, then each program alone, by program and seed */
    size_t n_trials;
};

/** Figures: of a policy up to ASYM_N_FIGURES; from there on of one program under a policy. */
enum asym_figure {
    ASYM_FIGURE_THROUGHPUT,   /* instructions per second of all programs (Morad 2008, 4) */
    ASYM_FIGURE_MEAN_SPEEDUP, /* mean over the programs: performance beside the others / alone under stock */
    ASYM_FIGURE_WORST_SPEEDUP,
    ASYM_FIGURE_FAIRNESS,
    ASYM_FIGURE_MIGRATIONS, /* per second */
    ASYM_FIGURE_CHANGES,    /* masks and nice values set per second; each costs a live machine system calls */
    ASYM_FIGURE_TOTAL,      /* seconds until the last program ends */
    ASYM_FIGURE_TURNAROUND, /* mean time from arrival to end, all programs, seconds (Snavely 2002, 6) */
    ASYM_FIGURE_BUSY,       /* share of the time of all CPUs in which a thread runs on them, spinning included */
    ASYM_FIGURE_PLANS,      /* per second */
    ASYM_FIGURE_PLANNED,    /* mean number of threads that a plan places */
    ASYM_FIGURE_PLAN_CPU,   /* mean CPU time of a plan, us; it differs from run to run */
    ASYM_N_FIGURES,
    ASYM_FIGURE_PERFORMANCE = ASYM_N_FIGURES, /* runs per second; without an end, instructions per second */
    ASYM_FIGURE_SPEEDUP,
    ASYM_FIGURE_RUN_TIME,    /* mean run time of the runs that have ended, seconds */
    ASYM_FIGURE_CPU_TIME,    /* mean CPU time of the runs that have ended, seconds: Roehrich's Avg */
    ASYM_FIGURE_GEOMEAN,     /* geometric mean of the run times (Saez 2010, 3) */
    ASYM_FIGURE_TURNED_AWAY, /* jobs that arrived while 4096 waited */
    ASYM_FIGURES_END
};

/** Allocates the trials. Returns 0; -ENOMEM. */
int asym_experiment_init(struct asym_experiment *x);
void asym_experiment_done(struct asym_experiment *x);

/** Returns the number of trials that have finished. */
size_t asym_experiment_finished(const struct asym_experiment *x);

/** Returns a figure of a policy with seed k; i is the program if the figure is of one. NAN: not known. */
double asym_experiment_value(const struct asym_experiment *x, enum asym_figure figure, size_t policy, unsigned k,
                             unsigned i);

/**
 * Over the seeds: the number of known values, their mean and half the width of its 95 % interval. A figure that divides by the
 * performance alone has the error of that mean in its interval, too: it is the jackknife's (Tukey 1958), and each of its values
 * leaves out one seed, beside the others and alone.
 */
struct asym_estimate {
    unsigned n;
    double mean, confidence;
};

struct asym_estimate asym_experiment_estimate(const struct asym_experiment *x, enum asym_figure figure, size_t policy,
                                              unsigned i);

/** The figure by which reports compare policies with stock: the mean speedup; the throughput if no program ran alone. */
enum asym_figure asym_experiment_compared(const struct asym_experiment *x);

/**
 * The difference of a policy's mean from that of policies[0], the stock scheduler, in % of the latter, over the seeds that
 * finished under both. The interval is the jackknife's over the seeds: what a seed does to both alike is no noise. For the stock
 * scheduler itself n is 0.
 */
struct asym_estimate asym_experiment_against_stock(const struct asym_experiment *x, enum asym_figure figure,
                                                   size_t policy, unsigned i);

/** Returns the mean over the programs of the jitter of their run times over the seeds (Morad 2008, eq. 6). */
double asym_experiment_jitter(const struct asym_experiment *x, size_t policy);

/** Returns half the width of the jitter's 95 % interval, the jackknife's. NAN: fewer than three trials finished. */
double asym_experiment_jitter_confidence(const struct asym_experiment *x, size_t policy);

/* Reports an experiment, as text and as JSON. */

/**
 * Print the estimates as one JSON object. With cost also print the CPU time of plans; without, the same trials print the same
 * bytes. Returns 0; -EIO, -ENOMEM.
 */
int asym_experiment_json(const struct asym_experiment *x, const char *name, bool cost, FILE *out);

/**
 * Print the estimates. With cost also print the CPU time of plans; without, the same trials print the same bytes. Returns 0;
 * -EIO, -ENOMEM.
 */
int asym_experiment_text(const struct asym_experiment *x, const char *name, bool cost,
                         const struct asym_terminal *terminal);

#endif
