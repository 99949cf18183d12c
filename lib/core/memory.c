/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/memory.h"

#include "base/mask.h"
#include "core/eligible.h"

bool asym_task_is_active(const struct asym_task *task)
{
    return task->runnable > 0 || task->running > 0 || task->state == 'R';
}

static bool covers(const struct asym_mask *mask, const struct asym_mask *cpuset, const struct asym_mask *online)
{
    struct asym_mask there = asym_mask_and(cpuset, online);
    return asym_mask_within(&there, mask);
}

static void take_baseline(struct asym_thread_memory *m, const struct asym_task *task,
                          const struct asym_machine *machine)
{
    m->original = *task->mask;
    m->original_nice = m->set_nice = task->nice;
    m->whole = asym_mask_within(task->cpuset, task->mask);
    m->narrow = !m->whole && !covers(task->mask, task->cpuset, &machine->online);
}

/* The guard gives mask and nice back when a process forks, before the engine hears of it. */
static bool released_by_guard(const struct asym_thread_memory *m, const struct asym_task *task,
                              const struct asym_proc *proc, const struct asym_snapshot *s,
                              const struct asym_enforce_settings *settings)
{
    return asym_fork_holdoff_left(proc, s->now, settings) > 0 &&
           (asym_mask_equal(task->mask, &m->original) ||
            (m->whole && covers(task->mask, task->cpuset, &s->machine->online)));
}

/*
 * The kernel itself changes a mask that was set. Since 6.2 it cuts it down to what the cpuset allows, and gives it back
 * when the cpuset grows; before, and when nothing is left of it, it is all that the cpuset allows. When the last of its
 * CPUs goes offline it is widened.
 */
static bool changed_by_kernel(const struct asym_thread_memory *m, const struct asym_task *task,
                              const struct asym_machine *machine)
{
    bool widened = covers(task->mask, task->cpuset, &machine->online);
    if (widened && !asym_mask_meets(&m->set, &machine->online))
        return true;
    if (asym_mask_equal(task->cpuset, &m->cpuset))
        return false;
    struct asym_mask cut = asym_mask_and(&m->asked, task->cpuset);
    return widened || asym_mask_equal(task->mask, &cut);
}

static void observe_nice(struct asym_thread_memory *m, const struct asym_task *task, bool held_off)
{
    if (m->boosted && task->nice == m->set_nice)
        return;
    /* Without a boost in force a new nice value is just the thread's new own one. */
    if (m->boosted && !(held_off && task->nice == m->original_nice))
        m->nice_foreign = true;
    m->boosted = false;
    m->original_nice = m->set_nice = task->nice;
}

static void observe_steered(struct asym_thread_memory *m, const struct asym_task *task, const struct asym_proc *proc,
                            const struct asym_snapshot *s, const struct asym_enforce_settings *settings)
{
    observe_nice(m, task, asym_fork_holdoff_left(proc, s->now, settings) > 0);
    if (asym_mask_equal(task->mask, &m->set)) {
        m->cpuset = *task->cpuset;
        return;
    }
    if (released_by_guard(m, task, proc, s, settings)) {
        m->steered = false;
        take_baseline(m, task, s->machine);
    } else if (changed_by_kernel(m, task, s->machine)) {
        m->set = *task->mask;
        m->cpuset = *task->cpuset;
    } else {
        m->steered = m->boosted = false;
        m->hands_off = ASYM_WHY_FOREIGN;
    }
}

void asym_memory_observe(struct asym_thread_memory *m, const struct asym_task *task, const struct asym_proc *proc,
                         const struct asym_snapshot *s, const struct asym_enforce_settings *settings)
{
    if (asym_task_is_active(task) || !m->known)
        m->last_active = s->now;
    m->known = true;
    if (m->heir && asym_mask_equal(task->mask, &m->set))
        return;
    m->heir = false; /* repaired, by whomever */
    if (m->steered)
        observe_steered(m, task, proc, s, settings);
    else
        take_baseline(m, task, s->machine);
}
