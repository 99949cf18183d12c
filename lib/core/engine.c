/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/engine-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

void *asym_pool_reserve(struct asym_pool *pool, size_t n, size_t size)
{
    if (n < pool->capacity || (n == pool->capacity && n > 0))
        return pool->items;
    size_t capacity = ASYM_MAX(n + 1, pool->capacity + pool->capacity / 2), bytes;
    if (__builtin_mul_overflow(capacity, size, &bytes))
        return NULL;
    void *items = malloc(bytes);
    if (!items)
        return NULL;
    free(pool->items);
    pool->items = items;
    pool->capacity = capacity;
    return items;
}

/* The state behind a memory must be aligned for anything a policy may put there. */
static size_t memory_size(const struct asym_policy *policy)
{
    _Static_assert(sizeof(struct asym_thread_memory) % 16 == 0, "a policy's state follows it");
    return (sizeof(struct asym_thread_memory) + policy->task_state_size + 15) & ~(size_t)15;
}

int asym_engine_configure(struct asym_engine *e, const struct asym_engine_config *config)
{
    const struct asym_policy *policy = config->policy;
    const bool same = policy == e->config.policy;
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
        e->flush = true;
        e->last_plan = 0;
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
    asym_table_init(&e->untouchables, sizeof(struct asym_untouchable));
    asym_table_init(&e->procs, sizeof(struct asym_proc_entry));
    asym_heirs_init(&e->heirs);
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
    struct asym_pools *p = &e->pools;
    struct asym_pool *const pools[] = {&p->arena,       &p->views,     &p->view_apps,  &p->view_task,
                                       &p->assignments, &p->plan_apps, &p->plan_tasks, &p->actions,
                                       &p->may,         &p->slots,     &p->memory,     &p->llcs};
    _Static_assert(sizeof pools / sizeof pools[0] == sizeof *p / sizeof(struct asym_pool), "all of them");
    for (size_t i = 0; i < ASYM_LENGTH(pools); i++)
        free(pools[i]->items);
    asym_table_done(&e->threads);
    asym_table_done(&e->apps);
    asym_table_done(&e->untouchables);
    asym_table_done(&e->procs);
    asym_heirs_done(&e->heirs);
    free(e->params);
    free(e->policy_state);
    free(e);
}

static int prepare(struct asym_step *st)
{
    struct asym_pools *p = &st->e->pools;
    const size_t n = st->s->n_tasks, n_apps = st->s->n_apps;
    uint32_t n_slots = 64;
    while (n_slots < 2 * n)
        n_slots *= 2;
    st->apps = asym_pool_reserve(&p->plan_apps, n_apps, sizeof *st->apps);
    st->tasks = asym_pool_reserve(&p->plan_tasks, n, sizeof *st->tasks);
    st->memory = asym_pool_reserve(&p->memory, n, sizeof(struct asym_thread_memory *));
    st->views = asym_pool_reserve(&p->views, n, sizeof *st->views);
    st->view_apps = asym_pool_reserve(&p->view_apps, n_apps, sizeof *st->view_apps);
    st->view_task = asym_pool_reserve(&p->view_task, n, sizeof *st->view_task);
    st->masks.masks = asym_pool_reserve(&p->may, n, sizeof *st->masks.masks);
    st->masks.slots = asym_pool_reserve(&p->slots, n_slots, sizeof *st->masks.slots);
    st->masks.n_slots = n_slots;
    if (!st->apps || !st->tasks || !st->memory || !st->views || !st->view_apps || !st->view_task || !st->masks.masks ||
        !st->masks.slots)
        return -ENOMEM;
    memset(st->masks.slots, 0, n_slots * sizeof *st->masks.slots);
    return 0;
}

int asym_engine_step(struct asym_engine *e, const struct asym_snapshot *s, const struct asym_plan **ret_plan,
                     const struct asym_action **ret_actions, size_t *ret_n)
{
    struct asym_step st = {.e = e, .s = s};
    e->n_actions = 0;
    int r = prepare(&st);
    if (r < 0)
        return r;
    e->step++;
    e->now = s->now;
    e->result = (struct asym_plan){.apps = st.apps, .tasks = st.tasks, .n_apps = s->n_apps, .n_tasks = s->n_tasks};
    r = asym_step_observe(&st);
    if (r < 0)
        return r;
    asym_step_views(&st);
    r = asym_step_plan(&st);
    if (r >= 0)
        r = asym_step_masks(&st);
    if (r >= 0)
        r = asym_step_actions(&st);
    if (r < 0)
        return r;
    asym_step_forget(&st);
    *ret_plan = &e->result;
    *ret_actions = e->pools.actions.items;
    *ret_n = e->n_actions;
    return 0;
}

static void take_done(struct asym_engine *e, struct asym_thread_memory *m, const struct asym_action *a)
{
    switch (a->kind) {
    case ASYM_ACTION_STEER:
        m->steered = true;
        m->set = m->asked = a->mask;
        m->set_nice = a->nice;
        m->boosted = a->nice != m->original_nice;
        m->given = m->assignment.cpu;
        asym_heirs_note(&e->heirs, m, e->now);
        break;
    case ASYM_ACTION_RELEASE:
        m->steered = m->boosted = false;
        break;
    case ASYM_ACTION_REPAIR:
        m->heir = m->narrow = false;
        break;
    }
}

static void take_outcome(struct asym_engine *e, const struct asym_action *a, const struct asym_outcome *outcome)
{
    struct asym_thread_memory *m = asym_table_find(&e->threads, &a->id);
    if (!m)
        return;
    switch (outcome->verdict) {
    case ASYM_VERDICT_DONE:
        take_done(e, m, a);
        break;
    case ASYM_VERDICT_RETRY:
        break;
    case ASYM_VERDICT_GONE:
        asym_table_remove(&e->threads, &a->id);
        break;
    case ASYM_VERDICT_HANDS_OFF:
        m->steered = m->boosted = m->heir = m->fits = false;
        m->hands_off = outcome->error == -EBUSY ? ASYM_WHY_FOREIGN : ASYM_WHY_DENIED;
        m->hands_off_error = -outcome->error;
        break;
    }
}

void asym_engine_outcomes(struct asym_engine *e, const struct asym_outcome *outcomes, size_t n)
{
    const struct asym_action *actions = e->pools.actions.items;
    for (size_t i = 0; i < n && i < e->n_actions; i++)
        take_outcome(e, &actions[i], &outcomes[i]);
    e->n_actions = 0;
}
