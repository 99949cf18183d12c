/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The measure of a program in a trial: instructions where they are counted, else work. */

#include "experiment/trial-row.h"
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

TEST_MAIN
