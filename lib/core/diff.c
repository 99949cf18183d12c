/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in force against what shall be: the actions. */
#include "core/engine-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "core/eligible.h"

static void push(struct asym_step *st, const struct asym_action *a)
{
    struct asym_action *actions = st->e->pools.actions.items;
    actions[st->e->n_actions++] = *a;
}

/* A cpuset that has grown since is given back as it is now. */
static const struct asym_mask *due_back(const struct asym_thread_memory *m)
{
    return m->whole && !asym_mask_within(&m->cpuset, &m->original) ? &m->cpuset : &m->original;
}

static void release(struct asym_step *st, const struct asym_thread_memory *m, enum asym_reason reason,
                    const double figure[2])
{
    const struct asym_action a = {
        .kind = ASYM_ACTION_RELEASE,
        .id = m->id,
        .expect = m->set,
        .mask = *due_back(m),
        .expect_nice = m->set_nice,
        .nice = m->original_nice,
        .whole = m->whole,
        .reason = reason,
        .figure = {figure[0], figure[1]},
    };
    push(st, &a);
}

static void repair(struct asym_step *st, const struct asym_thread_memory *m, enum asym_reason reason)
{
    const struct asym_action a = {
        .kind = ASYM_ACTION_REPAIR,
        .id = m->id,
        .expect = m->set,
        .mask = m->original,
        .expect_nice = m->set_nice,
        .nice = m->original_nice,
        .whole = m->whole,
        .reason = reason,
    };
    push(st, &a);
}

/* CPUs that are offline or outside its cpuset, as a mask often has them, do not count. */
static bool has_already(const struct asym_step *st, const struct asym_thread_memory *m, const struct asym_task *task,
                        const struct asym_plan_task *plan)
{
    if (plan->nice != task->nice)
        return false;
    if (asym_mask_equal(&plan->mask, task->mask))
        return true;
    if (m->steered)
        return false;
    struct asym_mask real = asym_mask_and(task->mask, task->cpuset);
    real = asym_mask_and(&real, &st->s->machine->usable);
    return asym_mask_equal(&plan->mask, &real);
}

static void steer(struct asym_step *st, struct asym_thread_memory *m, const struct asym_task *task,
                  const struct asym_plan_task *plan)
{
    if (has_already(st, m, task, plan)) {
        m->given = plan->target;
        m->fits = !m->steered;
        return;
    }
    m->fits = false;
    m->cpuset = *task->cpuset;
    const struct asym_action a = {
        .kind = ASYM_ACTION_STEER,
        .id = task->id,
        .expect = *task->mask,
        .mask = plan->mask,
        .expect_nice = task->nice,
        .nice = plan->nice,
        .reason = plan->reason,
        .figure = {plan->figure[0], plan->figure[1]},
    };
    push(st, &a);
}

static bool idle_for_long(const struct asym_step *st, const struct asym_thread_memory *m,
                          const struct asym_app_memory *app)
{
    const asym_usec release = st->e->config.enforce.release, now = st->s->now;
    return st->e->flush || now - m->last_active >= release ||
           (app && app->phase.value == ASYM_PHASE_IDLE && now - app->phase.since >= release);
}

/* What was set stays in force for now, and is shown so. */
static void keep(struct asym_plan_task *plan, const struct asym_thread_memory *m)
{
    plan->target = m->given;
    plan->mask = m->set;
}

static void diff_task(struct asym_step *st, uint32_t index, const struct asym_app_memory *app)
{
    struct asym_plan_task *plan = &st->tasks[index];
    struct asym_thread_memory *m = st->memory[index];
    const bool waits = plan->reason == ASYM_WHY_NEXT_SWAP || plan->reason == ASYM_WHY_IDLE;
    if (m->heir)
        repair(st, m, plan->reason);
    else if (plan->target >= 0)
        steer(st, m, &st->s->tasks[index], plan);
    else if (m->steered && waits && !(plan->reason == ASYM_WHY_IDLE && idle_for_long(st, m, app)))
        keep(plan, m);
    else if (m->steered)
        release(st, m, plan->reason, plan->figure);
    else if (!waits)
        m->fits = false;
}

/* Steered threads that the snapshot does not list: asleep, or gone. */
static void diff_unlisted(struct asym_step *st)
{
    const struct asym_engine *e = st->e;
    for (uint32_t i = 0; i < e->threads.n; i++) {
        const struct asym_thread_memory *m = asym_table_at(&e->threads, i);
        if (!m->steered || m->seen == e->step)
            continue;
        const struct asym_taskid key = {.tid = m->id.tgid};
        const struct asym_proc_entry *proc = asym_table_find(&e->procs, &key);
        double figure[2] = {0, 0};
        enum asym_reason reason = ASYM_WHY_NONE;
        if (proc)
            reason = asym_eligible_proc(&st->s->procs[proc->index], st->s->now, &e->config.enforce, figure);
        if (reason != ASYM_WHY_NONE)
            release(st, m, reason, figure);
        else if (idle_for_long(st, m, NULL))
            release(st, m, ASYM_WHY_IDLE, figure);
    }
}

int asym_step_actions(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    e->n_actions = 0;
    /* a listed thread has at most one, and so has one that is not listed */
    if (!asym_pool_reserve(&e->pools.actions, st->s->n_tasks + e->threads.n, sizeof(struct asym_action)))
        return -ENOMEM;
    for (size_t a = 0; a < st->s->n_apps; a++) {
        const struct asym_app *app = &st->s->apps[a];
        const struct asym_app_memory *memory = asym_table_find(&e->apps, &app->id);
        for (uint32_t i = 0; i < app->n_tasks; i++)
            diff_task(st, app->first_task + i, memory);
    }
    diff_unlisted(st);
    e->flush = false;
    return 0;
}
