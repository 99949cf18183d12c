/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/smt-measure.h"

#include <string.h>

#include <asym/snapshot.h>

#include "base/mask.h"

double asym_smt_ipc(const struct asym_smt_count *count)
{
    return count->cycles > 0 ? count->instructions / count->cycles : 0;
}

static double x_of(const struct asym_smt *s, uint32_t t, double p)
{
    const struct asym_smt_record *r = asym_smt_record_of(s, t);
    const double alone = asym_smt_ipc(&r->alone), together = asym_smt_ipc(&r->together[0]);
    return r->cycle == s->stage.cycle && alone > 0 && together > 0 ? together / alone : 1 / p;
}

/* Where it was counted is where the last plan had it: CPUs of another type would be another measure. */
static bool is_good(const struct asym_smt *s, size_t t)
{
    const struct asym_policy_thread *thread = &s->in->threads[t];
    const struct asym_sample *sample = thread->sample;
    const int32_t cpu = asym_smt_seat_of(s, t)->given;
    return sample && sample->instructions >= 0 && sample->cycles > 0 && asym_mask_has(&s->in->machine->usable, cpu) &&
           thread->sampled_on == s->in->machine->cpus[cpu].type;
}

static void add(struct asym_smt_count *count, const struct asym_sample *sample)
{
    count->instructions += sample->instructions;
    count->cycles += sample->cycles;
}

static void credit(const struct asym_smt *s, const struct asym_smt_measure *state)
{
    for (size_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_record *r = asym_smt_record_of(s, t);
        if (r->counting == 0 || r->seat.planned != state->last || !is_good(s, t))
            continue;
        if (r->counting & ASYM_SMT_COUNT_ALONE)
            add(&r->alone, s->in->threads[t].sample);
        if (r->counting & ASYM_SMT_COUNT_TOGETHER)
            add(&r->together[r->pairing], s->in->threads[t].sample);
    }
}

int asym_smt_measure_begin(struct asym_smt *s, unsigned pairings, const struct asym_policy_input *in,
                           struct asym_assignment *ret)
{
    const struct asym_smt_measure_params *params = in->params;
    struct asym_smt_measure *state = in->state;
    const struct asym_smt_times times = {
        .rotation = params->smt.rotation,
        .sample = params->sample_period,
        .symbios = params->symbios,
        .pairings = pairings,
    };
    const asym_usec began = state->began ? state->began : in->now;
    s->params = &params->smt;
    s->stage = asym_smt_stage_at(&times, began, in->now);
    s->x = x_of;
    s->compares = pairings > 1;
    int r = asym_smt_init(s, in, ret);
    if (r < 0)
        return r;
    state->began = began;
    /* asked again at the same time, it would be counted twice */
    if (state->last != in->now)
        credit(s, state);
    state->last = in->now;
    return 0;
}

static unsigned to_count(const struct asym_smt *s, uint32_t t)
{
    const enum asym_reason reason = s->sp.ret[t].reason;
    if (reason == ASYM_WHY_SMT_MEASURED_ALONE)
        return ASYM_SMT_COUNT_ALONE;
    if (reason == ASYM_WHY_SMT_MEASURED)
        return ASYM_SMT_COUNT_TOGETHER;
    /* it matters for comparing pairings only: of itself it says nothing of how it gets along */
    if (reason == ASYM_WHY_SMT_OWN_CORE && s->compares && s->stage.kind == ASYM_SMT_TOGETHER)
        return ASYM_SMT_COUNT_ALONE | ASYM_SMT_COUNT_TOGETHER;
    return 0;
}

void asym_smt_measure_finish(struct asym_smt *s, const int32_t *home)
{
    asym_smt_finish(s, home);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_record *r = asym_smt_record_of(s, t);
        r->counting = to_count(s, t);
        r->pairing = s->stage.pairing;
        s->sp.ret[t].monitor = r->counting != 0;
        if (r->counting == 0 || r->cycle == s->stage.cycle)
            continue;
        r->cycle = s->stage.cycle;
        r->alone = (struct asym_smt_count){0};
        memset(r->together, 0, sizeof r->together);
    }
}
