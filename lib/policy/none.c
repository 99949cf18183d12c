/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steers nothing: the kernel's own scheduler, observed and classified like under any other policy. */
#include <asym/policy.h>

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    for (size_t i = 0; i < in->n_threads; i++)
        ret[i] = (struct asym_assignment){.cpu = -1, .reason = ASYM_WHY_POLICY_NONE};
    return 0;
}

extern const struct asym_policy asym_policy_none;
const struct asym_policy asym_policy_none = {
    .name = "none",
    .summary = "steer nothing; observe and classify only",
    .source = "the baseline of all sources",
    .pin = ASYM_PIN_TYPE,
    .plan = plan,
};
