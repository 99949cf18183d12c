/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * As smt-naive, but what part of its speed alone a thread has beside others is measured rather than taken for 1/P (Snavely
 * 2002, 5.2, Symb): those that get along share their core for longer, and each still has what it is entitled to.
 *
 *     COFRAC' = min(1, (1 - FRAC) / (1 - X)), X = IPC together / IPC alone
 *
 * The source prints MAX, and 1/X in place of X: see lib/policy/smt.h. Its sample phase runs threads alone, then together,
 * and is repeated after a while.
 */
#include <asym/policy.h>
#include <asym/snapshot.h>

#include <stddef.h>

#include "policy/smt-measure.h"

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_smt s = {.in = in};
    int r = asym_smt_measure_begin(&s, 1, in, ret);
    if (r >= 0)
        asym_smt_measure_finish(&s, NULL);
    return r;
}

static const struct asym_option options[] = {
    ASYM_SMT_OPTION_ROTATION(struct asym_smt_measure_params),
    ASYM_SMT_OPTION_WEIGHTS(struct asym_smt_measure_params),
    ASYM_SMT_OPTION_SAMPLE(struct asym_smt_measure_params),
    ASYM_SMT_OPTION_SYMBIOS(struct asym_smt_measure_params),
    {.key = NULL},
};

extern const struct asym_policy asym_policy_smt_symb;
const struct asym_policy asym_policy_smt_symb = {
    .name = "smt-symb",
    .summary = "as smt-naive, but how well threads share a core is measured: those that get along share it longer",
    .source = "Snavely 2002, 5.2",
    .needs = 1u << ASYM_SIGNAL_SMT | 1u << ASYM_SIGNAL_IPC,
    .pin = ASYM_PIN_CPU,
    .own_period = true,
    .params_size = sizeof(struct asym_smt_measure_params),
    .state_size = sizeof(struct asym_smt_measure),
    .task_state_size = sizeof(struct asym_smt_record),
    .options = options,
    .plan = plan,
};
