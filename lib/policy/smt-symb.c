/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * This policy is smt-naive, but it measures X, the part of its speed alone that a thread has beside others, and does not
 * assume 1/P (Snavely 2002, 5.2, Symb). Threads that disturb each other little share their core for longer, and each thread
 * still gets the share it is entitled to.
 *
 *     COFRAC' = min(1, (1 - FRAC) / (1 - X)), X = IPC together / IPC alone
 *
 * The source prints MAX, and 1/X in place of X: see lib/policy/smt/smt.h. The sample phase runs threads alone, then
 * together; it is repeated after the time `symbios`.
 */
#include <asym/policy.h>

#include "policy/smt/smt.h"

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_smt s = {.in = in};
    int r = asym_smt_measure_begin(&s, 1, in, ret);
    if (r >= 0)
        asym_smt_measure_finish(&s, NULL);
    return r;
}

const struct asym_policy asym_policy_smt_symb = {
    .name = "smt-symb",
    .summary = "as smt-naive, but asymd measures how well threads share a core; threads that do well share it longer",
    .source = "Snavely 2002, 5.2",
    ASYM_SMT_MEASURING,
    .state_size = sizeof(struct asym_smt_measure),
    .plan = plan,
};
