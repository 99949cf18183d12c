/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Proportional shares of cores with several hardware threads, after the priority of the threads on each (Snavely 2002, 3
 * and 5.1, Naive). One that runs beside others is taken to get 1/P of what it would get alone, P being how many run there
 * at once; who is entitled to more is alone on the core for a part of each rotation (equations 1 to 3):
 *
 *     COFRAC = min(1, (1 - FRAC) / (1 - 1/P)), SOLOFRAC = 1 - COFRAC, CS = 1 - the sum of SOLOFRAC
 *
 * The windows of rule 3's exception, and what is beyond the source: lib/policy/smt-place.h.
 */
#include <asym/policy.h>
#include <asym/snapshot.h>

#include <stddef.h>

#include "policy/smt-place.h"

struct params {
    struct asym_smt_params smt;
};

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const struct params *params = in->params;
    const struct asym_smt_times times = {.rotation = params->smt.rotation};
    struct asym_smt s = {.params = &params->smt, .stage = asym_smt_stage_at(&times, 0, in->now)};
    int r = asym_smt_init(&s, in, ret);
    if (r >= 0)
        asym_smt_finish(&s, NULL);
    return r;
}

static const struct asym_option options[] = {
    ASYM_SMT_OPTION_ROTATION(struct params),
    ASYM_SMT_OPTION_WEIGHTS(struct params),
    {.key = NULL},
};

extern const struct asym_policy asym_policy_smt_naive;
const struct asym_policy asym_policy_smt_naive = {
    .name = "smt-naive",
    .summary = "shares of a core by priority: who is entitled to more than its part is alone there for a while",
    .source = "Snavely 2002, 3 and 5.1",
    .needs = 1u << ASYM_SIGNAL_SMT,
    .pin = ASYM_PIN_CPU,
    .own_period = true,
    .params_size = sizeof(struct params),
    .task_state_size = sizeof(struct asym_smt_seat),
    .options = options,
    .plan = plan,
};
