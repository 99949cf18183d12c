/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/what-if.h"

#include <errno.h>
#include <string.h>

#include "base/mask.h"

struct steered {
    struct asym_taskid id;
    struct asym_mask own, mask; /* in the snapshots, and planned */
    int32_t cpu;                /* planned; -1: not known */
    int8_t nice;
};

void asym_what_if_init(struct asym_what_if *w)
{
    *w = (struct asym_what_if){.masks = {.n = 0}};
    asym_table_init(&w->steered, sizeof(struct steered));
}

void asym_what_if_done(struct asym_what_if *w)
{
    asym_table_done(&w->steered);
    asym_mask_table_done(&w->masks);
    asym_pool_done(&w->tasks);
    asym_pool_done(&w->outcomes);
}

static void show_task(struct asym_what_if *w, struct asym_task *task)
{
    struct steered *t = asym_table_find(&w->steered, &task->id);
    if (t && !asym_mask_equal(&t->own, task->mask)) {
        asym_table_remove(&w->steered, &task->id);
        t = NULL;
    }
    if (t) {
        task->nice = t->nice;
        if (!asym_mask_has(&t->mask, task->cpu))
            task->cpu = t->cpu >= 0 ? t->cpu : asym_mask_next(&t->mask, 0);
    }
    task->mask = asym_mask_table_get(&w->masks, t ? &t->mask : task->mask);
    task->cpuset = asym_mask_table_get(&w->masks, task->cpuset);
}

int asym_what_if_show(struct asym_what_if *w, struct asym_snapshot *s)
{
    struct asym_task *tasks = asym_pool_reserve(&w->tasks, s->n_tasks + 1, sizeof *tasks);
    if (!tasks)
        return -ENOMEM;
    if (s->n_tasks > 0)
        memcpy(tasks, s->tasks, s->n_tasks * sizeof *tasks);
    /* No mask of an earlier snapshot is in use any more. */
    if (asym_mask_table_is_full(&w->masks))
        asym_mask_table_sweep(&w->masks);
    for (size_t i = 0; i < s->n_tasks; i++)
        show_task(w, &tasks[i]);
    s->tasks = tasks;
    return w->masks.failed ? -ENOMEM : 0;
}

static bool carry_out(struct asym_what_if *w, const struct asym_action *a)
{
    if (a->kind != ASYM_ACTION_STEER) {
        asym_table_remove(&w->steered, &a->id);
        return true;
    }
    const bool is_new = asym_table_find(&w->steered, &a->id) == NULL;
    struct steered *t = asym_table_get(&w->steered, &a->id);
    if (!t)
        return false;
    if (is_new)
        t->own = a->expect;
    t->mask = a->mask;
    t->nice = a->nice;
    t->cpu = -1;
    return true;
}

const struct asym_outcome *asym_what_if_apply(struct asym_what_if *w, const struct asym_snapshot *s,
                                              const struct asym_plan *plan, const struct asym_action *actions, size_t n)
{
    struct asym_outcome *outcomes = asym_pool_reserve(&w->outcomes, n + 1, sizeof *outcomes);
    if (!outcomes)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        outcomes[i] = (struct asym_outcome){.kind = ASYM_OUTCOME_DONE};
        if (!carry_out(w, &actions[i]))
            return NULL;
    }
    for (size_t i = 0; i < plan->n_tasks; i++) {
        struct steered *t = plan->tasks[i].target >= 0 ? asym_table_find(&w->steered, &s->tasks[i].id) : NULL;
        if (t && asym_mask_has(&t->mask, plan->tasks[i].target))
            t->cpu = plan->tasks[i].target;
    }
    return outcomes;
}
