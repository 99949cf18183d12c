/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/perf/count-all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

struct count_all {
    struct asym_source source;
    struct asym_source *inner;
    struct asym_plan_task *tasks; /* of the plan, with counted set */
    size_t capacity;
};

static struct count_all *of(struct asym_source *source)
{
    return (struct count_all *)(void *)source;
}

static int count_all_next(struct asym_source *source, struct asym_snapshot *ret)
{
    return of(source)->inner->next(of(source)->inner, ret);
}

static bool grow(struct count_all *c, size_t n)
{
    if (n <= c->capacity)
        return true;
    struct asym_plan_task *grown = reallocarray(c->tasks, n, sizeof *grown);
    if (!grown)
        return false;
    c->tasks = grown;
    c->capacity = n;
    return true;
}

static void count_all_feedback(struct asym_source *source, const struct asym_feedback *feedback)
{
    struct count_all *c = of(source);
    struct asym_feedback all = *feedback;
    struct asym_plan plan = *feedback->plan;
    if (plan.n_tasks > 0 && grow(c, plan.n_tasks)) {
        memcpy(c->tasks, plan.tasks, plan.n_tasks * sizeof *c->tasks);
        for (size_t i = 0; i < plan.n_tasks; i++)
            c->tasks[i].counted = true;
        plan.tasks = c->tasks;
    }
    all.plan = &plan;
    asym_source_feedback(c->inner, &all);
}

static void count_all_refresh(struct asym_source *source)
{
    asym_source_refresh(of(source)->inner);
}

static void count_all_close(struct asym_source *source)
{
    free(of(source)->tasks);
    free(of(source));
}

int asym_count_all_new(struct asym_source *inner, struct asym_source **ret_source)
{
    struct count_all *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->source = (struct asym_source){
        .next = count_all_next, .feedback = count_all_feedback, .refresh = count_all_refresh, .close = count_all_close};
    c->inner = inner;
    *ret_source = &c->source;
    return 0;
}
