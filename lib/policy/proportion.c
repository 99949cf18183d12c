/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/proportion.h"

#include "base/macro.h"
#include "base/mask.h"

/* Threads that a pull must gain: of two splits as good as each other, the one there is stays. */
#define MARGIN 0.125

/* Where between n and n + 1 threads a CPU's share is as near to the one as to the other. */
static double between(double n)
{
    return 2 * n * (n + 1) / (2 * n + 1);
}

/* Idle CPUs come before all others, the faster first. */
static double enter(double load, double weight, double speed)
{
    (void)weight;
    return load < 1 ? -speed : between(load) / speed;
}

static double leave(double load, double weight, double speed)
{
    (void)weight;
    return load < 2 ? -speed : (between(load - 1) - MARGIN) / speed;
}

const struct asym_balance_rule asym_proportion_rule = {.enter = enter, .leave = leave};

double asym_proportion_total(const struct asym_machine *m, const struct asym_mask *cpus)
{
    double sum = 0;
    ASYM_MASK_FOREACH (c, cpus)
        sum += asym_balance_speed(m, c);
    return sum;
}

void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total)
{
    const struct asym_machine *m = b->sp->in->machine;
    struct asym_assignment *a = &b->sp->ret[t];
    if (asym_machine_is_asymmetric(m) && !(asym_spread_reach(b->sp, t) & ASYM_REACH_FAST)) {
        a->reason = ASYM_WHY_NO_FAST;
    } else if (b->sp->load[a->cpu] < 2) {
        a->reason = ASYM_WHY_OWN_CPU;
    } else {
        a->reason = ASYM_WHY_BY_SPEED;
        a->figure[0] = b->sp->load[a->cpu];
        a->figure[1] = total > 0 ? (double)n * asym_balance_speed(m, a->cpu) / total : 0;
    }
}
