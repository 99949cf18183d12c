/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/budget.h"

#include "base/macro.h"

void asym_budget_init(struct asym_budget *b, asym_usec now, asym_usec cpu)
{
    *b = (struct asym_budget){.stretch = 1.0, .last_now = now, .last_cpu = cpu};
}

static enum asym_budget_change change_to_log(struct asym_budget *b, asym_usec now)
{
    if (b->stretch > 1.0) {
        const bool is_new = !b->reported;
        b->reported = true;
        b->calm_since = 0;
        return is_new ? ASYM_BUDGET_EXCEEDED : ASYM_BUDGET_SAME;
    }
    if (b->calm_since == 0)
        b->calm_since = now;
    if (!b->reported || now - b->calm_since < ASYM_BUDGET_CALM)
        return ASYM_BUDGET_SAME;
    b->reported = false;
    return ASYM_BUDGET_KEPT_AGAIN;
}

/*
 * Stretches at most twofold in a period, because one period may be an exception. Shrinks slowly, and only well below the
 * budget, so that the interval does not oscillate.
 */
enum asym_budget_change asym_budget_update(struct asym_budget *b, double percent_allowed, asym_usec now, asym_usec cpu,
                                           asym_usec apart)
{
    if (now <= b->last_now)
        return ASYM_BUDGET_SAME;
    const double per_cent = 100.0 / (double)(now - b->last_now);
    b->percent = per_cent * (double)(cpu - b->last_cpu);
    const double sampling = b->percent - per_cent * (double)(apart - b->last_apart);
    b->last_now = now;
    b->last_cpu = cpu;
    b->last_apart = apart;
    if (sampling > percent_allowed)
        b->stretch = ASYM_MIN(b->stretch * ASYM_MIN(sampling / percent_allowed, 2.0), ASYM_BUDGET_STRETCH_MAX);
    else if (sampling < 0.7 * percent_allowed)
        b->stretch = ASYM_MAX(b->stretch * 0.8, 1.0);
    return change_to_log(b, now);
}
