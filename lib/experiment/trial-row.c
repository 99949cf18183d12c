/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/trial-row.h"

#include <math.h>

#include "base/macro.h"

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

static void add(struct asym_trial_sums *to, const struct asym_trial_sums *from)
{
    to->busy += from->busy;
    to->work += from->work;
    to->counted += from->counted;
    to->instructions += from->instructions;
}

void asym_trial_row_add(struct asym_trial_row *row, const struct asym_trial_sums *thread)
{
    add(&row->block, thread);
    add(&row->all, thread);
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

const char *asym_trial_measure_name(enum asym_trial_measure measure)
{
    static const char *const names[] = {[ASYM_TRIAL_WORK] = "work", [ASYM_TRIAL_INSTRUCTIONS] = "instructions"};
    return names[measure];
}
