/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/eligible.h"

#include <sched.h>

#include "base/macro.h"
#include "base/mask.h"

static double seconds(asym_usec t)
{
    return (double)t / (double)ASYM_SEC;
}

asym_usec asym_fork_holdoff_left(const struct asym_proc *proc, asym_usec now,
                                 const struct asym_enforce_settings *settings)
{
    if (proc->last_fork == 0)
        return 0;
    /* an event may be stamped after the snapshot that carries it */
    asym_usec ago = now > proc->last_fork ? now - proc->last_fork : 0;
    return ago < settings->fork_holdoff ? settings->fork_holdoff - ago : 0;
}

/* Facts of a process that hold for all its threads, whatever they do. */
static const struct {
    uint32_t flag;
    enum asym_reason reason;
} proc_rows[] = {
    {ASYM_PROC_KERNEL, ASYM_WHY_KERNEL},
    {ASYM_PROC_SELF, ASYM_WHY_SELF},
    {ASYM_PROC_FOREIGN_NS, ASYM_WHY_FOREIGN_NS},
    {ASYM_PROC_OUTSIDE, ASYM_WHY_OUTSIDE},
};

static enum asym_reason lasting(const struct asym_proc *proc)
{
    for (size_t i = 0; i < ASYM_LENGTH(proc_rows); i++)
        if (proc->flags & proc_rows[i].flag)
            return proc_rows[i].reason;
    return proc->rule == ASYM_RULE_IGNORE ? ASYM_WHY_RULE_IGNORE : ASYM_WHY_NONE;
}

static enum asym_reason passing(const struct asym_proc *proc, asym_usec now,
                                const struct asym_enforce_settings *settings, double ret_figure[2])
{
    /* A new program sizes itself by the mask it finds, as a new process does. */
    const asym_usec begun = ASYM_MAX(proc->born, proc->last_exec);
    asym_usec age = now > begun ? now - begun : 0;
    asym_usec left = asym_fork_holdoff_left(proc, now, settings);
    if (age < settings->settle) {
        ret_figure[0] = seconds(age);
        ret_figure[1] = seconds(settings->settle);
        return ASYM_WHY_SETTLING;
    }
    if (left > 0) {
        ret_figure[0] = seconds(left);
        return ASYM_WHY_FORKED;
    }
    if (proc->flags & ASYM_PROC_UNKNOWN)
        return ASYM_WHY_UNKNOWN;
    /* Unless a rule says what is to be done with it: then somebody knows the program. */
    return proc->flags & ASYM_PROC_COUNTS_LATE && !proc->rule_name ? ASYM_WHY_COUNTS_LATE : ASYM_WHY_NONE;
}

enum asym_reason asym_eligible_proc(const struct asym_proc *proc, asym_usec now,
                                    const struct asym_enforce_settings *settings, double ret_figure[2])
{
    enum asym_reason reason = lasting(proc);
    ret_figure[0] = ret_figure[1] = 0;
    return reason != ASYM_WHY_NONE ? reason : passing(proc, now, settings, ret_figure);
}

enum asym_reason asym_eligible(const struct asym_thread_memory *m, const struct asym_task *task,
                               const struct asym_proc *proc, asym_usec now,
                               const struct asym_enforce_settings *settings, double ret_figure[2])
{
    enum asym_reason reason = lasting(proc);
    ret_figure[0] = ret_figure[1] = 0;
    if (reason != ASYM_WHY_NONE)
        return reason;
    /* SCHED_EXT and whatever comes later are schedulers of ordinary threads; these three are not. */
    if (task->sched == SCHED_FIFO || task->sched == SCHED_RR || task->sched == SCHED_DEADLINE)
        return ASYM_WHY_REALTIME;
    if (task->flags & ASYM_TASK_NO_SETAFFINITY)
        return ASYM_WHY_NO_SETAFFINITY;
    if (m->hands_off != ASYM_WHY_NONE) {
        ret_figure[0] = m->hands_off == ASYM_WHY_DENIED ? m->hands_off_error : 0;
        return m->hands_off;
    }
    if (m->narrow && !m->steered && !m->heir)
        return ASYM_WHY_OWN_MASK;
    reason = passing(proc, now, settings, ret_figure);
    /*
     * What it sets over asymd's would be taken for somebody else's choice, and it would be left alone for good. No rule lifts
     * this: it ends by itself, and who has not run has missed nothing.
     */
    if (reason == ASYM_WHY_NONE && task->flags & ASYM_TASK_HARDLY_RAN && !m->steered)
        return ASYM_WHY_HARDLY_RAN;
    return reason;
}

struct asym_mask asym_may(const struct asym_mask *original, const struct asym_mask *cpuset, enum asym_rule_action rule,
                          const struct asym_machine *machine)
{
    struct asym_mask may = asym_mask_and(cpuset, &machine->usable);
    if (original)
        may = asym_mask_and(&may, original);
    if (rule == ASYM_RULE_FAST || rule == ASYM_RULE_SLOW) {
        struct asym_mask ruled = asym_mask_and(&may, rule == ASYM_RULE_FAST ? &machine->fast : &machine->slow);
        if (!asym_mask_empty(&ruled))
            may = ruled;
    }
    return may;
}
