/* SPDX-License-Identifier: GPL-2.0-or-later */
/** An experiment runs a scenario under several policies with several seeds, and computes the measures of the papers. */
#ifndef ASYM_EXPERIMENT_EXPERIMENT_H
#define ASYM_EXPERIMENT_EXPERIMENT_H

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include <asym/types.h>
#include <asym/policy.h>

#include "record/record.h"
#include "report/columns.h"
#include "sim/sim.h"

/*
 * The measures of the papers that the simulator reports. No I/O, no state.
 * Arguments out of their domain (no runs, a divisor of 0) give NAN, which means no result.
 */

/**
 * Returns a / b; NAN if b is 0. A throughput is work done / time in seconds, never IPC (Morad 2008, 4). A speedup is performance
 * with others / performance alone (eq. 3); for run times: alone / with others (eq. 5).
 */
double asym_measure_over(double a, double b);

/** Minimum over all pairs of speedup_A / speedup_B and its inverse, 0..1 (Morad 2008, eq. 4). One program has 1. */
double asym_measure_fairness(const double *speedup, size_t n);

/** sqrt(mean((t / t_avg - 1)^2)) over the runs of one workload (Morad 2008, eq. 6). */
double asym_measure_jitter(const double *t, size_t n);

/** Mean time from arrival to end of a job (Snavely 2002, 6). By kind of job: times sums these times, ended counts the jobs. */
double asym_measure_turnaround(const double *times, const double *ended, size_t n_kinds);

double asym_measure_mean(const double *x, size_t n);

/** Half the width of the 95 % confidence interval of the mean (Student's t). NAN below two values. */
double asym_measure_confidence(const double *x, size_t n);

/*
 * A trial is one run of a scenario under a policy with a seed. The cycle that steers a live machine (app/cycle.h) steers the
 * simulated one. Worker threads share the trials; the results do not depend on the number of workers.
 */

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

enum { ASYM_EXPERIMENT_MAX_POLICIES = 64, ASYM_EXPERIMENT_MAX_REPEAT = 1000 };

struct asym_experiment {
    const struct asym_scenario *scenario;                             /* borrowed */
    const struct asym_policy *policies[ASYM_EXPERIMENT_MAX_POLICIES]; /* the first is none, the stock scheduler */
    size_t n_policies;
    const char *automatic; /* the policy that auto selects for the scenario; NULL: the user does not run auto */
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

/**
 * Returns the mean over the programs of the jitter of their run times over the seeds (Morad 2008, eq. 6), with the jackknife's
 * interval. Its confidence is NAN if fewer than three trials finished.
 */
struct asym_estimate asym_experiment_jitter(const struct asym_experiment *x, size_t policy);

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

/*
 * Makes a scenario of the simulator out of a record: a program for each application, whose steps are the phases that it was seen
 * in. The work of a step is the CPU time that was seen, times the speed of the CPU, or its share of that beside a busy sibling.
 */

/** The most programs; the applications that used most CPU time are taken. */
enum { ASYM_RECORD_SCENARIO_PROGRAMS = 32 };

/** The texts are owned. */
struct asym_record_scenario {
    char *text; /**< the scenario */
    size_t len;
    char *notes; /**< paragraphs, a line each, that say what the record could not tell */
};

void asym_record_scenario_done(struct asym_record_scenario *s);

/**
 * machine: the sections [machine] and [scheduler] of another scenario, as text; NULL: the recorded machine.
 * Returns 0; -EBADMSG with err: the record is damaged, or has more than
 * ASYM_RECORD_MAX_APPLICATIONS applications or ASYM_RECORD_MAX_PHASES phases; -EINVAL with err: no application ran; -ENOMEM with
 * err.
 */
int asym_record_scenario(struct asym_record_reader *reader, const char *machine, struct asym_record_scenario *ret,
                         struct asym_error *err);

#endif
