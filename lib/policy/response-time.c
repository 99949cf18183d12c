/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Best response time (Roehrich 2007, 3.1). A thread of weight w adds w / speed to the load of a CPU. A new thread goes to
 * the CPU that then has the least load. Later a CPU pulls a thread if its own load with the thread would be less than the
 * load of the CPU where the thread is. Slow CPUs stay idle while a fast one has several threads, as long as the threads are
 * served better there: this is the purpose of the policy.
 *
 * Deviations from the source:
 * - The weight is that of the nice value. The source uses the timeslice, which today's schedulers do not have.
 * - One plan makes all pulls that the source's CPUs would make over time.
 * - A pull from another LLC must gain a margin that grows with the distance: see MIGRATION and SHARE. Under one LLC there is
 *   no margin, as in the source.
 * - On a tie the source has no fixed choice. Here the order is: the preferred CPU of the thread, the same LLC, the same
 *   node, the faster type, the lower number.
 *
 * If all CPUs are alike, threads are only spread.
 */
#include <asym/policy.h>

#include "base/macro.h"
#include "base/nice.h"
#include "policy/placement/balance.h"
#include "policy/placement/spread.h"

/* A pull must gain more than this share of the load where the thread is. Under one LLC a migration costs next to nothing;
   to another node it costs up to 18 % (Saez 2010, 3.4); half of that is taken for another LLC of the same node, since the
   thread's memory stays near. The share under one LLC is far below any difference of speed: it only keeps two equal loads,
   which are not equal as floating-point numbers, from counting as a gain. */
static const double MIGRATION[] = {[ASYM_SAME_LLC] = 1e-6, [ASYM_SAME_NODE] = 0.09, [ASYM_ANYWHERE] = 0.18};

/* If many threads share a CPU, it is enough to gain this share of the load that the thread adds, or of the load that a
   thread of nice 0 adds if that is more. So loads become even, but a light thread does not leave its LLC at each change
   among heavy threads. */
#define SHARE 0.5

static double enter(double load, double weight, double speed)
{
    return (load + weight) / speed;
}

static double leave(double load, double weight, double speed, enum asym_nearness near)
{
    const double share = SHARE * ASYM_MAX(weight, asym_nice_weight(0));
    return (load - ASYM_MIN(MIGRATION[near] * load, share)) / speed;
}

static const struct asym_balance_rule rule = {.enter = enter, .leave = leave, .weighted = true, .by_distance = true};

/* Returns the load of a CPU plus the weight `more`, in units of one thread of nice 0 on the slowest CPU. */
static double load_of(const struct asym_balance *b, int cpu, double more)
{
    return (b->load[cpu] + more) / asym_nice_weight(0) / asym_balance_speed_now(b, cpu);
}

static const struct asym_reason served_soonest = {
    .text = "served soonest here: 1 of %.0f threads on a CPU of speed %.2f",
    .sentence = "is served soonest here, as 1 of %.0f threads on a CPU of speed %.2f"};
static const struct asym_reason pulled = {
    .text = "moved to less load: %.2f here, %.2f where it was",
    .sentence = "moved to less load: it is %.2f here, and was %.2f where it came from"};

static void explain_one(const struct asym_balance *b, size_t t)
{
    const struct asym_policy_thread *thread = &b->sp->in->threads[t];
    struct asym_assignment *a = &b->sp->ret[t];
    if (!(asym_spread_reach(b->sp, t) & ASYM_REACH_FAST)) {
        a->reason = &asym_spread_no_fast;
    } else if (b->known[t] && thread->preferred_cpu >= 0 && thread->preferred_cpu != a->cpu) {
        a->reason = &pulled;
        a->figure[0] = load_of(b, a->cpu, 0);
        a->figure[1] = load_of(b, thread->preferred_cpu, asym_nice_weight(thread->nice));
    } else {
        a->reason = &served_soonest;
        a->figure[0] = b->sp->load[a->cpu];
        a->figure[1] = asym_balance_speed_now(b, a->cpu);
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

const struct asym_policy asym_policy_response_time = {
    .name = "response-time",
    .summary = "threads go where they are served soonest, even to a busy fast CPU while a slow one is idle",
    .source = "Roehrich 2007, 3.1",
    .pin = ASYM_PIN_CPU,
    .task_state_size = sizeof(struct asym_balance_thread),
    .plan = plan,
};
