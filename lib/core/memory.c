/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/memory.h"

#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "core/eligible.h"

bool asym_task_is_active(const struct asym_task *task)
{
    return task->runnable > 0 || task->running > 0 || task->state == 'R';
}

static bool covers_online(const struct asym_seen *seen, const struct asym_machine *machine)
{
    struct asym_mask there = asym_mask_and(seen->task->cpuset, &machine->online);
    return asym_mask_within(&there, seen->task->mask);
}

static void take_baseline(struct asym_thread_memory *m, const struct asym_seen *seen,
                          const struct asym_machine *machine)
{
    m->original_nice = m->set_nice = seen->task->nice;
    m->original = seen->mask;
    m->whole = seen->mask == seen->cpuset || asym_mask_within(seen->task->cpuset, seen->task->mask);
    m->narrow = !m->whole && !covers_online(seen, machine);
}

/* The guard may come to a fork or exec so much later than it is stamped. */
#define GUARD_LATE (100 * ASYM_MSEC)

/* A fork or exec since it was last seen as it was set, however short the time is that it is left alone for. */
static bool forked_since(const struct asym_thread_memory *m, const struct asym_seen *seen,
                         const struct asym_circumstances *c)
{
    const asym_usec last = ASYM_MAX(seen->proc->last_fork, seen->proc->last_exec);
    return asym_fork_holdoff_left(seen->proc, c->now, c->settings) > 0 || (last != 0 && last + GUARD_LATE >= m->set_at);
}

/* The guard gives mask and nice back when a process forks or execs, before the engine hears of it. */
static bool released_by_guard(const struct asym_thread_memory *m, const struct asym_seen *seen,
                              const struct asym_circumstances *c)
{
    return forked_since(m, seen, c) && (seen->mask == m->original || (m->whole && covers_online(seen, c->machine)));
}

/*
 * The kernel itself changes a mask that was set. Since 6.2 it cuts it down to what the cpuset allows, and gives it back
 * when the cpuset grows; before, and when nothing is left of it, it is all that the cpuset allows. When the last of its
 * CPUs goes offline it is widened.
 */
static bool changed_by_kernel(const struct asym_thread_memory *m, const struct asym_seen *seen,
                              const struct asym_circumstances *c)
{
    bool widened = covers_online(seen, c->machine);
    if (widened && !asym_mask_meets(asym_masks_at(c->masks, m->set), &c->machine->online))
        return true;
    struct asym_mask cut = asym_mask_and(asym_masks_at(c->masks, m->asked), seen->task->cpuset);
    if (asym_mask_equal(seen->task->mask, &cut))
        return true;
    /* Not only where the cpuset is another one than before: it may have been seen first with the mask as it was. */
    return widened && (asym_mask_empty(&cut) || seen->cpuset != m->cpuset);
}

static void observe_nice(struct asym_thread_memory *m, int8_t nice, bool held_off)
{
    if (m->boosted && nice == m->set_nice)
        return;
    /* It has raised the value that it was lent. It is not lent one again, and is given back its own (planned_nice). */
    if (m->boosted && asym_nice_owes_boost(nice, m->set_nice, m->original_nice)) {
        m->nice_foreign = true;
        return;
    }
    /* Without a boost in force a new nice value is just the thread's new own one. */
    if (m->boosted && !(held_off && nice == m->original_nice))
        m->nice_foreign = true;
    m->boosted = false;
    m->original_nice = m->set_nice = nice;
}

/*
 * A look reads masks and cpusets one after the other: who writes a cpuset in between makes it a pair that never was. On a
 * busy machine, under somebody who never stops, the same wrong pair was seen in two looks in a row, once in some 600 changes.
 * The actuator leaves the thread alone meanwhile.
 */
#define LOOKS 3

/* Looks in a hurry follow each other within a millisecond, and the kernel may be behind its own cpusets by more. */
#define DOUBT_LEAST (50 * ASYM_MSEC)

static bool doubted_enough(struct asym_thread_memory *m, const struct asym_seen *seen, asym_usec now)
{
    if (m->doubt != seen->mask || m->doubt_cpuset != seen->cpuset) {
        m->doubts = 0;
        m->doubted_at = now;
    }
    m->doubt = seen->mask;
    m->doubt_cpuset = seen->cpuset;
    if (m->doubts < LOOKS)
        m->doubts++;
    return m->doubts >= LOOKS && now - m->doubted_at >= DOUBT_LEAST;
}

static void observe_steered(struct asym_thread_memory *m, const struct asym_seen *seen,
                            const struct asym_circumstances *c)
{
    if (seen->mask != m->set && released_by_guard(m, seen, c)) {
        asym_memory_released(m);
        take_baseline(m, seen, c->machine);
        return;
    }
    observe_nice(m, seen->task->nice, forked_since(m, seen, c));
    if (seen->mask == m->set) {
        m->set_at = c->now;
        m->cpuset = seen->cpuset;
        m->doubt = 0;
    } else if (changed_by_kernel(m, seen, c)) {
        m->set = seen->mask;
        m->cpuset = seen->cpuset;
        m->doubt = 0;
    } else if (doubted_enough(m, seen, c->now)) {
        m->doubt = 0;
        m->steered = false;
        m->lost = true;
        m->hands_off = ASYM_WHY_FOREIGN;
    }
}

void asym_memory_observe(struct asym_thread_memory *m, const struct asym_seen *seen, const struct asym_circumstances *c)
{
    if (asym_task_is_active(seen->task) || !m->known)
        m->last_active = c->now;
    m->known = true;
    if (seen->task->flags & ASYM_TASK_ENDED)
        return;
    if (m->heir && seen->mask == m->set)
        return;
    m->heir = false; /* repaired, by whomever */
    if (m->steered)
        observe_steered(m, seen, c);
    else
        take_baseline(m, seen, c->machine);
}

void asym_memory_steered(struct asym_thread_memory *m, uint32_t mask, int8_t nice, asym_usec now)
{
    if (m->steered && m->set != mask) {
        m->before = m->set;
        m->nice_before = m->set_nice;
    }
    if (m->steered_since == 0)
        m->steered_since = now;
    m->set_at = now;
    m->steered = true;
    m->doubt = 0;
    m->fits = false;
    m->set = m->asked = mask;
    m->set_nice = nice;
    m->boosted = nice != m->original_nice;
}

void asym_memory_released(struct asym_thread_memory *m)
{
    m->before = m->set;
    m->nice_before = m->set_nice;
    m->steered = m->boosted = false;
    m->doubt = 0;
}
