/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the snapshot to what a policy sees, and its answers back into the threads' memories. */
#include "core/engine-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* The arena a policy first gets, per thread and CPU; it is grown when a policy asks for more. */
#define ARENA_FIRST(n_threads, n_cpus) (4096 + 64 * (n_threads) + 256 * (n_cpus))

static uint64_t hash_mask(const struct asym_mask *m)
{
    uint64_t h = 0;
    for (size_t i = 0; i < ASYM_MASK_WORDS; i++)
        h = (h ^ m->w[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
    return h ^ h >> 32;
}

const struct asym_mask *asym_intern(struct asym_interner *masks, const struct asym_mask *m)
{
    uint32_t slot = (uint32_t)hash_mask(m) & (masks->n_slots - 1);
    for (; masks->slots[slot] != 0; slot = (slot + 1) & (masks->n_slots - 1))
        if (asym_mask_equal(&masks->masks[masks->slots[slot] - 1], m))
            return &masks->masks[masks->slots[slot] - 1];
    masks->masks[masks->n++] = *m;
    masks->slots[slot] = masks->n;
    return &masks->masks[masks->n - 1];
}

static enum asym_class class_of(const struct asym_step *st, const struct asym_app_memory *app,
                                const struct asym_task *task)
{
    if (asym_classify_sp_left(&st->e->config.classify, app, &task->id, st->s->now) > 0)
        return ASYM_CLASS_SP;
    return app->class;
}

static int32_t home_of(const struct asym_thread_memory *m, const struct asym_task *task, const struct asym_mask *may)
{
    if (m->steered && asym_mask_has(may, m->assignment.cpu))
        return m->assignment.cpu;
    return asym_mask_has(may, task->cpu) ? task->cpu : -1;
}

static void note_class(struct asym_thread_memory *m, enum asym_class class, asym_usec now)
{
    if (m->class != class || m->class_since == 0) {
        m->class = class;
        m->class_since = now;
    }
}

/* Show a thread to the policy, unless something speaks against steering it: then say what. */
static void view_task(struct asym_step *st, const struct asym_app_memory *app, uint32_t index)
{
    const struct asym_task *task = &st->s->tasks[index];
    const struct asym_proc *proc = &st->s->procs[task->proc];
    struct asym_thread_memory *m = asym_memory_of(st, task);
    struct asym_plan_task *out = &st->tasks[index];
    *out = (struct asym_plan_task){.target = -1, .nice = task->nice, .mask = m->original};
    out->class = class_of(st, app, task);
    note_class(m, out->class, st->s->now);
    out->reason = asym_eligible(m, task, proc, st->s, &st->e->config.enforce, out->figure);
    if (out->reason == ASYM_WHY_NONE && (app->phase == ASYM_PHASE_IDLE || task->runnable <= 0))
        out->reason = ASYM_WHY_IDLE;
    struct asym_mask may = asym_may(m, task, proc, st->s->machine);
    if (out->reason == ASYM_WHY_NONE && asym_mask_empty(&may))
        out->reason = ASYM_WHY_NOTHING_FREE;
    if (out->reason != ASYM_WHY_NONE)
        return;
    const struct asym_mask *shared = asym_intern(&st->masks, &may);
    st->view_task[st->n_views] = index;
    st->views[st->n_views++] = (struct asym_policy_thread){
        .id = task->id,
        .app = (uint32_t)st->n_view_apps,
        .class = out->class,
        .class_since = m->class_since,
        .home = home_of(m, task, shared),
        .may = shared,
        .runnable = task->runnable,
        .running = task->running,
        .nice = m->boosted ? m->original_nice : task->nice,
        .master = task->flags & ASYM_TASK_MASTER,
        .spinning = task->flags & ASYM_TASK_SPINNING,
        .state = asym_memory_state(st->e, m),
    };
}

/* An application of which no thread may be steered is shown to people as excluded, with the reason of its first. */
static void note_exclusion(struct asym_plan_app *out, const struct asym_plan_task *tasks, uint32_t n, size_t n_viewed)
{
    if (n_viewed > 0 || n == 0 || tasks[0].reason == ASYM_WHY_IDLE)
        return;
    out->excluded = tasks[0].reason;
    memcpy(out->figure, tasks[0].figure, sizeof out->figure);
}

int asym_step_views(struct asym_step *st)
{
    const struct asym_snapshot *s = st->s;
    for (size_t a = 0; a < s->n_apps; a++) {
        const struct asym_app *app = &s->apps[a];
        const struct asym_app_memory *memory = asym_table_find(&st->e->apps, &app->id);
        size_t first = st->n_views;
        st->apps[a] = (struct asym_plan_app){
            .phase = memory->phase,
            .class = memory->class,
            .runnable = asym_classify_runnable(&st->e->config.classify, app),
        };
        for (uint32_t i = 0; i < app->n_tasks; i++)
            view_task(st, memory, app->first_task + i);
        note_exclusion(&st->apps[a], &st->tasks[app->first_task], app->n_tasks, st->n_views - first);
        if (st->n_views == first)
            continue;
        st->view_apps[st->n_view_apps++] = (struct asym_policy_app){
            .id = app->id,
            .phase = memory->phase,
            .class = memory->class,
            .runnable = st->apps[a].runnable,
            .phase_since = memory->phase_since,
            .first_thread = (uint32_t)first,
            .n_threads = (uint32_t)(st->n_views - first),
        };
    }
    return 0;
}

/* Ask, with more working memory as long as the policy says that it had too little. */
static int ask(struct asym_step *st, struct asym_assignment *answers)
{
    struct asym_engine *e = st->e;
    size_t size = ASYM_MAX(e->arena.capacity, ARENA_FIRST(st->n_views, st->s->machine->n_cpus));
    for (;;) {
        struct asym_arena arena = {.base = asym_pool_reserve(&e->arena, size, 1), .size = size};
        if (!arena.base)
            return -ENOMEM;
        const struct asym_policy_input input = {
            .machine = st->s->machine,
            .now = st->s->now,
            .interval = e->last_plan ? st->s->now - e->last_plan : 0,
            .apps = st->view_apps,
            .threads = st->views,
            .n_apps = st->n_view_apps,
            .n_threads = st->n_views,
            .params = e->params,
            .state = e->policy_state,
            .arena = &arena,
        };
        int r = e->config.policy->plan(&input, answers);
        if (r != -ENOBUFS)
            return r;
        size = ASYM_MAX(size * 2, arena.wanted);
    }
}

/* Reasons that speak of an application or of a boost get their figures here: policies see neither. */
static void fill_figures(const struct asym_step *st, const struct asym_policy_thread *view, struct asym_assignment *a)
{
    const struct asym_classify_settings *c = &st->e->config.classify;
    if (a->reason == ASYM_WHY_SP) {
        asym_usec age = st->s->now - view->class_since;
        a->figure[0] = age < c->amp_boost ? (double)(c->amp_boost - age) / (double)ASYM_SEC : 0;
        a->figure[1] = (double)c->amp_boost / (double)ASYM_SEC;
    } else if (a->reason == ASYM_WHY_HP) {
        a->figure[0] = st->view_apps[view->app].runnable;
        a->figure[1] = asym_hp_threshold(c, st->s->machine);
    }
}

static bool time_to_plan(const struct asym_engine *e, const struct asym_snapshot *s)
{
    return e->dirty || e->plan == 0 || s->machine->generation != e->generation ||
           s->now - e->last_plan >= e->config.enforce.swap_period;
}

int asym_step_plan(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    if (time_to_plan(e, st->s)) {
        struct asym_assignment *answers = asym_pool_reserve(&e->assignments, st->n_views + 1, sizeof *answers);
        if (!answers)
            return -ENOMEM;
        int r = ask(st, answers);
        if (r < 0)
            return r;
        e->plan++;
        e->last_plan = st->s->now;
        e->generation = st->s->machine->generation;
        e->dirty = false;
        for (size_t v = 0; v < st->n_views; v++) {
            struct asym_thread_memory *m = asym_memory_of(st, &st->s->tasks[st->view_task[v]]);
            fill_figures(st, &st->views[v], &answers[v]);
            m->assignment = answers[v];
            m->assigned = e->plan;
        }
    }
    for (size_t v = 0; v < st->n_views; v++) {
        struct asym_plan_task *out = &st->tasks[st->view_task[v]];
        const struct asym_thread_memory *m = asym_memory_of(st, &st->s->tasks[st->view_task[v]]);
        bool valid = m->assigned == e->plan &&
                     (m->assignment.cpu < 0 || asym_mask_has(st->views[v].may, m->assignment.cpu));
        out->reason = valid ? m->assignment.reason : ASYM_WHY_NEXT_SWAP;
        out->target = valid ? m->assignment.cpu : -1;
        out->claim = valid && m->assignment.claim && out->target >= 0;
        memcpy(out->figure, m->assignment.figure, sizeof out->figure);
    }
    return 0;
}
