/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/monitoring.h"

const struct asym_reason asym_monitoring_not_measured = {
    .text = "not measured yet: others go first",
    .sentence = "is not measured yet, so threads that asymd has measured come before it"};
static const struct asym_reason measured = {.text = "measured for %.0f of %.0f ms",
                                            .sentence = "is being measured: %.0f of %.0f ms have passed",
                                            .rotates = true};

void asym_monitoring_explain(const struct asym_monitoring *m, asym_usec age, struct asym_assignment *ret)
{
    ret->reason = &measured;
    ret->figure[0] = (double)age / ASYM_MSEC;
    ret->figure[1] = (double)asym_monitoring_turn(m) / ASYM_MSEC;
}
