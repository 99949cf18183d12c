/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The intervals of an experiment, from trials with known distributions. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "experiment/experiment.h"
#include "experiment/trial-row.h"
#include "record/record.h"
#include "sim/rng.h"
#include "sim/scenario.h"
#include "support/generate.h"
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

/* -- measures, compared with figures computed by hand -- */

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("%.12g, not %.12g", got, want);
}

TEST(speedup_fairness_and_jitter)
{
    near(asym_measure_over(600, 60), 10);
    near(asym_measure_over(3, 4), 0.75);
    const double three[] = {0.9, 0.45, 0.6};
    near(asym_measure_fairness(three, 3), 0.5);
    near(asym_measure_fairness(three, 1), 1);
    const double t[] = {9, 10, 11};
    near(asym_measure_jitter(t, 3), sqrt(0.02 / 3));
    near(asym_measure_jitter(t, 1), 0);
    assert_true(isnan(asym_measure_over(1, 0)) && isnan(asym_measure_fairness(t, 0)));
}

TEST(turnaround_is_of_all_jobs_whatever_their_kind)
{
    /* Jobs of 1, 2 and 3 s, one of 10 s, and a kind without an ended job. */
    const double times[] = {6, 10, 0}, ended[] = {3, 1, 0};
    near(asym_measure_turnaround(times, ended, 3), 4);
    near(asym_measure_turnaround(times, ended, 1), 2);
    assert_true(isnan(asym_measure_turnaround(times + 2, ended + 2, 1)));
}

TEST(means_and_confidence)
{
    near(asym_measure_mean((const double[]){2, 8}, 2), 5);
    /* Standard deviation of 1..5 is sqrt(2.5), t for four degrees of freedom 2.776. */
    const double five[] = {1, 2, 3, 4, 5};
    near(asym_measure_confidence(five, 5), 2.776 * sqrt(2.5 / 5));
    assert_true(isnan(asym_measure_confidence(five, 1)));
    double many[200];
    for (size_t i = 0; i < 200; i++)
        many[i] = (double)(i % 2);
    near(asym_measure_confidence(many, 200), 1.980 * sqrt(0.25 * 200 / 199 / 200));
}

/* -- the measure of a program in a trial: instructions where they are counted, else work -- */

/* Crossover trials with a known gain, over noise, a drift and a program that comes and goes. */

/* With asymd a thread does 10 % more work and 20 % more instructions. counted: share of its time that the counters saw. */
static void run_block(struct asym_trial_row *row, size_t block, double counted, bool valid)
{
    const struct asym_crossover_moment moment = {.block = block, .steered = block % 2, .counts = true};
    const struct asym_sample sample = {.seconds = 8 * counted,
                                       .instructions = counted * (moment.steered ? 12e9 : 10e9)};
    const struct asym_trial_sums did = asym_trial_thread(8, moment.steered ? 1.1 : 1, counted > 0 ? &sample : NULL);
    asym_trial_row_add(row, &did);
    asym_trial_row_end(row, &moment, valid ? 8 : 0);
}

static struct asym_trial_row run_row(size_t blocks, double counted, size_t uncounted, size_t invalid)
{
    struct asym_trial_row row = {.name = "gzip"};
    for (size_t b = 0; b < blocks; b++)
        run_block(&row, b, b == uncounted ? 0 : counted, b != invalid);
    return row;
}

TEST(instructions_count_where_counters_saw_at_least_half)
{
    const size_t none = SIZE_MAX;
    static const struct {
        double counted;
        bool one_block_without, one_invalid;
        enum asym_trial_measure measure;
        size_t pairs;
        double gain;
    } cases[] = {
        {1, false, false, ASYM_TRIAL_INSTRUCTIONS, 4, 0.2},
        {0.5, false, false, ASYM_TRIAL_INSTRUCTIONS, 4, 0.2}, /* scaled in both blocks */
        {0.4, false, false, ASYM_TRIAL_WORK, 4, 0.1},
        {0, false, false, ASYM_TRIAL_WORK, 4, 0.1},
        {1, true, false, ASYM_TRIAL_WORK, 4, 0.1}, /* a block without counts: all pairs by work */
        {1, false, true, ASYM_TRIAL_INSTRUCTIONS, 3, 0.2},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        const struct asym_trial_row row = run_row(8, cases[i].counted, cases[i].one_block_without ? 3 : none,
                                                  cases[i].one_invalid ? 4 : none);
        const struct asym_crossover_result r = asym_trial_row_result(&row);
        assert_int_equal(asym_trial_row_measure(&row), cases[i].measure);
        assert_int_equal(r.pairs, cases[i].pairs);
        assert_float_equal(r.gain, cases[i].gain, 1e-9);
    }
}

TEST(counts_of_more_time_than_the_thread_ran_are_cut)
{
    const struct asym_sample sample = {.seconds = 2, .instructions = 4e9}, unknown = {.seconds = 1, .instructions = -1};
    const struct asym_trial_sums cut = asym_trial_thread(1, 2, &sample), none = asym_trial_thread(1, 2, &unknown);
    assert_float_equal(cut.work, 2, 0);
    assert_float_equal(cut.counted, 1, 0);
    assert_float_equal(cut.instructions, 2e9, 1);
    assert_float_equal(none.counted, 0, 0);
}

static const struct asym_crossover plan = {.block = 10 * ASYM_SEC, .drop = 2 * ASYM_SEC, .pairs = 18, .seed = 7};

/* A trial of a program that gains this share: noise of 5 % a block, and 2 % more speed from block to block. */
static struct asym_crossover_result run_trial(uint64_t seed, size_t pairs, double gain)
{
    const struct asym_crossover c = {plan.block, plan.drop, pairs, seed};
    struct sim_rng rng = sim_rng_stream(seed, 1000003);
    struct asym_crossover_series s = {.n = 0};
    for (size_t b = 0; b < 2 * pairs; b++) {
        const struct asym_crossover_moment m = asym_crossover_at(&c, b * c.block);
        double noise = -6;
        for (int i = 0; i < 12; i++)
            noise += sim_rng_unit(&rng);
        asym_crossover_add(&s, &m, (1 + 0.02 * (double)b) * exp(0.05 * noise) * (m.steered ? 1 + gain : 1));
    }
    return asym_crossover_result(&s);
}

TEST(each_pair_has_a_block_of_either_kind_and_their_order_is_random)
{
    size_t first = 0;
    const struct asym_crossover c = {plan.block, plan.drop, ASYM_CROSSOVER_PAIRS_MAX, 3};
    for (size_t b = 0; b < 2 * c.pairs; b += 2) {
        const struct asym_crossover_moment one = asym_crossover_at(&c, b * c.block),
                                           other = asym_crossover_at(&c, (b + 1) * c.block);
        assert_int_equal(one.block, b);
        assert_true(one.steered != other.steered);
        first += one.steered;
    }
    /* Half of 1024, within four standard deviations. */
    assert_in_range(first, 512 - 64, 512 + 64);
}

TEST(the_beginning_of_a_block_does_not_count)
{
    assert_false(asym_crossover_at(&plan, 0).counts);
    assert_false(asym_crossover_at(&plan, plan.drop - 1).counts);
    assert_true(asym_crossover_at(&plan, plan.drop).counts);
    assert_true(asym_crossover_at(&plan, plan.block - 1).counts);
    assert_false(asym_crossover_at(&plan, plan.block).counts);
    const struct asym_crossover_moment over = asym_crossover_at(&plan, 2 * plan.pairs * plan.block + plan.drop);
    assert_int_equal(over.block, 2 * plan.pairs);
    assert_false(over.counts);
}

TEST(a_known_gain_is_within_its_interval_and_nothing_is_claimed_of_none)
{
    static const struct {
        double gain;
        size_t pairs;
        unsigned least_gains, most_gains, most_losses; /* of 200 trials */
    } cases[] = {
        {0.20, 18, 200, 200, 0}, {0.03, 18, 70, 170, 2}, {0, 18, 0, 10, 10}, /* 5 % of 200 */
        {0, 3, 0, 10, 10},       {-0.10, 18, 0, 0, 200},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        unsigned gains = 0, losses = 0, held = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            const struct asym_crossover_result r = run_trial(seed, cases[i].pairs, cases[i].gain);
            gains += asym_crossover_verdict(&r) > 0;
            losses += asym_crossover_verdict(&r) < 0;
            held += r.low <= cases[i].gain && cases[i].gain <= r.high;
        }
        print_message("gain %+.2f, %zu pairs: %u gains, %u losses, true value in %u intervals of 200\n", cases[i].gain,
                      cases[i].pairs, gains, losses, held);
        assert_in_range(gains, cases[i].least_gains, cases[i].most_gains);
        assert_true(losses <= cases[i].most_losses);
        assert_true(held >= 184);
    }
}

TEST(a_pair_without_two_rates_does_not_count)
{
    static const double rates[][2] = {{1, 0}, {0, 1}, {1, NAN}, {NAN, 1}, {-1, 1}};
    struct asym_crossover_series s = {.n = 0};
    for (size_t i = 0; i < ASYM_LENGTH(rates); i++)
        for (size_t k = 0; k < 2; k++)
            asym_crossover_add(&s, &(struct asym_crossover_moment){.block = 2 * i + k, .steered = k}, rates[i][k]);
    assert_int_equal(s.n, 0);
    const struct asym_crossover_result none = asym_crossover_result(&s);
    assert_int_equal(asym_crossover_verdict(&none), 0);
    asym_crossover_add(&s, &(struct asym_crossover_moment){.block = 0, .steered = true}, 3);
    asym_crossover_add(&s, &(struct asym_crossover_moment){.block = 1}, 2);
    const struct asym_crossover_result one = asym_crossover_result(&s);
    assert_float_equal(one.gain, 0.5, 1e-9);
    assert_int_equal(asym_crossover_verdict(&one), 0);
}

/* -- a scenario made out of a record has its machine, its programs and their phases -- */

/* A record of 0.1 s samples that a test writes by hand. */
struct script {
    char *bytes;
    size_t len;
    FILE *out, *in;
    struct asym_machine machine;
    struct gen_load *load;
    struct asym_record_writer *writer;
    struct asym_record_reader *reader;
    struct asym_record_scenario made;
    struct asym_scenario *scenario;
};

static void nothing(struct script *s)
{
}

static void done(struct script *s)
{
    asym_scenario_free(s->scenario);
    asym_record_scenario_done(&s->made);
    asym_record_reader_free(s->reader);
    asym_record_writer_free(s->writer);
    if (s->in)
        fclose(s->in);
    gen_load_free(s->load);
    free(s->bytes);
    *s = (struct script){0};
}

#define TEST_F(name) TEST_IN(name, struct script, s, nothing, done)

static void begin_here(struct script *s, const unsigned *sizes, size_t n)
{
    const struct asym_record_setting setting = {"classify.amp_boost", "2s"};
    const struct asym_record_head head = {
        .version = "0.1", .policy = "serial-first", .settings = &setting, .n_settings = 1};
    s->load = gen_load_new(&s->machine, sizes, n);
    assert_non_null(s->load);
    gen_load_share_masks(s->load);
    s->out = open_memstream(&s->bytes, &s->len);
    assert_non_null(s->out);
    assert_int_equal(asym_record_writer_new(s->out, &head, &s->writer), 0);
}

static void begin(struct script *s, const unsigned *sizes, size_t n)
{
    gen_plain_machine(&s->machine, 4, 1);
    begin_here(s, sizes, n);
}

/* Adds n samples: the first running threads of application app run all the time on cpu, the others sleep. */
static void add(struct script *s, size_t app, uint32_t running, int32_t cpu, unsigned n)
{
    const struct asym_app *a = &s->load->apps[app];
    for (uint32_t i = 0; i < a->n_tasks; i++) {
        struct asym_task *task = &s->load->tasks[a->first_task + i];
        gen_load_share_one(s->load, a->first_task + i, i < running ? 1 : 0);
        task->running = task->runnable;
        task->cpu = cpu;
    }
    for (unsigned k = 0; k < n; k++) {
        gen_load_pass(s->load, 100 * ASYM_MSEC);
        struct asym_snapshot copy = s->load->s;
        assert_int_equal(asym_record_writer_add(s->writer, &copy), 0);
    }
}

static void end(struct script *s)
{
    assert_int_equal(asym_record_writer_finish(s->writer), 0);
    fclose(s->out);
    s->in = fmemopen(s->bytes, s->len, "rb");
    assert_non_null(s->in);
    assert_int_equal(asym_record_reader_new(s->in, "f", &s->reader, NULL), 0);
}

/* Ends the record, and makes a scenario of it. */
static const struct asym_scenario *make(struct script *s, const char *machine)
{
    struct asym_error err = {""};
    end(s);
    assert_int_equal(asym_record_scenario(s->reader, machine, &s->made, &err), 0);
    if (asym_scenario_parse(s->made.text, s->made.len, "made", &s->scenario, &err) < 0)
        fail_msg("%s in:\n%s", err.text, s->made.text);
    return s->scenario;
}

static void assert_step(const struct asym_sim_step *step, enum asym_sim_step_kind kind, double work)
{
    assert_int_equal(step->kind, kind);
    if (!(step->work > work * 0.99 && step->work < work * 1.01))
        fail_msg("%g instead of %g", step->work, work);
}

TEST_F(phases_become_steps_with_the_work_that_was_seen)
{
    const unsigned sizes[] = {4};
    begin(s, sizes, 1);
    add(s, 0, 0, 3, 5);  /* idle */
    add(s, 0, 1, 0, 10); /* one thread for a second on the fast CPU */
    add(s, 0, 4, 3, 20); /* four threads for two seconds on a slow one */
    add(s, 0, 0, 3, 10); /* it sleeps for a second */
    add(s, 0, 1, 3, 5);
    const struct asym_scenario *scenario = make(s, NULL);
    assert_int_equal(scenario->machine.n_types, 2);
    assert_int_equal(scenario->machine.counts[0], 1);
    assert_int_equal(scenario->machine.counts[1], 3);
    assert_true(scenario->machine.speeds[0] > 1.99 && scenario->machine.speeds[0] < 2.01);
    assert_int_equal(scenario->n_programs, 1);
    const struct asym_sim_program *p = &scenario->programs[0];
    assert_int_equal(p->threads, 4);
    assert_int_equal(p->n_steps, 4);
    assert_step(&p->steps[0], ASYM_SIM_SERIAL, 2e9);
    assert_step(&p->steps[1], ASYM_SIM_PARALLEL, 8e9);
    assert_step(&p->steps[2], ASYM_SIM_IO, 1e9);
    assert_step(&p->steps[3], ASYM_SIM_SERIAL, 0.5e9);
    assert_true(p->start >= 499000000 && p->start <= 601000000);
    assert_string_equal(scenario->settings->daemon.policy, "serial-first");
    assert_int_equal(scenario->settings->classify.amp_boost, 2 * ASYM_SEC);
    assert_non_null(strstr(s->made.notes, "1 of 1 applications, and 100 % of their CPU time"));
}

TEST_F(a_hyperthread_is_no_core)
{
    static const struct {
        int32_t other; /* the CPU of the second program; the first one has CPU 0 */
        bool is_whole;
        double work;
    } rows[] = {{1, true, 1.25e9}, {2, true, 2e9}, {1, false, 1.25e9}};
    const unsigned sizes[] = {1, 1};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        /* Two fast cores, of two CPUs each until one goes offline, and two slow cores of one. */
        static const int16_t core[] = {0, 0, 1, 1, 2, 3};
        gen_plain_machine(&s->machine, ASYM_LENGTH(core), 4);
        for (size_t c = 0; c < ASYM_LENGTH(core); c++)
            s->machine.cpus[c].core = core[c];
        s->machine.smt_gain = 0.25;
        if (!rows[i].is_whole)
            asym_mask_clear(&s->machine.usable, 3);
        assert_int_equal(asym_machine_finish(&s->machine), 0);
        begin_here(s, sizes, 2);
        add(s, 0, 1, 0, 0);
        add(s, 1, 1, rows[i].other, 10);
        const struct asym_scenario *scenario = make(s, NULL);
        const struct asym_sim_machine *m = &scenario->machine;
        assert_int_equal(m->n_types, 2);
        assert_true(m->counts[0] == 2 && m->smt[0] == 2 && m->counts[1] == 2 && m->smt[1] == 1);
        assert_true(m->max_ipc > 1.249 && m->max_ipc < 1.251);
        assert_true((strstr(s->made.notes, "fewer CPUs than others") == NULL) == rows[i].is_whole);
        const struct asym_sim_step *step = &scenario->programs[0].steps[0];
        assert_step(step, ASYM_SIM_SERIAL, rows[i].work);
        const double ipc = scenario->memories[step->memory].ipc;
        assert_true(ipc > 0.999 && ipc < 1.001);
        done(s);
    }
}

TEST_F(many_phases_become_a_loop_on_another_machine)
{
    const unsigned sizes[] = {3};
    begin(s, sizes, 1);
    for (unsigned i = 0; i < 50; i++) {
        add(s, 0, 1, 3, 2);
        add(s, 0, 3, 3, 2);
    }
    const struct asym_scenario *scenario = make(s, "[machine]\ncounts = 8,8\nspeeds = 1,4\n");
    assert_int_equal(scenario->machine.counts[1], 8);
    const struct asym_sim_program *p = &scenario->programs[0];
    assert_int_equal(p->n_steps, 4);
    assert_step(&p->steps[0], ASYM_SIM_LOOP, 50);
    assert_step(&p->steps[1], ASYM_SIM_PARALLEL, 0.6e9);
    assert_step(&p->steps[2], ASYM_SIM_SERIAL, 0.2e9);
}

TEST_F(the_busiest_programs_are_taken_and_the_rest_is_counted)
{
    unsigned sizes[40];
    for (size_t i = 0; i < ASYM_LENGTH(sizes); i++)
        sizes[i] = 1;
    begin(s, sizes, ASYM_LENGTH(sizes));
    add(s, 0, 1, 3, 20);
    const struct asym_scenario *scenario = make(s, NULL);
    assert_int_equal(scenario->n_programs, ASYM_RECORD_SCENARIO_PROGRAMS);
    assert_non_null(strstr(s->made.notes, "32 of 40 applications"));
}

TEST_F(programs_of_one_name_and_number_get_an_index)
{
    static const struct {
        const char *comm;
        int32_t tgid;
    } programs[] = {{"cc", 7}, {"cc", 7}, {"cc", 7}, {"cc-7", 2}, {"c:", 9}, {"c/", 9}};
    const unsigned sizes[ASYM_LENGTH(programs)] = {1, 1, 1, 1, 1, 1};
    begin(s, sizes, ASYM_LENGTH(sizes));
    for (size_t i = 0; i < ASYM_LENGTH(sizes); i++) {
        const struct asym_taskid id = {.tid = programs[i].tgid, .tgid = programs[i].tgid, .start = 100 + i};
        s->load->apps[i].id = s->load->procs[i].id = s->load->tasks[i].id = id;
        snprintf(s->load->apps[i].comm, ASYM_COMM_LEN, "%s", programs[i].comm);
    }
    for (size_t i = 0; i < ASYM_LENGTH(sizes); i++)
        add(s, i, 1, 3, i + 1 < ASYM_LENGTH(sizes) ? 0 : 5);
    const struct asym_scenario *scenario = make(s, NULL);
    assert_int_equal(scenario->n_programs, ASYM_LENGTH(programs));
    assert_non_null(strstr(s->made.text, "\"cc-7\""));
    assert_non_null(strstr(s->made.text, "\"cc-7-2\""));
    assert_non_null(strstr(s->made.text, "\"cc-7-3\""));
    assert_non_null(strstr(s->made.text, "\"cc-7-4\""));
    assert_non_null(strstr(s->made.text, "\"c_-9-2\""));
}

/* Records n snapshots of so many applications of a thread each, with a gap before each: n serial phases and n - 1 idle ones. */
static void add_many_threads(struct script *s, unsigned apps, unsigned n, bool renamed)
{
    ASYM_AUTO_FREE unsigned *sizes = calloc(apps, sizeof *sizes);
    assert_non_null(sizes);
    for (unsigned i = 0; i < apps; i++)
        sizes[i] = 1;
    begin(s, sizes, apps);
    for (unsigned k = 0; k < n; k++) {
        for (unsigned i = 0; i < apps && renamed; i++)
            s->load->apps[i].id.start++;
        gen_load_pass(s->load, ASYM_SEC);
        struct asym_snapshot copy = s->load->s;
        copy.interval /= 2;
        /* One more application than the bound is enough. */
        if (renamed && k + 1 == n)
            copy.n_apps = copy.n_procs = copy.n_tasks = 1;
        assert_int_equal(asym_record_writer_add(s->writer, &copy), 0);
    }
    end(s);
}

/* Applications of a snapshot: so few that they stay in the caches. */
enum { AT_ONCE = 1024 };

TEST_F(too_many_applications_and_phases_are_refused_with_the_place)
{
    static const struct {
        unsigned apps, snapshots;
        bool renamed;
        int result;
    } rows[] = {
        {AT_ONCE, ASYM_RECORD_MAX_APPLICATIONS / AT_ONCE + 1, true, -EBADMSG},
        {AT_ONCE, ASYM_RECORD_MAX_PHASES / 2 / AT_ONCE - 1, false, 0},
        {AT_ONCE, ASYM_RECORD_MAX_PHASES / 2 / AT_ONCE, false, -EBADMSG},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct asym_error err = {""};
        add_many_threads(s, rows[i].apps, rows[i].snapshots, rows[i].renamed);
        const int r = asym_record_scenario(s->reader, NULL, &s->made, &err);
        if (r != rows[i].result || (r < 0 && (strncmp(err.text, "f: byte ", 8) != 0 || !strstr(err.text, "phases"))))
            fail_msg("row %zu: %d, %s", i, r, err.text);
        done(s);
    }
}

TEST_F(a_record_in_which_nothing_ran_is_refused)
{
    const unsigned sizes[] = {2};
    struct asym_error err = {""};
    begin(s, sizes, 1);
    add(s, 0, 0, 3, 5);
    end(s);
    assert_int_equal(asym_record_scenario(s->reader, NULL, &s->made, &err), -EINVAL);
    assert_string_equal(err.text, "no application of the record ran");
}

TEST_MAIN
