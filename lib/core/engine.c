/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/engine-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* A thread that asymd shall leave alone is remembered for as long as this without having run; its number is then free. */
#define HANDS_OFF_KEPT (3600 * ASYM_SEC)

void *asym_pool_reserve(struct asym_pool *pool, size_t n, size_t size)
{
    if (n <= pool->capacity)
        return pool->items;
    size_t capacity = ASYM_MAX(n, pool->capacity + pool->capacity / 2);
    void *items = reallocarray(NULL, capacity, size);
    if (!items)
        return NULL;
    free(pool->items);
    pool->items = items;
    pool->capacity = capacity;
    return items;
}

void *asym_memory_state(const struct asym_engine *e, struct asym_thread_memory *m)
{
    return e->config.policy->task_state_size ? (void *)(m + 1) : NULL;
}

struct asym_thread_memory *asym_memory_of(const struct asym_step *st, const struct asym_task *task)
{
    return asym_table_find(&st->e->threads, &task->id);
}

/* The state behind a memory must be aligned for anything a policy may put there. */
static size_t memory_size(const struct asym_policy *policy)
{
    return (sizeof(struct asym_thread_memory) + policy->task_state_size + 15) & ~(size_t)15;
}

int asym_engine_configure(struct asym_engine *e, const struct asym_engine_config *config)
{
    const struct asym_policy *policy = config->policy;
    bool same = policy == e->config.policy;
    ASYM_AUTO_FREE void *params = malloc(policy->params_size + 1);
    ASYM_AUTO_FREE void *state = calloc(1, policy->state_size + 1);
    if (!params || !state)
        return -ENOMEM;
    if (!same && asym_table_resize_items(&e->threads, memory_size(policy), sizeof(struct asym_thread_memory)) < 0)
        return -ENOMEM;
    if (policy->params_size > 0)
        memcpy(params, config->params, policy->params_size);
    free(e->params);
    e->params = ASYM_TAKE(params);
    if (!same) {
        free(e->policy_state);
        e->policy_state = ASYM_TAKE(state);
    }
    e->config = *config;
    e->config.params = e->params;
    e->dirty = true;
    return 0;
}

int asym_engine_new(const struct asym_engine_config *config, struct asym_engine **ret_engine)
{
    struct asym_engine *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    asym_table_init(&e->threads, memory_size(config->policy));
    asym_table_init(&e->apps, sizeof(struct asym_app_memory));
    int r = asym_engine_configure(e, config);
    if (r < 0) {
        asym_engine_free(e);
        return r;
    }
    *ret_engine = e;
    return 0;
}

void asym_engine_free(struct asym_engine *e)
{
    if (!e)
        return;
    struct asym_pool *pools[] = {&e->arena,     &e->views,      &e->view_apps, &e->view_memory, &e->assignments,
                                 &e->plan_apps, &e->plan_tasks, &e->actions,   &e->may,         &e->slots};
    for (size_t i = 0; i < ASYM_LENGTH(pools); i++)
        free(pools[i]->items);
    asym_table_done(&e->threads);
    asym_table_done(&e->apps);
    free(e->params);
    free(e->policy_state);
    free(e);
}

/*
 * A thread seen for the first time that carries exactly the mask which was set for a thread of its process, or of the
 * process that created its own, has inherited it. Also after a release: the mask may have been inherited just before.
 */
static const struct asym_thread_memory *find_creator(const struct asym_engine *e, const struct asym_task *task,
                                                     const struct asym_proc *proc)
{
    for (uint32_t i = 0; i < e->threads.n; i++) {
        const struct asym_thread_memory *m = asym_table_at(&e->threads, i);
        if (m->ever_steered && m->id.tid != task->id.tid && (m->id.tgid == task->id.tgid || m->id.tgid == proc->ppid) &&
            asym_mask_equal(&m->set, task->mask) && !asym_mask_equal(&m->original, &m->set))
            return m;
    }
    return NULL;
}

static void adopt_heir(const struct asym_engine *e, struct asym_thread_memory *m, const struct asym_task *task,
                       const struct asym_proc *proc)
{
    if (asym_mask_within(task->cpuset, task->mask))
        return;
    const struct asym_thread_memory *creator = find_creator(e, task, proc);
    if (!creator)
        return;
    m->heir = true;
    m->set = creator->set;
    m->original = creator->original;
    m->original_nice = creator->original_nice;
    m->whole = creator->whole;
}

static int observe(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        const struct asym_task *task = &st->s->tasks[i];
        const struct asym_proc *proc = &st->s->procs[task->proc];
        struct asym_thread_memory *m = asym_table_get(&e->threads, &task->id);
        if (!m)
            return -ENOMEM;
        m->seen = e->step;
        if (!m->known)
            adopt_heir(e, m, task, proc);
        asym_memory_observe(m, task, proc, st->s, &e->config.enforce);
    }
    for (size_t a = 0; a < st->s->n_apps; a++) {
        struct asym_app_memory *memory = asym_table_get(&e->apps, &st->s->apps[a].id);
        if (!memory)
            return -ENOMEM;
        memory->seen = e->step;
        asym_classify(&e->config.classify, st->s, &st->s->apps[a], memory);
    }
    return 0;
}

static bool forgettable(const struct asym_engine *e, const struct asym_thread_memory *m, asym_usec now)
{
    asym_usec idle = now - m->last_active;
    if (m->seen == e->step || m->steered)
        return false;
    if (m->hands_off != ASYM_WHY_NONE)
        return idle >= HANDS_OFF_KEPT;
    return idle >= e->config.enforce.release + (m->ever_steered ? e->config.enforce.fork_holdoff : 0);
}

static void forget(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    for (uint32_t i = e->threads.n; i-- > 0;)
        if (forgettable(e, asym_table_at(&e->threads, i), st->s->now))
            asym_table_remove_at(&e->threads, i);
    /* An application that was not listed had no active thread: it is idle, but may come back from it. */
    for (uint32_t i = e->apps.n; i-- > 0;) {
        const struct asym_app_memory *a = asym_table_at(&e->apps, i);
        if (e->step - a->seen > 600)
            asym_table_remove_at(&e->apps, i);
    }
}

static int prepare(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    size_t n = st->s->n_tasks + 1;
    uint32_t n_slots = 64;
    while (n_slots < 2 * n)
        n_slots *= 2;
    st->apps = asym_pool_reserve(&e->plan_apps, st->s->n_apps + 1, sizeof *st->apps);
    st->tasks = asym_pool_reserve(&e->plan_tasks, n, sizeof *st->tasks);
    st->views = asym_pool_reserve(&e->views, n, sizeof *st->views);
    st->view_apps = asym_pool_reserve(&e->view_apps, st->s->n_apps + 1, sizeof *st->view_apps);
    st->view_task = asym_pool_reserve(&e->view_memory, n, sizeof *st->view_task);
    st->masks.masks = asym_pool_reserve(&e->may, n, sizeof *st->masks.masks);
    st->masks.slots = asym_pool_reserve(&e->slots, n_slots, sizeof *st->masks.slots);
    st->masks.n_slots = n_slots;
    if (!st->apps || !st->tasks || !st->views || !st->view_apps || !st->view_task || !st->masks.masks ||
        !st->masks.slots)
        return -ENOMEM;
    memset(st->masks.slots, 0, n_slots * sizeof *st->masks.slots);
    return 0;
}

int asym_engine_step(struct asym_engine *e, const struct asym_snapshot *s, const struct asym_plan **ret_plan,
                     const struct asym_action **ret_actions, size_t *ret_n)
{
    struct asym_step st = {.e = e, .s = s};
    int r = prepare(&st);
    if (r < 0)
        return r;
    e->step++;
    e->result = (struct asym_plan){.apps = st.apps, .tasks = st.tasks, .n_apps = s->n_apps, .n_tasks = s->n_tasks};
    r = observe(&st);
    if (r >= 0)
        r = asym_step_views(&st);
    if (r >= 0)
        r = asym_step_plan(&st);
    if (r < 0)
        return r;
    asym_step_masks(&st);
    r = asym_step_actions(&st);
    if (r < 0)
        return r;
    forget(&st);
    *ret_plan = &e->result;
    *ret_actions = e->actions.items;
    *ret_n = e->n_actions;
    return 0;
}

static void take_done(struct asym_thread_memory *m, const struct asym_action *a)
{
    switch (a->kind) {
    case ASYM_ACTION_STEER:
        m->steered = m->ever_steered = true;
        m->set = a->mask;
        m->set_nice = a->nice;
        m->boosted = !m->nice_foreign && a->nice != m->original_nice;
        break;
    case ASYM_ACTION_RELEASE:
        m->steered = m->boosted = false;
        break;
    case ASYM_ACTION_REPAIR:
        m->heir = false;
        break;
    }
}

void asym_engine_outcomes(struct asym_engine *e, const struct asym_outcome *outcomes, size_t n)
{
    const struct asym_action *actions = e->actions.items;
    for (size_t i = 0; i < n && i < e->n_actions; i++) {
        struct asym_thread_memory *m = asym_table_find(&e->threads, &actions[i].id);
        if (!m)
            continue;
        switch (outcomes[i].verdict) {
        case ASYM_VERDICT_DONE:
            take_done(m, &actions[i]);
            break;
        case ASYM_VERDICT_RETRY:
            break;
        case ASYM_VERDICT_GONE:
            m->steered = m->heir = false;
            m->hands_off = ASYM_WHY_NONE;
            m->last_active = 0;
            break;
        case ASYM_VERDICT_HANDS_OFF:
            m->steered = m->boosted = m->heir = false;
            m->hands_off = outcomes[i].error == -EBUSY ? ASYM_WHY_FOREIGN : ASYM_WHY_DENIED;
            m->hands_off_error = -outcomes[i].error;
            break;
        }
    }
    e->n_actions = 0;
}
