/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/memory.h"

#include <sched.h>

#include "base/mask.h"

static bool held_off(const struct asym_proc *proc, asym_usec now, const struct asym_enforce_settings *settings)
{
    return proc->last_fork != 0 && now - proc->last_fork < settings->fork_holdoff;
}

/*
 * The mask found is not the one that was set, and yet nobody means to have it otherwise: the guard gave it back when the
 * process forked; a cpuset change reset it (kernels before 6.2) or cut it down (later ones); all its CPUs went offline,
 * upon which the kernel widens it.
 */
static bool explained(struct asym_thread_memory *m, const struct asym_task *task, const struct asym_proc *proc,
                      const struct asym_snapshot *s, const struct asym_enforce_settings *settings)
{
    bool widened = asym_mask_within(task->cpuset, task->mask);
    if (held_off(proc, s->now, settings) && (widened || asym_mask_equal(task->mask, &m->original)))
        return true;
    if (!asym_mask_meets(&m->set, &s->machine->online))
        return true;
    if (asym_mask_equal(task->cpuset, &m->cpuset))
        return false;
    struct asym_mask cut = asym_mask_and(&m->set, task->cpuset);
    return widened || asym_mask_equal(task->mask, &cut);
}

static void observe_steered(struct asym_thread_memory *m, const struct asym_task *task, const struct asym_proc *proc,
                            const struct asym_snapshot *s, const struct asym_enforce_settings *settings)
{
    if (m->boosted && task->nice != m->set_nice) {
        m->boosted = false;
        m->nice_foreign = !(held_off(proc, s->now, settings) && task->nice == m->original_nice);
    }
    if (asym_mask_equal(task->mask, &m->set))
        return;
    m->steered = false;
    if (!explained(m, task, proc, s, settings)) {
        m->hands_off = ASYM_WHY_FOREIGN;
        return;
    }
    /* What was original is the new cpuset's: a list of CPUs that no longer are would keep it out of the new ones. */
    if (m->whole)
        m->original = *task->cpuset;
    m->cpuset = *task->cpuset;
}

void asym_memory_observe(struct asym_thread_memory *m, const struct asym_task *task, const struct asym_proc *proc,
                         const struct asym_snapshot *s, const struct asym_enforce_settings *settings)
{
    if (task->runnable > 0 || !m->known)
        m->last_active = s->now;
    m->known = true;
    if (m->steered) {
        observe_steered(m, task, proc, s, settings);
        return;
    }
    if (m->heir) {
        if (!asym_mask_equal(task->mask, &m->set))
            m->heir = false; /* repaired, by whomever */
        else
            return;
    }
    m->original = *task->mask;
    m->original_nice = task->nice;
    m->cpuset = *task->cpuset;
    m->whole = asym_mask_within(task->cpuset, task->mask);
}

/* Rows rather than a ladder: the order is that of enum asym_reason, the first that holds is told. */
enum asym_reason asym_eligible(const struct asym_thread_memory *m, const struct asym_task *task,
                               const struct asym_proc *proc, const struct asym_snapshot *s,
                               const struct asym_enforce_settings *settings, double figure[2])
{
    asym_usec age = s->now > proc->born ? s->now - proc->born : 0;
    const struct {
        bool holds;
        enum asym_reason reason;
    } rows[] = {
        {proc->flags & ASYM_PROC_KERNEL, ASYM_WHY_KERNEL},
        {proc->flags & ASYM_PROC_SELF, ASYM_WHY_SELF},
        {proc->flags & ASYM_PROC_FOREIGN_NS, ASYM_WHY_FOREIGN_NS},
        {proc->flags & ASYM_PROC_OUTSIDE, ASYM_WHY_OUTSIDE},
        {proc->rule == ASYM_RULE_IGNORE, ASYM_WHY_RULE_IGNORE},
        {task->sched != SCHED_OTHER && task->sched != SCHED_BATCH && task->sched != SCHED_IDLE, ASYM_WHY_REALTIME},
        {task->flags & ASYM_TASK_NO_SETAFFINITY, ASYM_WHY_NO_SETAFFINITY},
        {m->hands_off != ASYM_WHY_NONE, m->hands_off},
        {!m->whole, ASYM_WHY_OWN_MASK},
        {age < settings->settle, ASYM_WHY_SETTLING},
        {held_off(proc, s->now, settings), ASYM_WHY_FORKED},
    };
    figure[0] = figure[1] = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].holds)
            continue;
        if (rows[i].reason == ASYM_WHY_SETTLING) {
            figure[0] = (double)age / (double)ASYM_SEC;
            figure[1] = (double)settings->settle / (double)ASYM_SEC;
        } else if (rows[i].reason == ASYM_WHY_FORKED) {
            figure[0] = (double)(settings->fork_holdoff - (s->now - proc->last_fork)) / (double)ASYM_SEC;
        } else if (rows[i].reason == ASYM_WHY_DENIED) {
            figure[0] = m->hands_off_error;
        }
        return rows[i].reason;
    }
    return ASYM_WHY_NONE;
}

struct asym_mask asym_may(const struct asym_thread_memory *m, const struct asym_task *task,
                          const struct asym_proc *proc, const struct asym_machine *machine)
{
    struct asym_mask may = asym_mask_and(&m->original, task->cpuset);
    may = asym_mask_and(&may, &machine->usable);
    if (proc->rule == ASYM_RULE_FAST || proc->rule == ASYM_RULE_SLOW) {
        struct asym_mask ruled = asym_mask_and(&may, proc->rule == ASYM_RULE_FAST ? &machine->fast : &machine->slow);
        if (!asym_mask_empty(&ruled))
            may = ruled;
    }
    return may;
}
