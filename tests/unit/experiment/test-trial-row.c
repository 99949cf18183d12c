/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The measure of a program in a trial: instructions where they are counted, else work. And crossover trials with a known gain, over
 * noise, a drift and a program that comes and goes.
 */
#include <math.h>

#include "experiment/trial-row.h"
#include "sim/rng.h"
#include "support/test.h"
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

static double uniform(struct sim_rng *rng)
{
    return (double)(sim_rng_next(rng) >> 11) * 0x1p-53;
}

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
            noise += uniform(&rng);
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

TEST_MAIN
