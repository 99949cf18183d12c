/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is in force against what shall be: the actions. */
#include "core/engine-internal.h"

#include <errno.h>

#include "base/macro.h"
#include "base/mask.h"
#include "core/eligible.h"

static const struct asym_mask *mask_at(const struct asym_step *st, uint32_t id)
{
    return asym_masks_at(&st->e->masks, id);
}

/* mask: by number, what is to be in force when it is done; actions carry it in full. */
static void push(struct asym_step *st, const struct asym_action *a, uint32_t mask)
{
    struct asym_action *actions = st->e->pools.actions.items;
    uint32_t *masks = st->e->pools.action_masks.items;
    masks[st->e->n_actions] = mask;
    actions[st->e->n_actions++] = *a;
}

/* A cpuset that has grown since is given back as it is now. */
static uint32_t due_back(const struct asym_step *st, const struct asym_thread_memory *m)
{
    if (m->whole && m->cpuset != m->original && !asym_mask_within(mask_at(st, m->cpuset), mask_at(st, m->original)))
        return m->cpuset;
    return m->original;
}

static void release(struct asym_step *st, const struct asym_thread_memory *m, enum asym_reason reason,
                    const double figure[2])
{
    const uint32_t mask = due_back(st, m);
    const struct asym_action a = {
        .kind = ASYM_ACTION_RELEASE,
        .id = m->id,
        .expect = *mask_at(st, m->set),
        .mask = *mask_at(st, mask),
        .expect_nice = m->set_nice,
        .nice = m->original_nice,
        .whole = m->whole,
        .reason = reason,
        .figure = {figure[0], figure[1]},
    };
    push(st, &a, mask);
}

static void repair(struct asym_step *st, const struct asym_thread_memory *m, const struct asym_plan_task *plan)
{
    const struct asym_action a = {
        .kind = ASYM_ACTION_REPAIR,
        .id = m->id,
        .expect = *mask_at(st, m->set),
        .mask = *mask_at(st, m->original),
        .expect_nice = m->set_nice,
        .nice = m->original_nice,
        .whole = m->whole,
        .reason = plan->reason,
        .figure = {plan->figure[0], plan->figure[1]},
    };
    push(st, &a, m->original);
}

/* The mask is somebody else's now and stays; a boost that is still in force is asymd's. */
static void forget(struct asym_step *st, const struct asym_task_ref *ref, const struct asym_plan_task *plan)
{
    const struct asym_thread_memory *m = ref->memory;
    const struct asym_action a = {
        .kind = ASYM_ACTION_FORGET,
        .id = m->id,
        .expect = *ref->seen.task->mask,
        .mask = *ref->seen.task->mask,
        .expect_nice = m->set_nice,
        .nice = m->original_nice,
        .reason = plan->reason,
    };
    push(st, &a, ref->seen.mask);
}

/* CPUs that are offline or outside its cpuset, as a mask often has them, do not count. */
static bool has_already(const struct asym_step *st, const struct asym_task_ref *ref, const struct asym_plan_task *plan)
{
    if (plan->nice != ref->seen.task->nice)
        return false;
    if (ref->plan_mask == ref->seen.mask)
        return true;
    if (ref->memory->steered)
        return false;
    struct asym_mask real = asym_mask_and(ref->seen.task->mask, ref->seen.task->cpuset);
    real = asym_mask_and(&real, &st->s->machine->usable);
    return asym_mask_equal(&plan->mask, &real);
}

static void steer(struct asym_step *st, const struct asym_task_ref *ref, const struct asym_plan_task *plan)
{
    struct asym_thread_memory *m = ref->memory;
    if (has_already(st, ref, plan)) {
        m->given = plan->target;
        m->fits = !m->steered;
        return;
    }
    m->fits = false;
    m->cpuset = ref->seen.cpuset;
    const struct asym_action a = {
        .kind = ASYM_ACTION_STEER,
        .id = m->id,
        .via = ref->via,
        .expect = *ref->seen.task->mask,
        .mask = plan->mask,
        .expect_nice = ref->seen.task->nice,
        .nice = plan->nice,
        .reason = plan->reason,
        .figure = {plan->figure[0], plan->figure[1]},
    };
    push(st, &a, ref->plan_mask);
}

static bool idle_for_long(const struct asym_step *st, const struct asym_thread_memory *m,
                          const struct asym_app_memory *app)
{
    const asym_usec release = st->e->config.enforce.release, now = st->s->now;
    return st->e->flush || now - m->last_active >= release ||
           (app && app->phase.value == ASYM_PHASE_IDLE && now - app->phase.since >= release);
}

static void diff_task(struct asym_step *st, uint32_t index, const struct asym_app_memory *app)
{
    struct asym_plan_task *plan = &st->tasks[index];
    const struct asym_task_ref *ref = &st->refs[index];
    struct asym_thread_memory *m = ref->memory;
    const bool waits = plan->reason == ASYM_WHY_NEXT_SWAP || plan->reason == ASYM_WHY_IDLE;
    plan->mask = *mask_at(st, plan->target >= 0 ? ref->plan_mask : m->original);
    if (m->lost) {
        forget(st, ref, plan);
    } else if (m->heir) {
        repair(st, m, plan);
    } else if (plan->target >= 0) {
        steer(st, ref, plan);
    } else if (m->steered && waits && !(plan->reason == ASYM_WHY_IDLE && idle_for_long(st, m, app))) {
        /* what was set stays in force for now, and is shown so */
        plan->target = m->given;
        plan->mask = *mask_at(st, m->set);
    } else if (m->steered) {
        release(st, m, plan->reason, plan->figure);
    } else if (!waits) {
        m->fits = false;
    }
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

/* A listed thread has at most one action, and so has a steered one that is not listed. */
static size_t most_actions(const struct asym_step *st)
{
    size_t n = st->s->n_tasks;
    for (uint32_t i = 0; i < st->e->threads.n; i++) {
        const struct asym_thread_memory *m = asym_table_at(&st->e->threads, i);
        n += m->steered && m->seen != st->e->step;
    }
    return n;
}

int asym_step_actions(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    const size_t most = most_actions(st);
    if (!asym_pool_reserve(&e->pools.actions, most, sizeof(struct asym_action)) ||
        !asym_pool_reserve(&e->pools.action_masks, most, sizeof(uint32_t)))
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
