/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Highest throughput (Roehrich 2007, 3.2). No CPU is idle before any has two threads: each CPU gets one thread, from the
 * fastest CPU down. When all are busy, two CPUs of speed ratio y have threads in the ratio that comes nearest to y; the
 * slower one never has more.
 *
 * Deviations from the source:
 * - Its equation 3.5 solves for the share of the slower CPU. By its text the faster of two gets n * y / (1 + y), which is
 *   the rule here.
 * - It repeatedly corrects the pair of CPUs whose ratio is furthest off. With more than two CPUs such corrections can undo
 *   each other without end. The policy compares the speed per thread instead, the source's effective CPU power: a CPU pulls
 *   a thread if that brings the speeds per thread of the two CPUs nearer to each other (Dean's method of apportionment,
 *   whose divisor is the harmonic mean of n and n + 1). This has no cycles, gives each CPU one thread first without a
 *   further rule, reproduces the source's example, and differs from the nearest ratio only when two splits are about
 *   equally near. A pull must gain an eighth of a thread, so that the current split stays if another is as good.
 *
 * If all CPUs are alike, threads are only spread.
 */
#include <asym/policy.h>

#include "policy/placement/balance.h"
#include "policy/placement/spread.h"

static void explain(const struct asym_balance *b)
{
    const struct asym_policy_input *in = b->sp->in;
    const double total = asym_proportion_total(in->machine, &in->machine->usable);
    for (size_t t = 0; t < in->n_threads; t++)
        asym_proportion_explain(b, t, in->n_threads, total);
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    return asym_balance_plan(in, ret, &asym_proportion_rule, explain);
}

const struct asym_policy asym_policy_throughput = {
    .name = "throughput",
    .summary = "no CPU idles before another has two threads; then threads are in proportion to speed",
    .source = "Roehrich 2007, 3.2",
    .pin = ASYM_PIN_CPU,
    .task_state_size = sizeof(struct asym_balance_thread),
    .plan = plan,
};
