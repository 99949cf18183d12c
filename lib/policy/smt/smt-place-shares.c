/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/smt/smt.h"

#include <math.h>

#include "base/macro.h"
#include "base/nice.h"

double asym_smt_weight(enum asym_smt_weights weights, int nice)
{
    if (weights == ASYM_SMT_SOURCE)
        return 19 - ASYM_MAX(0, ASYM_MIN(19, nice));
    return asym_nice_weight(nice);
}

double asym_smt_frac(double weight, double sum, size_t n)
{
    if (sum > 0)
        return weight / sum;
    return n > 0 ? 1 / (double)n : 1;
}

double asym_smt_cofrac(double frac, double x)
{
    return x >= frac || x >= 1 ? 1 : (1 - frac) / (1 - x);
}

double asym_smt_lay(double *length, size_t n, unsigned limit, double shift, double *ret_begin)
{
    double total = 0, end = shift;
    for (size_t i = 0; i < n; i++)
        total += length[i];
    const double factor = total > limit ? limit / total : 1;
    for (size_t i = 0; i < n; i++) {
        length[i] *= factor;
        ret_begin[i] = end - floor(end);
        end += length[i];
    }
    return factor;
}

double asym_smt_left(double begin, double length, double at)
{
    const double into = at < begin ? at - begin + 1 : at - begin;
    return into < length ? ASYM_MIN(length - into, 1 - at) : 0;
}

static struct asym_smt_stage rotation_at(asym_usec rotation, asym_usec from, asym_usec now)
{
    const asym_usec into = rotation > 0 ? (now - from) % rotation : 0;
    return (struct asym_smt_stage){.kind = ASYM_SMT_RUN, .from = now - into, .until = now - into + rotation};
}

struct asym_smt_stage asym_smt_stage_at(const struct asym_smt_times *times, asym_usec began, asym_usec now)
{
    const asym_usec length = times->sample + times->symbios, half = times->sample / 2;
    if (times->sample == 0)
        return rotation_at(times->rotation, 0, now);
    const asym_usec into = (now - began) % length, begin = now - into;
    struct asym_smt_stage stage = {.kind = ASYM_SMT_ALONE, .from = begin, .until = begin + half};
    if (into >= times->sample) {
        stage = rotation_at(times->rotation, begin + times->sample, now);
        stage.until = ASYM_MIN(stage.until, begin + length);
    } else if (into >= half) {
        const asym_usec each = (times->sample - half) / ASYM_MAX(times->pairings, 1);
        stage.kind = ASYM_SMT_TOGETHER;
        stage.pairing = each > 0 ? (unsigned)((into - half) / each) : 0;
        stage.pairing = ASYM_MIN(stage.pairing, ASYM_MAX(times->pairings, 1) - 1);
        stage.from = begin + half + stage.pairing * each;
        stage.until = stage.pairing + 1 < times->pairings ? stage.from + each : begin + times->sample;
    }
    stage.cycle = (now - began) / length + 1;
    return stage;
}

double asym_smt_at(const struct asym_smt_stage *stage, asym_usec now)
{
    return stage->until > stage->from ? (double)(now - stage->from) / (double)(stage->until - stage->from) : 0;
}

double asym_smt_shift(const struct asym_smt_stage *stage)
{
    const asym_usec length = stage->until - stage->from, number = length > 0 ? stage->from / length : 0;
    const double turns = (double)number * 0.6180339887498949;
    return turns - floor(turns);
}
