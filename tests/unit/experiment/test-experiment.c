/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The intervals of an experiment, from trials with known distributions. */
#include <math.h>

#include "experiment/experiment.h"
#include "support/test.h"

static const char scenario_text[] =
    "[machine]\ncounts=2\nspeeds=1\n[run]\nuntil=done\n[program a]\npasses=1\nstep=serial 1G\n";

/* Trials of none, of pa, and of the program alone. */
static struct asym_experiment make_experiment(unsigned repeat)
{
    struct asym_scenario *s = NULL;
    assert_int_equal(asym_scenario_parse(scenario_text, sizeof scenario_text - 1, "t", &s, NULL), 0);
    struct asym_experiment x = {.scenario = s, .n_policies = 2, .repeat = repeat, .seed = 1};
    x.policies[0] = asym_policy_find("none");
    x.policies[1] = asym_policy_find("pa");
    assert_int_equal(asym_experiment_init(&x), 0);
    assert_int_equal(x.n_trials, 3 * repeat);
    return x;
}

static void free_experiment(struct asym_experiment *x)
{
    asym_scenario_free((struct asym_scenario *)(uintptr_t)x->scenario);
    asym_experiment_done(x);
}

/* The one program ran once, with this performance. */
static void set_trial(struct asym_sim_trial *t, double performance)
{
    t->error = 0;
    t->tally[0].ended = 1;
    t->tally[0].times = 1 / performance;
}

/* Evenly distributed over [0, 1). */
static double next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
}

static bool contains(struct asym_estimate e, double truth)
{
    assert_true(e.confidence > 0);
    return fabs(e.mean - truth) <= e.confidence;
}

/*
 * The program alone has performance 1 or 2 by chance, beside others always 1: the speedup is 1 / 1.5, and all its error is that
 * of the performance alone. The gain of pa over none is 20 % on average.
 */
TEST(intervals_contain_the_truth_in_about_95_of_100_experiments)
{
    enum { EXPERIMENTS = 400, SEEDS = 20 };
    uint64_t random = 20261122;
    unsigned of_speedup = 0, of_mean = 0, of_gain = 0;
    struct asym_experiment x = make_experiment(SEEDS);
    for (unsigned i = 0; i < EXPERIMENTS; i++) {
        for (unsigned k = 0; k < SEEDS; k++) {
            set_trial(&x.trials[k], 1);
            set_trial(&x.trials[SEEDS + k], 1.1 + 0.2 * next_random(&random));
            set_trial(&x.trials[2 * SEEDS + k], next_random(&random) < 0.5 ? 1 : 2);
        }
        of_speedup += contains(asym_experiment_estimate(&x, ASYM_FIGURE_SPEEDUP, 0, 0), 1 / 1.5);
        of_mean += contains(asym_experiment_estimate(&x, ASYM_FIGURE_WORST_SPEEDUP, 1, 0), 1.2 / 1.5);
        of_gain += contains(asym_experiment_against_stock(&x, ASYM_FIGURE_MEAN_SPEEDUP, 1, 0), 20);
    }
    print_message("%u, %u, %u of %d\n", of_speedup, of_mean, of_gain, EXPERIMENTS);
    assert_in_range(of_speedup, EXPERIMENTS * 91 / 100, EXPERIMENTS * 98 / 100);
    assert_in_range(of_mean, EXPERIMENTS * 91 / 100, EXPERIMENTS * 98 / 100);
    assert_in_range(of_gain, EXPERIMENTS * 91 / 100, EXPERIMENTS * 98 / 100);
    free_experiment(&x);
}

/* Seeds that make every run slow or fast alike are no noise in the comparison. */
TEST(what_a_seed_does_to_both_policies_alike_is_no_noise)
{
    static const double slow_or_fast[] = {1, 2, 4};
    struct asym_experiment x = make_experiment(ASYM_LENGTH(slow_or_fast));
    for (unsigned k = 0; k < x.repeat; k++) {
        set_trial(&x.trials[k], slow_or_fast[k]);
        set_trial(&x.trials[x.repeat + k], 1.5 * slow_or_fast[k]);
        set_trial(&x.trials[2 * x.repeat + k], 4);
    }
    const struct asym_estimate gain = asym_experiment_against_stock(&x, ASYM_FIGURE_PERFORMANCE, 1, 0);
    assert_int_equal(gain.n, 3);
    assert_true(fabs(gain.mean - 50) < 1e-9 && gain.confidence < 1e-9);
    assert_true(asym_experiment_estimate(&x, ASYM_FIGURE_PERFORMANCE, 1, 0).confidence > 1);
    assert_int_equal(asym_experiment_against_stock(&x, ASYM_FIGURE_PERFORMANCE, 0, 0).n, 0);
    free_experiment(&x);
}

/* Values 1, 2, 3: the pseudo-values of a mean are the values, and Student's t for two degrees of freedom is 4.303. */
TEST(a_seed_that_did_not_finish_is_left_out)
{
    struct asym_experiment x = make_experiment(4);
    for (unsigned k = 0; k < 3; k++) {
        set_trial(&x.trials[k], k + 1);
        set_trial(&x.trials[2 * x.repeat + k], 1);
    }
    const struct asym_estimate e = asym_experiment_estimate(&x, ASYM_FIGURE_SPEEDUP, 0, 0);
    assert_int_equal(e.n, 3);
    assert_true(fabs(e.mean - 2) < 1e-9);
    assert_true(fabs(e.confidence - 4.303 / sqrt(3)) < 1e-3);
    assert_true(isnan(asym_experiment_estimate(&x, ASYM_FIGURE_SPEEDUP, 1, 0).mean));
    assert_true(isnan(asym_experiment_against_stock(&x, ASYM_FIGURE_SPEEDUP, 1, 0).mean));
    free_experiment(&x);
}

/* The program did not end once with two of four seeds: two values, of which Student's t for one degree of freedom is 12.706. */
TEST(a_seed_without_a_value_is_no_sample)
{
    struct asym_experiment x = make_experiment(4);
    for (unsigned k = 0; k < 4; k++) {
        set_trial(&x.trials[k], 1);
        set_trial(&x.trials[x.repeat + k], 1 + 2 * (k % 2));
        set_trial(&x.trials[2 * x.repeat + k], 1);
        x.trials[x.repeat + k].tally[0].ended = k < 2;
    }
    const struct asym_estimate e = asym_experiment_estimate(&x, ASYM_FIGURE_SPEEDUP, 1, 0),
                               gain = asym_experiment_against_stock(&x, ASYM_FIGURE_SPEEDUP, 1, 0);
    assert_int_equal(e.n, 2);
    assert_true(fabs(e.mean - 2) < 1e-9);
    assert_true(fabs(e.confidence - 12.706) < 1e-2);
    assert_int_equal(gain.n, 2);
    assert_true(fabs(gain.mean - 100) < 1e-9);
    assert_true(fabs(gain.confidence - 1270.6) < 1);
    free_experiment(&x);
}

TEST_MAIN
