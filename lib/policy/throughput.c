/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Highest throughput (Roehrich 2007, 3.2). No CPU is idle before any has two threads: one each, from the fastest CPU down.
 * When all are busy, two CPUs of speed ratio y have threads in the ratio that comes nearest to y, never more on the slower
 * one.
 *
 * What differs from the source. Its equation 3.5 solves for the slower CPU's share: by its text the faster of two gets
 * n * y / (1 + y). It mends the pair of CPUs whose ratio is furthest off, again and again; but of more than two CPUs each
 * may then mend what the other did, without end. What is compared here is the speed per thread, the source's effective CPU
 * power: a thread is pulled when the two CPUs' speeds per thread come nearer to each other (Dean's rule for seats, whose
 * divisor is the harmonic mean of n and n + 1). That has no circles, starts with one thread each by itself, gives the
 * source's example, and differs from the nearest ratio only where two splits are about equally near. A pull must gain an
 * eighth of a thread: of two splits as good as each other the one there is stays.
 *
 * Where all CPUs are alike, threads are only spread.
 */
#include <asym/policy.h>

#include "policy/balance.h"
#include "policy/proportion.h"
#include "policy/spread.h"

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

extern const struct asym_policy asym_policy_throughput;
const struct asym_policy asym_policy_throughput = {
    .name = "throughput",
    .summary = "no CPU idles before another has two threads; then threads are in proportion to speed",
    .source = "Roehrich 2007, 3.2",
    .pin = ASYM_PIN_CPU,
    .task_state_size = sizeof(struct asym_balance_thread),
    .plan = plan,
};
