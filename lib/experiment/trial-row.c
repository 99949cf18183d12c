/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/trial-row.h"

#include <math.h>

#include "base/macro.h"
#include "experiment/experiment.h"
#include "sim/rng.h"

/*
 * A crossover trial: blocks of time with steering and without it, in pairs of random order. What drifts slowly is the same in both
 * blocks of a pair; what changes within a pair counts for either block with the same chance. No I/O, no clock.
 */

struct asym_crossover_moment asym_crossover_at(const struct asym_crossover *c, asym_usec time)
{
    const size_t block = ASYM_MIN(time / c->block, 2 * c->pairs);
    struct sim_rng rng = sim_rng_stream(c->seed, block / 2);
    const bool first_is_steered = sim_rng_next(&rng) & 1;
    return (struct asym_crossover_moment){
        .block = block,
        .steered = (block % 2 == 0) == first_is_steered,
        .counts = block < 2 * c->pairs && time % c->block >= c->drop,
    };
}

void asym_crossover_add(struct asym_crossover_series *s, const struct asym_crossover_moment *block, double rate)
{
    if (block->block % 2 == 0) {
        s->first = rate;
        return;
    }
    const double ratio = block->steered ? rate / s->first : s->first / rate;
    if (s->first > 0 && rate > 0 && isfinite(ratio) && s->n < ASYM_CROSSOVER_PAIRS_MAX)
        s->log_ratio[s->n++] = log(ratio);
    s->first = 0;
}

struct asym_crossover_result asym_crossover_result(const struct asym_crossover_series *s)
{
    const double mean = asym_measure_mean(s->log_ratio, s->n), half = asym_measure_confidence(s->log_ratio, s->n);
    const double wanted = log(1.01);
    return (struct asym_crossover_result){
        .pairs = s->n,
        .gain = expm1(mean),
        .low = expm1(mean - half),
        .high = expm1(mean + half),
        .for_one_percent = ceil((double)s->n * (half / wanted) * (half / wanted)),
    };
}

int asym_crossover_verdict(const struct asym_crossover_result *r)
{
    return (r->low > 0) - (r->high < 0);
}

/* Counters with less than that share of a program's time would stand for what they did not see. */
#define ENOUGH 0.5

struct asym_trial_sums asym_trial_thread(double busy, double speed, const struct asym_sample *sample)
{
    struct asym_trial_sums sums = {.busy = busy, .work = busy * speed};
    if (!sample || sample->instructions < 0)
        return sums;
    /* The kernel's time and that of the counters differ by what is not accounted yet. */
    sums.counted = ASYM_MIN(sample->seconds, busy);
    sums.instructions = sample->seconds > 0 ? sample->instructions * sums.counted / sample->seconds : 0;
    return sums;
}

static void add_sums(struct asym_trial_sums *to, const struct asym_trial_sums *from)
{
    to->busy += from->busy;
    to->work += from->work;
    to->counted += from->counted;
    to->instructions += from->instructions;
}

void asym_trial_row_add(struct asym_trial_row *row, const struct asym_trial_sums *thread)
{
    add_sums(&row->block, thread);
    add_sums(&row->all, thread);
}

static bool is_counted(const struct asym_trial_sums *s)
{
    return s->busy > 0 && s->counted >= ENOUGH * s->busy;
}

void asym_trial_row_end(struct asym_trial_row *row, const struct asym_crossover_moment *block, double seconds)
{
    const struct asym_trial_sums *s = &row->block;
    const double instructions = is_counted(s) ? s->instructions * s->busy / s->counted : (double)NAN;
    asym_crossover_add(&row->by_work, block, seconds > 0 ? s->work / seconds : (double)NAN);
    asym_crossover_add(&row->by_instructions, block, seconds > 0 ? instructions / seconds : (double)NAN);
    row->block = (struct asym_trial_sums){.busy = 0};
}

enum asym_trial_measure asym_trial_row_measure(const struct asym_trial_row *row)
{
    /* A pair that lacks the counts of a block is missing there. */
    return is_counted(&row->all) && row->by_instructions.n == row->by_work.n ? ASYM_TRIAL_INSTRUCTIONS
                                                                             : ASYM_TRIAL_WORK;
}

struct asym_crossover_result asym_trial_row_result(const struct asym_trial_row *row)
{
    return asym_crossover_result(asym_trial_row_measure(row) == ASYM_TRIAL_INSTRUCTIONS ? &row->by_instructions
                                                                                        : &row->by_work);
}
