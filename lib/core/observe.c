/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Update the states of threads and applications from the snapshot, and drop them when they are gone. */
#include "core/engine-internal.h"

#include <errno.h>
#include <limits.h>

#include "base/macro.h"

static void recall_untouchable(struct asym_engine *e, struct asym_thread_state *m)
{
    const struct asym_taskid key = {.tid = m->id.tid};
    const struct asym_untouchable *u = asym_table_find(&e->untouchables, &key);
    if (!u)
        return;
    if (u->id.tgid == m->id.tgid && u->id.start == m->id.start) {
        m->hands_off = u->reason;
        m->hands_off_at = u->at;
        m->hands_off_error = u->error;
    }
    asym_table_remove(&e->untouchables, &key);
}

/* Returns false without memory for it: then the caller must keep the thread's own state. */
static bool keep_untouchable(struct asym_engine *e, const struct asym_thread_state *m)
{
    const struct asym_taskid key = {.tid = m->id.tid};
    struct asym_untouchable *u = asym_table_get(&e->untouchables, &key);
    if (!u)
        return false;
    *u = (struct asym_untouchable){
        .key = key,
        .id = m->id,
        .at = m->hands_off_at,
        .reason = m->hands_off,
        .error = m->hands_off_error,
    };
    return true;
}

static const struct asym_proc *find_proc(const struct asym_step *st, int32_t pid)
{
    const struct asym_taskid key = {.tid = pid};
    const struct asym_proc_entry *entry = asym_table_find(&st->e->procs, &key);
    return entry ? &st->s->procs[entry->index] : NULL;
}

/* Repeat while any are found: the snapshot may list a child before the thread it inherited from. */
static int adopt_inherited(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    struct asym_inherited inherited = {0};
    size_t found;
    do {
        found = 0;
        for (size_t i = 0; i < st->s->n_tasks; i++) {
            const struct asym_task_ref *ref = &st->refs[i];
            if (!asym_inherited_is_candidate(ref->thread_state, &ref->seen, e->first_steered))
                continue;
            if (!inherited.threads && asym_inherited_list(&inherited, &e->threads, &e->pools.inherited) < 0)
                return -ENOMEM;
            found += asym_inherited_adopt(&inherited, ref->thread_state, &ref->seen,
                                          find_proc(st, ref->seen.proc->ppid), st->s->now);
        }
    } while (found > 0);
    return 0;
}

static void sweep_masks(struct asym_engine *e)
{
    if (!asym_mask_table_is_full(&e->masks))
        return;
    for (uint32_t i = 0; i < e->threads.n; i++) {
        const struct asym_thread_state *m = asym_table_at(&e->threads, i);
        const uint32_t used[] = {m->original,         m->asked, m->set, m->before, m->suspected,
                                 m->suspected_cpuset, m->cpuset};
        for (size_t k = 0; k < ASYM_LENGTH(used); k++)
            asym_mask_table_mark(&e->masks, used[k]);
    }
    asym_mask_table_sweep(&e->masks);
}

/* Equal masks of one snapshot have equal addresses: by these, most of them are hashed once in a step. */
struct known_mask {
    const struct asym_mask *mask;
    uint32_t id;
};

enum { KNOWN = 512 };

static uint32_t number_mask(struct asym_mask_table *masks, struct known_mask known[KNOWN], const struct asym_mask *m)
{
    struct known_mask *k = &known[(uintptr_t)m / sizeof *m % KNOWN];
    if (k->mask != m)
        *k = (struct known_mask){m, asym_mask_table_id(masks, m)};
    return k->id;
}

/* This comes first because it may need memory. */
static int number_masks(struct asym_step *st)
{
    struct asym_mask_table *masks = &st->e->masks;
    struct known_mask known[KNOWN] = {{0}};
    sweep_masks(st->e);
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        const struct asym_task *task = &st->s->tasks[i];
        st->refs[i] = (struct asym_task_ref){.seen = {
                                                 .task = task,
                                                 .proc = &st->s->procs[task->proc],
                                                 .mask = number_mask(masks, known, task->mask),
                                                 .cpuset = number_mask(masks, known, task->cpuset),
                                             }};
    }
    return masks->failed ? -ENOMEM : 0;
}

/* find_thread_states has made room. Only threads that the snapshot does not list, and heirs, are looked up by their process. */
static void list_procs(struct asym_step *st)
{
    for (uint32_t i = 0; i < st->s->n_procs; i++) {
        const struct asym_taskid key = {.tid = st->s->procs[i].id.tgid};
        struct asym_proc_entry *entry = asym_table_get(&st->e->procs, &key);
        entry->index = i;
    }
}

static int find_thread_states(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    asym_table_clear(&e->procs);
    if (number_masks(st) < 0 || asym_table_reserve(&e->threads, st->s->n_tasks) < 0 ||
        asym_table_reserve(&e->procs, st->s->n_procs) < 0)
        return -ENOMEM;
    uint32_t hint = 0;
    bool may_inherit = false;
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        struct asym_thread_state *m = asym_table_get_near(&e->threads, &st->s->tasks[i].id, &hint);
        if (m->state == ASYM_AFFINITY_NEW)
            recall_untouchable(e, m);
        m->seen = e->step;
        st->refs[i].thread_state = m;
        if (st->s->tasks[i].flags & ASYM_TASK_EXECUTED)
            asym_thread_state_executed(m, &st->refs[i].seen, &st->c);
        may_inherit = may_inherit || asym_inherited_is_candidate(m, &st->refs[i].seen, e->first_steered);
    }
    if (may_inherit || asym_step_has_unlisted(st))
        list_procs(st);
    return may_inherit ? adopt_inherited(st) : 0;
}

/*
 * The lowest nice value among the runnable threads of the application, without a policy's boost; 0: none is runnable. Any value
 * below background_nice stands for all that are lower.
 */
static int lowest_nice(const struct asym_step *st, const struct asym_app *app)
{
    const int background = (int)st->e->config.classify.background_nice;
    int lowest = INT_MAX;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks && lowest >= background; i++) {
        const struct asym_task_ref *ref = &st->refs[i];
        if (ref->seen.task->runnable > 0)
            lowest = ASYM_MIN(lowest, asym_nice_by_rule(ref->thread_state, ref->seen.proc, st->e->config.keep_nice));
    }
    return lowest < INT_MAX ? lowest : 0;
}

void asym_step_observe_app(struct asym_step *st, size_t a)
{
    const struct asym_snapshot *s = st->s;
    const struct asym_app *app = &s->apps[a];
    const bool has_interval = s->interval != 0 && !s->refreshed;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        struct asym_thread_state *m = st->refs[i].thread_state;
        asym_thread_state_observe(m, &st->refs[i].seen, &st->c);
        if (has_interval)
            asym_duty_add(&m->duty, s->now, s->interval, st->decay, s->tasks[i].running, s->tasks[i].runnable,
                          st->e->config.enforce.exclusive_from);
    }
    asym_classify(&st->classify, s, app, lowest_nice(st, app), st->app_states[a]);
}

static int find_app_states(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    uint32_t hint = 0;
    if (asym_table_reserve(&e->apps, st->s->n_apps) < 0)
        return -ENOMEM;
    for (size_t a = 0; a < st->s->n_apps; a++) {
        st->app_states[a] = asym_table_get_near(&e->apps, &st->s->apps[a].id, &hint);
        st->app_states[a]->seen = e->step;
    }
    for (uint32_t i = 0; i < e->apps.n; i++) {
        struct asym_app_state *state = asym_table_at(&e->apps, i);
        if (state->seen != e->step)
            asym_classify(&st->classify, st->s, NULL, 0, state);
    }
    return 0;
}

int asym_step_observe(struct asym_step *st)
{
    const int r = find_thread_states(st);
    return r < 0 ? r : find_app_states(st);
}

void asym_step_forget(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    /* A short sleep must not cost the policy's state; children of a thread that is gone may have inherited its mask. */
    const asym_usec keep = ASYM_MAX(e->config.enforce.release, 10 * ASYM_SEC);
    for (uint32_t i = asym_step_has_unlisted(st) ? e->threads.n : 0; i-- > 0;) {
        const struct asym_thread_state *m = asym_table_at(&e->threads, i);
        if (m->seen == e->step || m->state == ASYM_AFFINITY_STEERED || st->s->now - m->last_active < keep)
            continue;
        if (m->hands_off == ASYM_WHY_NONE || keep_untouchable(e, m))
            asym_table_remove_at(&e->threads, i);
    }
    for (uint32_t i = e->apps.n; i-- > 0;) {
        const struct asym_app_state *a = asym_table_at(&e->apps, i);
        if (a->seen != e->step && asym_classify_is_blank(&e->config.classify, a, st->s->now))
            asym_table_remove_at(&e->apps, i);
    }
}
