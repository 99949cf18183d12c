/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/budget.h"

#include "base/macro.h"

void asym_budget_init(struct asym_budget *b, asym_usec now, asym_usec cpu)
{
    *b = (struct asym_budget){.stretch = 1.0, .last_now = now, .last_cpu = cpu};
}

/* Up at most twofold a period, as one period may have been odd; down slowly, and only well below, so that it settles. */
enum asym_budget_news asym_budget_update(struct asym_budget *b, double percent_allowed, asym_usec now, asym_usec cpu,
                                         asym_usec apart)
{
    const double before = b->stretch;
    if (now <= b->last_now)
        return ASYM_BUDGET_SAME;
    const double per_cent = 100.0 / (double)(now - b->last_now);
    b->percent = per_cent * (double)(cpu - b->last_cpu);
    const double looking = b->percent - per_cent * (double)(apart - b->last_apart);
    b->last_now = now;
    b->last_cpu = cpu;
    b->last_apart = apart;
    if (looking > percent_allowed)
        b->stretch = ASYM_MIN(b->stretch * ASYM_MIN(looking / percent_allowed, 2.0), ASYM_BUDGET_STRETCH_MAX);
    else if (looking < 0.7 * percent_allowed)
        b->stretch = ASYM_MAX(b->stretch * 0.8, 1.0);
    if (before <= 1.0 && b->stretch > 1.0)
        return ASYM_BUDGET_EXCEEDED;
    return before > 1.0 && b->stretch <= 1.0 ? ASYM_BUDGET_KEPT_AGAIN : ASYM_BUDGET_SAME;
}
