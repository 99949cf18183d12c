/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/proportion.h"

#include <stddef.h>

#include "base/mask.h"

/* A pull must gain this part of a thread, so that the current split stays if another is as good. */
#define MARGIN 0.125

/* Returns the share of a CPU, in threads, that is as near to n as to n + 1: their harmonic mean. */
static double between(double n)
{
    return 2 * n * (n + 1) / (2 * n + 1);
}

/* Idle CPUs come before all others; among them the fastest comes first. */
static double enter(double load, double weight, double speed)
{
    (void)weight;
    return load < 1 ? -speed : between(load) / speed;
}

static double leave(double load, double weight, double speed, enum asym_nearness near)
{
    (void)weight;
    (void)near;
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

static const struct asym_reason own_cpu = {
    .text = "a CPU to itself: no CPU idles before another has two threads",
    .sentence = "has a CPU to itself, because no CPU gets two threads while another is idle"};
static const struct asym_reason by_speed = {
    .text = "every CPU is busy: %.0f threads share this one; its speed entitles it to %.1f",
    .sentence = "shares its CPU, because every CPU is busy: %.0f threads are on it, and its speed entitles it to %.1f"};

void asym_proportion_explain(const struct asym_balance *b, size_t t, size_t n, double total)
{
    const struct asym_machine *m = b->sp->in->machine;
    struct asym_assignment *a = &b->sp->ret[t];
    if (asym_machine_is_asymmetric(m) && !(asym_spread_reach(b->sp, t) & ASYM_REACH_FAST)) {
        a->reason = &asym_spread_no_fast;
    } else if (b->sp->load[a->cpu] < 2) {
        a->reason = &own_cpu;
    } else {
        a->reason = &by_speed;
        a->figure[0] = b->sp->load[a->cpu];
        a->figure[1] = total > 0 ? (double)n * asym_balance_speed(m, a->cpu) / total : 0;
    }
}
