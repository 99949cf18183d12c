/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steers nothing: the kernel's scheduler decides; asymd observes and classifies threads as under any other policy. */
#include <asym/policy.h>

static const struct asym_reason steers_nothing = {
    .text = "policy none steers nothing",
    .sentence = "stays where the kernel puts it: the policy none steers nothing",
    .kind = ASYM_REASON_UNSTEERED};

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    for (size_t i = 0; i < in->n_threads; i++)
        ret[i] = (struct asym_assignment){.cpu = -1, .reason = &steers_nothing};
    return 0;
}

const struct asym_policy asym_policy_none = {
    .name = "none",
    .summary = "steer nothing; observe and classify only",
    .source = "the baseline of all sources",
    .pin = ASYM_PIN_TYPE,
    .plan = plan,
};
