/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/smt/smt.h"

#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

const struct asym_option asym_smt_measure_options[] = {
    ASYM_SMT_OPTION_ROTATION,
    ASYM_SMT_OPTION_WEIGHTS,
    ASYM_OPTION(struct asym_smt_measure_params, DURATION, sample_period, .def = "4s", .min = 100e3, .max = 3600e6,
                .help = "asymd measures threads for this time: half of it one by one on their cores, half of it "
                        "together."),
    ASYM_OPTION(struct asym_smt_measure_params, DURATION, symbios, .def = "60s", .min = 0, .max = 86400e6,
                .help = "asymd uses the result for this time, then measures again."),
    ASYM_OPTION(struct asym_smt_measure_params, DURATION, catch_up, .def = "0s", .min = 0, .max = 3600e6,
                .help = "A thread that is this much behind its share is alone on its core until it has caught up, as "
                        "far as half of the cores may be held (Snavely 2002, 5.2); 0: asymd keeps no account."),
    {.key = NULL},
};

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

/* Returns true if the sample is from the core type where the last plan had the thread. IPC differs between types. */
static bool is_good(const struct asym_smt *s, size_t t)
{
    const struct asym_policy_thread *thread = &s->in->threads[t];
    const struct asym_sample *sample = thread->sample;
    const int32_t cpu = asym_smt_seat_of(s, t)->given;
    return sample && sample->instructions >= 0 && sample->cycles > 0 && asym_mask_has(&s->in->machine->usable, cpu) &&
           thread->sampled_on == s->in->machine->cpus[cpu].type;
}

static void add_sample(struct asym_smt_count *count, const struct asym_sample *sample)
{
    count->instructions += sample->instructions;
    count->cycles += sample->cycles;
}

/* A thread cannot save up more than it may be behind, or it would lag for long before it is helped. */
static void account(const struct asym_smt *s, uint32_t t, double limit)
{
    const struct asym_policy_thread *thread = &s->in->threads[t];
    struct asym_smt_record *r = asym_smt_record_of(s, t);
    const double alone = asym_smt_ipc(&r->alone);
    if (s->stage.kind != ASYM_SMT_RUN || r->cycle != s->stage.cycle || !(alone > 0))
        return;
    const double entitled = ASYM_MIN(asym_smt_share(s, t), thread->runnable) * (double)s->in->interval / ASYM_SEC;
    const double progress = thread->sample->seconds * thread->sample->instructions / thread->sample->cycles / alone;
    r->behind = ASYM_MAX(-limit, ASYM_MIN(r->behind + entitled - progress, 10 * limit));
    r->catches_up = r->behind > (r->catches_up ? 0 : limit);
}

/* The account is by what was measured: without a measurement of this cycle there is none. */
static bool catches_up(const struct asym_smt *s, uint32_t t)
{
    const struct asym_smt_record *r = asym_smt_record_of(s, t);
    return r->catches_up && r->cycle == s->stage.cycle;
}

static void credit(const struct asym_smt *s, const struct asym_smt_measure *state, asym_usec catch_up)
{
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_record *r = asym_smt_record_of(s, t);
        if (r->seat.planned != state->last || !is_good(s, t))
            continue;
        if (catch_up > 0)
            account(s, t, (double)catch_up / ASYM_SEC);
        if (r->counting & ASYM_SMT_COUNT_ALONE)
            add_sample(&r->alone, s->in->threads[t].sample);
        if (r->counting & ASYM_SMT_COUNT_TOGETHER)
            add_sample(&r->together[r->pairing], s->in->threads[t].sample);
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
    s->behind = params->catch_up > 0 ? catches_up : NULL;
    s->compares = pairings > 1;
    int r = asym_smt_init(s, in, ret);
    if (r < 0)
        return r;
    state->began = began;
    /* A second plan at the same time must not add the same sample again. */
    if (state->last != in->now)
        credit(s, state, params->catch_up);
    state->last = in->now;
    return 0;
}

static unsigned to_count(const struct asym_smt *s, uint32_t t)
{
    const struct asym_reason *reason = s->sp.ret[t].reason;
    if (reason == &asym_smt_measured_alone)
        return ASYM_SMT_COUNT_ALONE;
    if (reason == &asym_smt_measured)
        return ASYM_SMT_COUNT_TOGETHER;
    /* This count serves to compare pairings only: it does not show how the thread runs beside others. */
    if (reason == &asym_smt_own_core && s->compares && s->stage.kind == ASYM_SMT_TOGETHER)
        return ASYM_SMT_COUNT_ALONE | ASYM_SMT_COUNT_TOGETHER;
    return 0;
}

void asym_smt_measure_finish(struct asym_smt *s, const int32_t *preferred_cpu)
{
    asym_smt_finish(s, preferred_cpu);
    for (uint32_t t = 0; t < s->in->n_threads; t++) {
        struct asym_smt_record *r = asym_smt_record_of(s, t);
        r->counting = to_count(s, t);
        r->pairing = s->stage.pairing;
        s->sp.ret[t].counted = r->counting != 0 || s->behind;
        if (r->counting == 0 || r->cycle == s->stage.cycle)
            continue;
        r->cycle = s->stage.cycle;
        r->behind = 0;
        r->catches_up = false;
        r->alone = (struct asym_smt_count){0};
        memset(r->together, 0, sizeof r->together);
    }
}
