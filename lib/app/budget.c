/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/budget.h"

#include "base/macro.h"

void asym_budget_init(struct asym_budget *b, asym_usec now, asym_usec cpu)
{
    *b = (struct asym_budget){.last_now = now, .last_cpu = cpu};
}

asym_usec asym_budget_wait(struct asym_budget *b, asym_usec wanted)
{
    b->n_samples++;
    return ASYM_MAX(wanted, b->least);
}

static enum asym_budget_change change_to_log(struct asym_budget *b, asym_usec interval, asym_usec now)
{
    if (b->least > interval) {
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
 * Lengthens at most twofold in a period, because one period may be an exception. Shortens slowly, and only well below the
 * budget, so that the time does not oscillate. It begins with the mean of the period: some samples may have been early.
 */
static void adapt(struct asym_budget *b, double used, asym_usec interval, asym_usec period)
{
    const double mean = (double)period / ASYM_MAX(b->n_samples, 1);
    if (used > 1)
        b->least = (asym_usec)ASYM_MIN(ASYM_MIN(mean, (double)ASYM_MAX(b->least, interval)) * ASYM_MIN(used, 2.0),
                                       ASYM_BUDGET_STRETCH_MAX * (double)interval);
    else if (used < 0.7)
        b->least = b->least * 4 / 5;
    b->n_samples = 0;
}

enum asym_budget_change asym_budget_update(struct asym_budget *b, double percent_allowed, asym_usec interval,
                                           asym_usec now, asym_usec cpu, asym_usec apart)
{
    if (now <= b->last_now)
        return ASYM_BUDGET_SAME;
    const double per_cent = 100.0 / (double)(now - b->last_now);
    b->percent = per_cent * (double)(cpu - b->last_cpu);
    const double sampling = b->percent - per_cent * (double)(apart - b->last_apart);
    adapt(b, sampling / percent_allowed, interval, now - b->last_now);
    b->last_now = now;
    b->last_cpu = cpu;
    b->last_apart = apart;
    return change_to_log(b, interval, now);
}
