/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The threads on a core with several hardware threads share it in proportion to their priority (Snavely 2002, 3 and 5.1,
 * Naive). The policy assumes that a thread beside others gets 1/P of its speed alone, where P threads run there at once. A
 * thread that is entitled to more is alone on the core for a part of each rotation (equations 1 to 3):
 *
 *     COFRAC = min(1, (1 - FRAC) / (1 - 1/P)), SOLOFRAC = 1 - COFRAC, CS = 1 - the sum of SOLOFRAC
 *
 * lib/policy/smt/smt.h describes the windows (the exception to rule 3) and the additions to the source.
 *
 * In smt-icount (5.3, Icount) the fetch unit of a core makes the shares: it fetches less often for a thread with a higher
 * handicap, which is the priority number of the thread. The policy only decides which threads share a core: it spreads them,
 * and gives no thread a core of its own for a while. The simulator has a core model with handicaps; no processor that runs a
 * stock kernel lets software set them.
 */
#include <asym/policy.h>

#include "policy/smt/smt.h"

static int place(struct asym_smt *s, const struct asym_policy_input *in, struct asym_assignment *ret)
{
    s->params = in->params;
    int r = asym_smt_init(s, in, ret);
    if (r >= 0)
        asym_smt_finish(s, NULL);
    return r;
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const struct asym_smt_params *params = in->params;
    const struct asym_smt_times times = {.rotation = params->rotation};
    return place(&(struct asym_smt){.stage = asym_smt_stage_at(&times, 0, in->now)}, in, ret);
}

static int plan_fetch(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    return place(&(struct asym_smt){.no_windows = true}, in, ret);
}

static const struct asym_option options[] = {ASYM_SMT_OPTION_ROTATION, ASYM_SMT_OPTION_WEIGHTS, {.key = NULL}};
static const struct asym_option fetch_options[] = {ASYM_SMT_OPTION_WEIGHTS, {.key = NULL}};

const struct asym_policy asym_policy_smt_naive = {
    .name = "smt-naive",
    .summary = "a core is shared by priority: a thread with a larger share has the core alone for a while",
    .source = "Snavely 2002, 3 and 5.1",
    .needs = 1u << ASYM_SIGNAL_SMT,
    .pin = ASYM_PIN_CPU,
    .apart = true,
    .every_snapshot = true,
    .params_size = sizeof(struct asym_smt_params),
    .task_state_size = sizeof(struct asym_smt_seat),
    .options = options,
    .plan = plan,
};

const struct asym_policy asym_policy_smt_icount = {
    .name = "smt-icount",
    .summary = "the fetch unit of a simulated core divides the core by priority",
    .source = "Snavely 2002, 5.3",
    .needs = 1u << ASYM_SIGNAL_SMT,
    .refuses = ASYM_SMT_NO_FETCH,
    .pin = ASYM_PIN_CPU,
    .apart = true,
    .every_snapshot = true,
    .params_size = sizeof(struct asym_smt_params),
    .task_state_size = sizeof(struct asym_smt_seat),
    .options = fetch_options,
    .plan = plan_fetch,
};
