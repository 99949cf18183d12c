/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/budget.h"

#include "base/macro.h"

void asym_budget_init(struct asym_budget *b, asym_usec now, asym_usec cpu)
{
    *b = (struct asym_budget){.stretch = 1.0, .last_now = now, .last_cpu = cpu};
}

static enum asym_budget_news news(struct asym_budget *b, asym_usec now)
{
    if (b->stretch > 1.0) {
        const bool is_new = !b->told;
        b->told = true;
        b->calm_since = 0;
        return is_new ? ASYM_BUDGET_EXCEEDED : ASYM_BUDGET_SAME;
    }
    if (b->calm_since == 0)
        b->calm_since = now;
    if (!b->told || now - b->calm_since < ASYM_BUDGET_CALM)
        return ASYM_BUDGET_SAME;
    b->told = false;
    return ASYM_BUDGET_KEPT_AGAIN;
}

/* Up at most twofold a period, as one period may have been odd; down slowly, and only well below, so that it settles. */
enum asym_budget_news asym_budget_update(struct asym_budget *b, double percent_allowed, asym_usec now, asym_usec cpu,
                                         asym_usec apart)
{
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
    return news(b, now);
}
