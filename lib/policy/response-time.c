/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Best response time (Roehrich 2007, 3.1). A thread of weight w adds w / speed to the load of a CPU. Who is new goes to the
 * CPU that then has the least load; later each CPU pulls a thread when its own load with it would be less than the load
 * where the thread is. Slow CPUs stay idle while a fast one has several threads, as long as these are served better so:
 * that is the point.
 *
 * What differs from the source. The weight is that of the nice value, in place of the timeslice, which schedulers of today
 * do not have. All pulls that CPUs would come to in a while are made at once. A pull must gain a margin, or threads would
 * be moved for next to nothing: see MIGRATION and SHARE. Where CPUs tie, the source takes now one and now the other: here
 * it is the thread's home, the same LLC, the same node, the faster type, the lower number, in that order.
 *
 * Where all CPUs are alike, threads are only spread.
 */
#include <asym/policy.h>

#include "base/macro.h"
#include "base/mask.h"
#include "policy/balance.h"
#include "policy/spread.h"
#include "policy/weight.h"

/* A pull gains more than this share of the load where the thread is: what migrating costs at worst (Saez 2010, 3.4). */
#define MIGRATION 0.18

/* But where many share a CPU, it is enough to gain this share of what the thread adds, or one of nice 0 if that is more:
   loads are to be even, but a light thread is not moved about for each change among heavy ones. */
#define SHARE 0.5

static double enter(double load, double weight, double speed)
{
    return (load + weight) / speed;
}

static double leave(double load, double weight, double speed)
{
    const double share = SHARE * ASYM_MAX(weight, asym_nice_weight(0));
    return (load - ASYM_MIN(MIGRATION * load, share)) / speed;
}

static const struct asym_balance_rule rule = {.enter = enter, .leave = leave, .weighted = true};

/* Load, with so much more weight, in threads of nice 0 on the slowest CPU. */
static double load_of(const struct asym_balance *b, int cpu, double more)
{
    return (b->load[cpu] + more) / asym_nice_weight(0) / asym_balance_speed(b->sp->in->machine, cpu);
}

static void explain_one(const struct asym_balance *b, size_t t)
{
    const struct asym_policy_thread *thread = &b->sp->in->threads[t];
    struct asym_assignment *a = &b->sp->ret[t];
    if (!(asym_spread_reach(b->sp, t) & ASYM_REACH_FAST)) {
        a->reason = ASYM_WHY_NO_FAST;
    } else if (b->known[t] && thread->home >= 0 && thread->home != a->cpu) {
        a->reason = ASYM_WHY_PULLED;
        a->figure[0] = load_of(b, a->cpu, 0);
        a->figure[1] = load_of(b, thread->home, asym_nice_weight(thread->nice));
    } else {
        a->reason = ASYM_WHY_BEST_RESPONSE;
        a->figure[0] = b->sp->load[a->cpu];
        a->figure[1] = asym_balance_speed(b->sp->in->machine, a->cpu);
    }
}

static void explain(const struct asym_balance *b)
{
    for (size_t t = 0; t < b->sp->in->n_threads; t++)
        explain_one(b, t);
}

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    return asym_balance_plan(in, ret, &rule, explain);
}

extern const struct asym_policy asym_policy_response_time;
const struct asym_policy asym_policy_response_time = {
    .name = "response-time",
    .summary = "threads go where they are served soonest, to a busy fast CPU before an idle slow one",
    .source = "Roehrich 2007, 3.1",
    .pin = ASYM_PIN_CPU,
    .task_state_size = sizeof(struct asym_balance_thread),
    .plan = plan,
};
