/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shares of a core made by its fetch unit: a thread with a higher handicap, its priority number, is fetched less often
 * (Snavely 2002, 5.3, Icount). All that is left to decide is which threads share a core: they are spread, nobody is ever
 * alone. What fetches is a core model with handicaps; no processor that runs a stock kernel has them in reach of software.
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
    struct asym_smt s = {.params = &params->smt, .no_windows = true};
    int r = asym_smt_init(&s, in, ret);
    if (r >= 0)
        asym_smt_finish(&s, NULL);
    return r;
}

static const struct asym_option options[] = {ASYM_SMT_OPTION_WEIGHTS(struct params), {.key = NULL}};

extern const struct asym_policy asym_policy_smt_icount;
const struct asym_policy asym_policy_smt_icount = {
    .name = "smt-icount",
    .summary = "shares of a core by priority, made by the fetch unit of a simulated core",
    .source = "Snavely 2002, 5.3",
    .needs = 1u << ASYM_SIGNAL_SMT,
    .refuses = ASYM_SMT_NO_FETCH,
    .pin = ASYM_PIN_CPU,
    .own_period = true,
    .params_size = sizeof(struct params),
    .task_state_size = sizeof(struct asym_smt_seat),
    .options = options,
    .plan = plan,
};
