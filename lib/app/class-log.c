/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/class-log.h"

#include <errno.h>
#include <stdlib.h>

#include "base/token-bucket.h"
#include "core/task-table.h"

struct entry {
    struct asym_taskid id; /* the key comes first */
    enum asym_class class; /* the last one; NONE: the entry is new */
    asym_usec seen;        /* when a snapshot had it last */
    struct asym_token_bucket lines;
    unsigned n_left_out; /* changes since the last line */
};

struct asym_class_log {
    struct asym_table entries;
    struct asym_token_bucket lines; /* of all applications */
    asym_usec swept;
};

/* One more line is a debt. */
static struct asym_token_bucket new_bucket(unsigned n_lines, asym_usec now)
{
    return asym_token_bucket_full(n_lines / (double)ASYM_CLASS_LOG_PERIOD, n_lines - 1.0, now);
}

struct asym_class_log *asym_class_log_new(void)
{
    struct asym_class_log *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    asym_table_init(&l->entries, sizeof(struct entry));
    l->lines = new_bucket(ASYM_CLASS_LOG_ALL, 0);
    return l;
}

void asym_class_log_free(struct asym_class_log *l)
{
    if (l)
        asym_table_done(&l->entries);
    free(l);
}

/* The task that stands for the application; NULL: asymd steers none of its threads. */
static const struct asym_plan_task *shown_task(const struct asym_app *app, const struct asym_plan *plan)
{
    const struct asym_plan_task *first = NULL;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        if (plan->tasks[i].target < 0)
            continue;
        if (plan->tasks[i].class == ASYM_CLASS_SP)
            return &plan->tasks[i];
        first = first ? first : &plan->tasks[i];
    }
    return first;
}

/* Returns the entry of an application whose class has changed; NULL: there is no line for the change. */
static struct entry *take_change(struct asym_class_log *l, struct entry *e, enum asym_class class, asym_usec now)
{
    if (e->class == ASYM_CLASS_NONE)
        e->lines = new_bucket(ASYM_CLASS_LOG_LINES, now);
    e->seen = now;
    if (e->class == class)
        return NULL;
    e->class = class;
    if (!asym_token_bucket_has(&e->lines, now) || !asym_token_bucket_has(&l->lines, now)) {
        e->n_left_out++;
        return NULL;
    }
    asym_token_bucket_charge(&e->lines, 1, now);
    asym_token_bucket_charge(&l->lines, 1, now);
    return e;
}

static void sweep(struct asym_class_log *l, asym_usec now)
{
    if (now - l->swept < ASYM_SEC)
        return;
    l->swept = now;
    for (uint32_t i = l->entries.n; i-- > 0;) {
        const struct entry *e = asym_table_at(&l->entries, i);
        if (now - e->seen >= ASYM_CLASS_LOG_PERIOD)
            asym_table_remove_at(&l->entries, i);
    }
}

int asym_class_log_update(struct asym_class_log *l, const struct asym_snapshot *s, const struct asym_plan *plan,
                          asym_class_event_fn *fn, void *ctx)
{
    for (size_t a = 0; a < s->n_apps; a++) {
        const struct asym_plan_task *shown = shown_task(&s->apps[a], plan);
        if (!shown || shown->class == ASYM_CLASS_NONE)
            continue;
        struct entry *e = asym_table_get(&l->entries, &s->apps[a].id);
        if (!e)
            return -ENOMEM;
        e = take_change(l, e, shown->class, s->now);
        if (!e)
            continue;
        fn(ctx, &s->tasks[shown - plan->tasks], shown, e->n_left_out);
        e->n_left_out = 0;
    }
    sweep(l, s->now);
    return 0;
}
