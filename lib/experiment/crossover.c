/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/crossover.h"

#include <math.h>

#include "base/macro.h"
#include "paper-metrics/measure.h"
#include "sim/rng.h"

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
