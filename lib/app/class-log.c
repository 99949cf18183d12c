/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/class-log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "core/task-table.h"

struct entry {
    struct asym_taskid id; /* the key comes first */
    char comm[ASYM_COMM_LEN];
    enum asym_class class; /* the last one; NONE: the entry is new */
    asym_usec since;       /* when its period began */
    asym_usec seen;        /* when a snapshot had it last */
    unsigned n;            /* changes in the period, with a line or without */
    bool flips;            /* the last period had more changes than lines */
};

struct asym_class_log {
    struct asym_table entries;
    asym_usec swept;
    asym_usec since;              /* when the period of all applications began */
    unsigned n_lines, n_left_out; /* in it */
};

/* The receiver of the lines of one update. */
struct output {
    struct asym_class_log *log;
    asym_class_event_fn *fn;
    void *ctx;
};

struct asym_class_log *asym_class_log_new(void)
{
    struct asym_class_log *l = calloc(1, sizeof *l);
    if (l)
        asym_table_init(&l->entries, sizeof(struct entry));
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

static void put(const struct output *out, const struct asym_class_event *event)
{
    if (out->log->n_lines >= ASYM_CLASS_LOG_ALL) {
        out->log->n_left_out++;
        return;
    }
    out->log->n_lines++;
    out->fn(out->ctx, event);
}

static void take(struct entry *e, const struct asym_snapshot *s, const struct asym_plan_task *shown,
                 const struct asym_class_event *event, const struct output *out)
{
    if (e->class == ASYM_CLASS_NONE)
        e->since = s->now;
    e->seen = s->now;
    memcpy(e->comm, event->comm, sizeof e->comm);
    if (e->class == shown->class)
        return;
    e->class = shown->class;
    e->n++;
    if (!e->flips && e->n <= ASYM_CLASS_LOG_LINES)
        put(out, event);
}

static int take_app(const struct output *out, const struct asym_snapshot *s, const struct asym_plan *plan, size_t a)
{
    const struct asym_app *app = &s->apps[a];
    const struct asym_plan_task *shown = shown_task(app, plan);
    if (!shown || shown->class == ASYM_CLASS_NONE)
        return 0;
    struct entry *e = asym_table_get(&out->log->entries, &app->id);
    if (!e)
        return -ENOMEM;
    const struct asym_class_event event = {
        .kind = ASYM_CLASS_EVENT_CHANGE,
        .app = app->id,
        .comm = app->comm,
        .was = e->class,
        .is = shown->class,
        .task = &s->tasks[shown - plan->tasks],
        .plan = shown,
    };
    take(e, s, shown, &event, out);
    return 0;
}

/* Ends the period of an entry. Returns false if the log needs the entry no longer. */
static bool end_period(struct entry *e, asym_usec now, const struct output *out)
{
    if (now - e->since < ASYM_CLASS_LOG_PERIOD)
        return true;
    const struct asym_class_event sum = {
        .kind = ASYM_CLASS_EVENT_SUM, .n = e->n, .app = e->id, .comm = e->comm, .is = e->class};
    if (e->n > ASYM_CLASS_LOG_LINES || (e->flips && e->n > 0))
        put(out, &sum);
    e->flips = e->n > ASYM_CLASS_LOG_LINES;
    e->n = 0;
    e->since = now;
    return now - e->seen < ASYM_CLASS_LOG_PERIOD;
}

static void end_common_period(const struct output *out, asym_usec now)
{
    struct asym_class_log *l = out->log;
    const struct asym_class_event left_out = {.kind = ASYM_CLASS_EVENT_LEFT_OUT, .n = l->n_left_out};
    if (now - l->since < ASYM_CLASS_LOG_PERIOD)
        return;
    if (l->n_left_out > 0)
        out->fn(out->ctx, &left_out);
    l->n_lines = l->n_left_out = 0;
    l->since = now;
}

static void sweep(const struct output *out, asym_usec now)
{
    struct asym_class_log *l = out->log;
    if (now - l->swept < ASYM_SEC)
        return;
    l->swept = now;
    for (uint32_t i = l->entries.n; i-- > 0;)
        if (!end_period(asym_table_at(&l->entries, i), now, out))
            asym_table_remove_at(&l->entries, i);
}

int asym_class_log_update(struct asym_class_log *l, const struct asym_snapshot *s, const struct asym_plan *plan,
                          asym_class_event_fn *fn, void *ctx)
{
    const struct output out = {l, fn, ctx};
    int r = 0;
    end_common_period(&out, s->now);
    for (size_t a = 0; r >= 0 && a < s->n_apps; a++)
        r = take_app(&out, s, plan, a);
    sweep(&out, s->now);
    return r;
}
