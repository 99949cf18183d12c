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

#include <errno.h>
#include <stdbool.h>

#include "base/mask.h"
#include "policy/balance.h"
#include "policy/spread.h"

struct thread_state {
    bool known; /* it was planned for before */
};

/* Threads that a pull must gain. */
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

static const struct asym_balance_rule rule = {.enter = enter, .leave = leave};

static double total_speed(const struct asym_machine *m)
{
    double sum = 0;
    ASYM_MASK_FOREACH (c, &m->usable)
        sum += asym_balance_speed(m, c);
    return sum;
}

static void explain(const struct asym_balance *b, size_t t, double total)
{
    const struct asym_policy_input *in = b->sp->in;
    struct asym_assignment *a = &b->sp->ret[t];
    if (!(asym_spread_reach(b->sp, t) & ASYM_REACH_FAST)) {
        a->reason = ASYM_WHY_NO_FAST;
    } else if (b->sp->load[a->cpu] < 2) {
        a->reason = ASYM_WHY_OWN_CPU;
    } else {
        a->reason = ASYM_WHY_BY_SPEED;
        a->figure[0] = b->sp->load[a->cpu];
        a->figure[1] = (double)in->n_threads * asym_balance_speed(in->machine, a->cpu) / total;
    }
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct asym_balance b;
    const uint32_t *all = asym_spread_all(in);
    int r = asym_spread_init(&sp, in, ret);
    if (asym_balance_init(&b, &sp, &rule) < 0 || r < 0 || !all)
        return -ENOBUFS;
    if (!asym_machine_is_asymmetric(in->machine)) {
        asym_spread_alike(&sp, all, in->n_threads);
        return 0;
    }
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = in->threads[t].state;
        b.known[t] = s->known;
        s->known = true;
    }
    asym_balance_place(&b, all, in->n_threads, &in->machine->usable);
    asym_spread_mend(&sp);
    const double total = total_speed(in->machine);
    for (size_t t = 0; t < in->n_threads; t++)
        explain(&b, t, total);
    return 0;
}

extern const struct asym_policy asym_policy_throughput;
const struct asym_policy asym_policy_throughput = {
    .name = "throughput",
    .summary = "no CPU idles before another has two threads; then threads are in proportion to speed",
    .source = "Roehrich 2007, 3.2",
    .pin = ASYM_PIN_CPU,
    .task_state_size = sizeof(struct thread_state),
    .plan = plan,
};
