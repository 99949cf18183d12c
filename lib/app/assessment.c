/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/assessment.h"

#include "core/policy-select.h"
#include "linux/topology/topology.h"
#include "report/check.h"

enum asym_situation asym_assess(const struct asym_run *run, char *buf, size_t size)
{
    const bool captured = run->cli->topology != NULL;
    const struct asym_situation_facts facts = {
        .machine = run->machine,
        .policy = run->policy->name,
        .policy_runs = asym_policy_can_run(run->policy, run->capabilities.missing),
        .may_steer = captured || asym_facts_may_steer(&run->root),
        .is_virtual = !captured && asym_is_virtual(&run->root),
        .assumed_slow = run->assumed_slow,
        .hidden = run->notes.hidden,
        .unordered = run->notes.unordered,
        .unknown = run->notes.unknown,
    };
    asym_situation_text(&facts, buf, size);
    return asym_situation_of(&facts);
}
