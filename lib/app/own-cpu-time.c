/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/own-cpu-time.h"

#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/thread.h"

/*
 * Moves asymd itself away from the CPUs that programs need. asymd needs no fast CPU, and must not run on a CPU that is reserved
 * for a thread. The thread of the fork guard stays where it is: it must react fast, and needs only microseconds.
 */

static struct asym_mask reserved_cpus(const struct asym_plan *plan)
{
    struct asym_mask reserved = {0};
    for (size_t t = 0; plan && t < plan->n_tasks; t++)
        if (plan->tasks[t].exclusive && plan->tasks[t].target >= 0)
            asym_mask_set(&reserved, (unsigned)plan->tasks[t].target);
    return reserved;
}

/* A program that a sample of asymd wakes, such as systemd, runs for a moment only: its CPU stays a choice. */
#define BUSY 0.5

/*
 * Threads that the plan moves count where they ran: they mostly change places with others. The kernel alone does not
 * keep asymd away: a wakeup may search no idle CPU where few are left (SIS_UTIL, since Linux 6.0), and searches none for a
 * real-time thread. A trace shows asymd beside one thread for four samples, while another slow CPU was idle.
 */
static struct asym_mask busy_cpus(const struct asym_machine *m, const struct asym_snapshot *s)
{
    struct asym_mask busy = {0};
    for (size_t i = 0; s && i < s->n_tasks; i++) {
        const struct asym_task *t = &s->tasks[i];
        if (t->state == 'R' && t->runnable >= BUSY && asym_mask_has(&m->online, t->cpu) &&
            !(s->procs[t->proc].flags & ASYM_PROC_SELF))
            asym_mask_set(&busy, (unsigned)t->cpu);
    }
    return busy;
}

struct asym_mask asym_self_affinity_choose(const struct asym_mask *own, const struct asym_machine *m,
                                           const struct asym_snapshot *snapshot, const struct asym_plan *plan)
{
    const struct asym_mask busy = busy_cpus(m, snapshot);
    const struct asym_mask reserved = reserved_cpus(plan), here = asym_mask_and(own, &m->online);
    const struct asym_mask slow = asym_mask_and(&here, asym_machine_is_asymmetric(m) ? &m->slow : &here);
    const struct asym_mask free_slow = asym_mask_minus(&slow, &reserved);
    const struct asym_mask choices[] = {asym_mask_minus(&free_slow, &busy), free_slow,
                                        asym_mask_minus(&here, &reserved), slow};
    for (size_t i = 0; i < ASYM_LENGTH(choices); i++)
        if (!asym_mask_empty(&choices[i]))
            return choices[i];
    return *own;
}

int asym_self_affinity_init(struct asym_self_affinity *a)
{
    struct asym_mask own;
    int r = asym_thread_get_mask(0, &own);
    if (r >= 0)
        *a = (struct asym_self_affinity){.own = own, .set = own};
    return r;
}

void asym_self_affinity_update(struct asym_self_affinity *a, const struct asym_machine *m,
                               const struct asym_snapshot *snapshot, const struct asym_plan *plan)
{
    const struct asym_mask mask = asym_self_affinity_choose(&a->own, m, snapshot, plan);
    if (asym_mask_empty(&a->own) || asym_mask_equal(&mask, &a->set))
        return;
    if (asym_thread_set_mask((int32_t)gettid(), &mask, false) >= 0)
        a->set = mask;
}

/* Lengthens the time between samples while asymd uses more CPU time than its budget (docs/policies.md, Budget). Pure. */

/* asymd must keep the budget for this long before ASYM_BUDGET_KEPT_AGAIN: a changing load must not fill the log. */
#define ASYM_BUDGET_CALM (60 * ASYM_SEC)

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
