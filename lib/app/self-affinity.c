/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/self-affinity.h"

#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/thread.h"

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
