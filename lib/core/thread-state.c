/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/thread-state.h"

#include <math.h>
#include <sched.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"

/*
 * The duty of a thread: the share of the time in which it would run if it never had to wait, as a mean over about the last
 * second. It is the time that it ran, by the time that it did not wait. So a thread that computes all the time has a duty of 1 also
 * where it shares its CPU, and one that sleeps has the same duty alone and beside others.
 */

/* The time constant of the means. Shorter ones cross the limit often, and each crossing changes the masks of many threads. */
#define TAU ((double)ASYM_SEC)

/* The time in which the thread did not wait is not known below this. */
#define LEAST 1e-6f

double asym_duty_decay(asym_usec time)
{
    return exp(-(double)time / TAU);
}

double asym_duty_share(const struct asym_duty *d)
{
    return d->ready > LEAST ? ASYM_MIN(1, (double)d->ran / (double)d->ready) : 1;
}

bool asym_duty_is_light(double duty, bool was, double from)
{
    return duty < (was ? from : from * ASYM_DUTY_STAYS);
}

static void add_time(struct asym_duty *d, double decay, double ran, double waited)
{
    d->ran = (float)(d->ran * decay + (1 - decay) * ran);
    d->ready = (float)(d->ready * decay + (1 - decay) * (1 - ASYM_MIN(1, waited)));
}

/* Most threads that sleep for longer than some samples wait at a barrier: others may have their seats. */
#define TAU_ASLEEP (0.3 * TAU)

double asym_duty_asleep(const struct asym_duty *d, asym_usec now)
{
    return asym_duty_share(d) * exp(-(double)(now - d->at) / TAU_ASLEEP);
}

void asym_duty_add(struct asym_duty *d, asym_usec now, asym_usec interval, double decay, double running,
                   double runnable, double from)
{
    const bool is_new = d->at == 0;
    if (d->at == now)
        return;
    if (!is_new && now - d->at > interval)
        add_time(d, asym_duty_decay(now - d->at - interval), 0, 0);
    add_time(d, decay, running, ASYM_MAX(0, runnable - running));
    d->at = now;
    d->light = asym_duty_is_light(asym_duty_share(d), is_new || d->light, from);
}

bool asym_task_is_active(const struct asym_task *task)
{
    return task->runnable > 0 || task->running > 0 || task->state == 'R';
}

static bool covers_online(const struct asym_seen *seen, const struct asym_machine *machine)
{
    struct asym_mask there = asym_mask_and(seen->task->cpuset, &machine->online);
    return asym_mask_within(&there, seen->task->mask);
}

static void take_baseline(struct asym_thread_state *m, const struct asym_seen *seen, const struct asym_machine *machine)
{
    m->original_nice = m->set_nice = seen->task->nice;
    m->original = seen->mask;
    if (seen->mask == seen->cpuset || asym_mask_within(seen->task->cpuset, seen->task->mask))
        m->extent = ASYM_ORIGINAL_CPUSET;
    else
        m->extent = covers_online(seen, machine) ? ASYM_ORIGINAL_ONLINE : ASYM_ORIGINAL_NARROW;
}

/* How much longer asymd does not steer a process that forked, in microseconds; 0: it may. */
static asym_usec fork_holdoff_left(const struct asym_proc *proc, asym_usec now,
                                   const struct asym_enforce_settings *settings)
{
    if (proc->last_fork == 0)
        return 0;
    /* The time stamp of an event may be later than that of the snapshot that carries it. */
    asym_usec ago = now > proc->last_fork ? now - proc->last_fork : 0;
    return ago < settings->fork_holdoff ? settings->fork_holdoff - ago : 0;
}

/* The fork guard may handle a fork or exec this much later than its time stamp. */
#define GUARD_LATE (100 * ASYM_MSEC)

/* True when its process forked or executed a program since set was last in force, even if fork_holdoff is over. */
static bool forked_since(const struct asym_thread_state *m, const struct asym_seen *seen,
                         const struct asym_circumstances *c)
{
    const asym_usec last = ASYM_MAX(seen->proc->last_fork, seen->proc->last_exec);
    return fork_holdoff_left(seen->proc, c->now, c->settings) > 0 || (last != 0 && last + GUARD_LATE >= m->set_at);
}

/* When a process forks or execs, the fork guard restores mask and nice value before the engine sees the event. */
static bool released_by_guard(const struct asym_thread_state *m, const struct asym_seen *seen,
                              const struct asym_circumstances *c)
{
    return forked_since(m, seen, c) &&
           (seen->mask == m->original || (m->extent == ASYM_ORIGINAL_CPUSET && covers_online(seen, c->machine)));
}

/*
 * The kernel itself changes a mask that was set. Since 6.2 it narrows the mask to the cpuset, and widens it again when the
 * cpuset grows. Older kernels replace it by the whole cpuset; so do newer ones when no CPU of the mask is left. When the
 * last CPU of a mask goes offline, the kernel widens the mask.
 */
static bool changed_by_kernel(const struct asym_thread_state *m, const struct asym_seen *seen,
                              const struct asym_circumstances *c)
{
    bool widened = covers_online(seen, c->machine);
    if (widened && !asym_mask_meets(asym_mask_table_at(c->masks, m->set), &c->machine->online))
        return true;
    /*
     * An earlier sample showed less than asymd had asked for. Either the kernel has widened the mask since, or that sample
     * was taken while a CPU went offline: sched_getaffinity hides such a CPU, and the mask was whole all the time.
     */
    if (seen->mask == m->asked)
        return true;
    struct asym_mask cut = asym_mask_and(asym_mask_table_at(c->masks, m->asked), seen->task->cpuset);
    if (asym_mask_equal(seen->task->mask, &cut))
        return true;
    /* The first test holds for an unchanged cpuset too: an earlier sample may have seen it with the old mask. */
    return widened && (asym_mask_empty(&cut) || seen->cpuset != m->cpuset);
}

static void observe_nice(struct asym_thread_state *m, int8_t nice, bool held_off)
{
    if (m->boosted && nice == m->set_nice)
        return;
    /* The thread raised the nice value it was lent. asymd lends it none again and restores its own (asym_planned_nice). */
    if (m->boosted && asym_nice_owes_boost(nice, m->set_nice, m->original_nice)) {
        m->nice_foreign = true;
        return;
    }
    /* Without a boost in force, a new nice value is the thread's own. */
    if (m->boosted && !(held_off && nice == m->original_nice))
        m->nice_foreign = true;
    m->boosted = false;
    m->original_nice = m->set_nice = nice;
}

/*
 * A sample reads a thread's mask and its cpuset one after the other. If a program writes the cpuset in between, the sample
 * holds a pair that never existed. On a busy machine, with a program that wrote cpusets without pause, two samples in a row
 * held the same wrong pair about once in 600 changes. Meanwhile the actuator does not touch the thread.
 */
#define SUSPECTED_SAMPLES 3

/* Refreshes follow each other within a millisecond; the kernel may take longer to apply a cpuset to its threads. */
#define SUSPECTED_LEAST (50 * ASYM_MSEC)

static bool suspected_long_enough(struct asym_thread_state *m, const struct asym_seen *seen, asym_usec now)
{
    if (m->suspected != seen->mask || m->suspected_cpuset != seen->cpuset) {
        m->n_suspected = 0;
        m->suspected_at = now;
    }
    m->suspected = seen->mask;
    m->suspected_cpuset = seen->cpuset;
    if (m->n_suspected < SUSPECTED_SAMPLES)
        m->n_suspected++;
    return m->n_suspected >= SUSPECTED_SAMPLES && now - m->suspected_at >= SUSPECTED_LEAST;
}

static void observe_steered(struct asym_thread_state *m, const struct asym_seen *seen,
                            const struct asym_circumstances *c)
{
    if (seen->mask != m->set && released_by_guard(m, seen, c)) {
        asym_thread_state_released(m);
        take_baseline(m, seen, c->machine);
        return;
    }
    observe_nice(m, seen->task->nice, forked_since(m, seen, c));
    if (seen->mask == m->set) {
        m->set_at = c->now;
        m->cpuset = seen->cpuset;
        m->suspected = 0;
    } else if (changed_by_kernel(m, seen, c)) {
        m->set = seen->mask;
        m->cpuset = seen->cpuset;
        m->suspected = 0;
    } else if (suspected_long_enough(m, seen, c->now)) {
        m->suspected = 0;
        m->state = ASYM_AFFINITY_LOST;
        m->hands_off = ASYM_WHY_FOREIGN;
        m->hands_off_at = c->now;
    }
}

static bool has_mask_of_asymd(const struct asym_thread_state *m, const struct asym_seen *seen,
                              const struct asym_circumstances *c)
{
    return seen->mask == m->set || changed_by_kernel(m, seen, c);
}

/* It has called exec itself, and only its nice value is another one: no thread that had asymd's mask explains that value. */
static bool is_same_leader(const struct asym_thread_state *m, const struct asym_seen *seen,
                           const struct asym_circumstances *c)
{
    return seen->task->flags & ASYM_TASK_EXECUTED && has_mask_of_asymd(m, seen, c);
}

void asym_thread_state_observe(struct asym_thread_state *m, const struct asym_seen *seen,
                               const struct asym_circumstances *c)
{
    /* A LOST thread is not the actuator's any more: FORGET comes first. A change after the adoption counts again. */
    if (seen->proc->adopted > m->hands_off_at && m->state != ASYM_AFFINITY_LOST)
        m->hands_off = ASYM_WHY_NONE;
    if (asym_task_is_active(seen->task) || m->state == ASYM_AFFINITY_NEW)
        m->last_active = c->now;
    if (m->state == ASYM_AFFINITY_NEW)
        m->state = ASYM_AFFINITY_OWN;
    if (seen->task->flags & ASYM_TASK_ENDED)
        return;
    m->ended = false;
    if (m->state == ASYM_AFFINITY_INHERITED && seen->mask == m->set)
        return;
    if (m->state == ASYM_AFFINITY_INHERITED)
        m->state = ASYM_AFFINITY_OWN; /* its mask changed: there is nothing left to repair */
    if (m->state == ASYM_AFFINITY_LOST && is_same_leader(m, seen, c)) {
        m->state = ASYM_AFFINITY_STEERED;
        m->boosted = m->set_nice != m->original_nice;
    }
    if (m->state == ASYM_AFFINITY_STEERED)
        observe_steered(m, seen, c);
    else if (m->state !=
             ASYM_AFFINITY_LOST) /* until the FORGET is done, it may still have the nice value that asymd lent */
        take_baseline(m, seen, c->machine);
}

void asym_thread_state_steered(struct asym_thread_state *m, uint32_t mask, int8_t nice, asym_usec now)
{
    if (m->state == ASYM_AFFINITY_STEERED && m->set != mask) {
        m->before = m->set;
        m->nice_before = m->set_nice;
    }
    if (m->steered_since == 0)
        m->steered_since = now;
    m->set_at = now;
    m->state = ASYM_AFFINITY_STEERED;
    m->suspected = 0;
    m->set = m->asked = mask;
    m->set_nice = nice;
    m->boosted = nice != m->original_nice;
}

/* A leader that calls exec itself keeps what it had. An action of the last step is still due for an INHERITED or a LOST one. */
static bool is_as_known(const struct asym_thread_state *m, const struct asym_seen *seen,
                        const struct asym_circumstances *c)
{
    switch (m->state) {
    case ASYM_AFFINITY_STEERED:
        return has_mask_of_asymd(m, seen, c) && seen->task->nice == m->set_nice;
    case ASYM_AFFINITY_OWN:
    case ASYM_AFFINITY_FITS:
        return seen->mask == m->original && seen->task->nice == m->original_nice;
    case ASYM_AFFINITY_NEW:
    case ASYM_AFFINITY_INHERITED:
    case ASYM_AFFINITY_LOST:
        break;
    }
    return true;
}

void asym_thread_state_executed(struct asym_thread_state *m, const struct asym_seen *seen,
                                const struct asym_circumstances *c)
{
    if (is_as_known(m, seen, c))
        return;
    const bool is_recorded = m->state == ASYM_AFFINITY_STEERED;
    if (is_recorded)
        asym_thread_state_released(m);
    m->state = is_recorded ? ASYM_AFFINITY_LOST : ASYM_AFFINITY_NEW;
    m->nice_foreign = false;
}

void asym_thread_state_released(struct asym_thread_state *m)
{
    m->before = m->set;
    m->nice_before = m->set_nice;
    m->state = ASYM_AFFINITY_OWN;
    m->boosted = false;
    m->suspected = 0;
}

void asym_thread_state_ended(struct asym_thread_state *m)
{
    /* Keep for a while what asymd set on it, or its creator: it may go on as the leader, and its last children may have it, too. */
    if (m->state == ASYM_AFFINITY_STEERED || m->state == ASYM_AFFINITY_INHERITED) {
        asym_thread_state_released(m);
        m->ended = true;
    }
    m->state = ASYM_AFFINITY_OWN;
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
    asym_usec left = fork_holdoff_left(proc, now, settings);
    if (age < settings->settle) {
        ret_figure[0] = asym_reason_seconds(settings->settle);
        return ASYM_WHY_SETTLING;
    }
    if (left > 0) {
        ret_figure[0] = (double)left / (double)ASYM_SEC;
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
