/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/exclusion.h"

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
    /* The time stamp of an event may be later than that of the snapshot that carries it. */
    asym_usec ago = now > proc->last_fork ? now - proc->last_fork : 0;
    return ago < settings->fork_holdoff ? settings->fork_holdoff - ago : 0;
}

/* Facts of a process that exclude all its threads, whatever they do. */
static const struct {
    uint32_t flag;
    enum asym_exclusion reason;
} proc_rows[] = {
    {ASYM_PROC_KERNEL, ASYM_WHY_KERNEL},
    {ASYM_PROC_SELF, ASYM_WHY_SELF},
    {ASYM_PROC_FOREIGN_NS, ASYM_WHY_FOREIGN_NS},
    {ASYM_PROC_OUTSIDE, ASYM_WHY_OUTSIDE},
};

enum asym_exclusion asym_lasting_exclusion(const struct asym_proc *proc)
{
    for (size_t i = 0; i < ASYM_LENGTH(proc_rows); i++)
        if (proc->flags & proc_rows[i].flag)
            return proc_rows[i].reason;
    if (proc->rule == ASYM_RULE_UNLISTED)
        return ASYM_WHY_UNLISTED;
    return proc->rule == ASYM_RULE_IGNORE ? ASYM_WHY_RULE_IGNORE : ASYM_WHY_NONE;
}

bool asym_is_lasting_exclusion(const struct asym_reason *reason)
{
    bool found = reason == asym_why(ASYM_WHY_UNLISTED) || reason == asym_why(ASYM_WHY_RULE_IGNORE);
    for (size_t i = 0; i < ASYM_LENGTH(proc_rows); i++)
        found |= reason == asym_why(proc_rows[i].reason);
    return found;
}

/* The user knows a program that the user's own rule names. A rule of the library matches programs that the user never saw. */
static bool is_named_by_user(const struct asym_proc *proc)
{
    return proc->rule_name && !(proc->rule_facts && proc->rule_facts->library);
}

static enum asym_exclusion passing(const struct asym_proc *proc, asym_usec now,
                                   const struct asym_enforce_settings *settings, double ret_figure[2])
{
    /* A program sizes itself by the mask it starts with: after exec as after fork. */
    const asym_usec begun = ASYM_MAX(proc->born, proc->last_exec);
    asym_usec age = now > begun ? now - begun : 0;
    asym_usec left = asym_fork_holdoff_left(proc, now, settings);
    if (age < settings->settle) {
        ret_figure[0] = asym_reason_seconds(settings->settle);
        return ASYM_WHY_SETTLING;
    }
    if (left > 0) {
        ret_figure[0] = seconds(left);
        return ASYM_WHY_FORKED;
    }
    if (proc->flags & ASYM_PROC_UNKNOWN)
        return ASYM_WHY_UNKNOWN;
    /* A rule of the user for the program lifts this. */
    return proc->flags & ASYM_PROC_COUNTS_LATE && !is_named_by_user(proc) ? ASYM_WHY_COUNTS_LATE : ASYM_WHY_NONE;
}

enum asym_exclusion asym_eligible_proc(const struct asym_proc *proc, asym_usec now,
                                       const struct asym_enforce_settings *settings, double ret_figure[2])
{
    enum asym_exclusion reason = asym_lasting_exclusion(proc);
    ret_figure[0] = ret_figure[1] = 0;
    return reason != ASYM_WHY_NONE ? reason : passing(proc, now, settings, ret_figure);
}

enum asym_exclusion asym_eligible(const struct asym_thread_state *m, const struct asym_task *task,
                                  const struct asym_proc *proc, asym_usec now,
                                  const struct asym_enforce_settings *settings, double ret_figure[2])
{
    enum asym_exclusion reason = asym_lasting_exclusion(proc);
    ret_figure[0] = ret_figure[1] = 0;
    if (reason != ASYM_WHY_NONE)
        return reason;
    /* Only these three are real-time or deadline policies. SCHED_EXT and later ones schedule ordinary threads. */
    if (task->sched == SCHED_FIFO || task->sched == SCHED_RR || task->sched == SCHED_DEADLINE)
        return ASYM_WHY_REALTIME;
    if (task->flags & ASYM_TASK_NO_SETAFFINITY)
        return ASYM_WHY_NO_SETAFFINITY;
    if (m->hands_off != ASYM_WHY_NONE) {
        ret_figure[0] = m->hands_off == ASYM_WHY_DENIED ? m->hands_off_error : 0;
        return m->hands_off;
    }
    if (m->extent == ASYM_ORIGINAL_NARROW && proc->adopted == 0 && m->state != ASYM_AFFINITY_STEERED &&
        m->state != ASYM_AFFINITY_INHERITED)
        return ASYM_WHY_OWN_MASK;
    reason = passing(proc, now, settings, ret_figure);
    /*
     * The thread may still set its own mask. Set over asymd's, that would count as an external change, and asymd would never
     * steer it again. No rule lifts this: it ends once the thread has run, and a thread that has hardly run has lost nothing.
     */
    if (reason == ASYM_WHY_NONE && task->flags & ASYM_TASK_HARDLY_RAN && m->state != ASYM_AFFINITY_STEERED)
        return ASYM_WHY_HARDLY_RAN;
    return reason;
}

const struct asym_mask *asym_rule_cpus(const struct asym_proc *proc)
{
    return proc->rule_facts && !asym_mask_empty(&proc->rule_facts->cpus) ? &proc->rule_facts->cpus : NULL;
}

/* Without any common CPU, allowed stays as it is: a thread must always have a CPU. */
static void narrow(struct asym_mask *allowed, const struct asym_mask *to)
{
    const struct asym_mask both = asym_mask_and(allowed, to);
    if (!asym_mask_empty(&both))
        *allowed = both;
}

struct asym_mask asym_allowed_cpus(const struct asym_mask *original, const struct asym_mask *cpuset,
                                   const struct asym_proc *proc, const struct asym_machine *machine)
{
    struct asym_mask allowed = asym_mask_and(cpuset, &machine->usable);
    if (original)
        allowed = asym_mask_and(&allowed, original);
    if (asym_rule_cpus(proc))
        narrow(&allowed, asym_rule_cpus(proc));
    if (proc->rule == ASYM_RULE_FAST || proc->rule == ASYM_RULE_SLOW)
        narrow(&allowed, proc->rule == ASYM_RULE_FAST ? &machine->fast : &machine->slow);
    return allowed;
}
