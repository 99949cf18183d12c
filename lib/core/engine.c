/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/engine-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* The policy's state follows the thread state, aligned for any type. */
static size_t memory_size(const struct asym_policy *policy)
{
    _Static_assert(sizeof(struct asym_thread_state) % 16 == 0, "a policy's state follows it");
    return (sizeof(struct asym_thread_state) + policy->task_state_size + 15) & ~(size_t)15;
}

int asym_engine_configure(struct asym_engine *e, const struct asym_engine_config *config)
{
    const struct asym_policy *policy = config->policy;
    const bool same = policy == e->config.policy;
    ASYM_AUTO_FREE void *params = malloc(policy->params_size + 1);
    ASYM_AUTO_FREE void *state = calloc(1, policy->state_size + 1);
    if (!params || !state)
        return -ENOMEM;
    if (!same && asym_table_resize_items(&e->threads, memory_size(policy), sizeof(struct asym_thread_state)) < 0)
        return -ENOMEM;
    if (policy->params_size > 0)
        memcpy(params, config->params, policy->params_size);
    free(e->params);
    e->params = ASYM_TAKE(params);
    if (!same) {
        free(e->policy_state);
        e->policy_state = ASYM_TAKE(state);
        e->flush = true;
        e->last_plan = e->measured = 0;
    }
    e->config = *config;
    e->config.params = e->params;
    e->dirty = true;
    e->again = 0;
    return 0;
}

asym_usec asym_engine_again(const struct asym_engine *e)
{
    const asym_usec passed = e->now - e->last_plan;
    return e->again == 0 ? 0 : ASYM_MAX(e->again, passed + ASYM_MSEC) - passed;
}

int asym_engine_new(const struct asym_engine_config *config, struct asym_engine **ret_engine)
{
    struct asym_engine *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    asym_table_init(&e->threads, memory_size(config->policy));
    asym_table_init(&e->apps, sizeof(struct asym_app_state));
    asym_table_init(&e->untouchables, sizeof(struct asym_untouchable));
    asym_table_init(&e->procs, sizeof(struct asym_proc_entry));
    asym_table_init(&e->nice_groups, sizeof(struct asym_proc_entry));
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
    struct asym_pool *pools[] = {&e->pools.arena,       &e->pools.policy_threads, &e->pools.policy_apps,
                                 &e->pools.policy_refs, &e->pools.assignments,    &e->pools.plan_apps,
                                 &e->pools.plan_tasks,  &e->pools.actions,        &e->pools.action_masks,
                                 &e->pools.refs,        &e->pools.app_states,     &e->pools.llcs,
                                 &e->pools.inherited,   &e->pools.narrowed,       &e->pools.asleep};
    _Static_assert(sizeof pools / sizeof pools[0] == sizeof e->pools / sizeof(struct asym_pool), "all of them");
    for (size_t i = 0; i < ASYM_LENGTH(pools); i++)
        asym_pool_done(pools[i]);
    asym_mask_table_done(&e->masks);
    asym_table_done(&e->threads);
    asym_table_done(&e->apps);
    asym_table_done(&e->untouchables);
    asym_table_done(&e->procs);
    asym_table_done(&e->nice_groups);
    free(e->params);
    free(e->policy_state);
    free(e);
}

static int prepare(struct asym_step *st)
{
    struct asym_pools *p = &st->e->pools;
    const size_t n = st->s->n_tasks, n_apps = st->s->n_apps;
    st->apps = asym_pool_reserve(&p->plan_apps, n_apps, sizeof *st->apps);
    st->tasks = asym_pool_reserve(&p->plan_tasks, n, sizeof *st->tasks);
    st->refs = asym_pool_reserve(&p->refs, n, sizeof *st->refs);
    st->app_states = asym_pool_reserve(&p->app_states, n_apps, sizeof *st->app_states);
    st->policy_threads = asym_pool_reserve(&p->policy_threads, n, sizeof *st->policy_threads);
    st->policy_apps = asym_pool_reserve(&p->policy_apps, n_apps, sizeof *st->policy_apps);
    st->policy_refs = asym_pool_reserve(&p->policy_refs, n, sizeof *st->policy_refs);
    if (!st->apps || !st->tasks || !st->refs || !st->app_states || !st->policy_threads || !st->policy_apps ||
        !st->policy_refs)
        return -ENOMEM;
    st->c = (struct asym_circumstances){
        .now = st->s->now,
        .machine = st->s->machine,
        .masks = &st->e->masks,
        .settings = &st->e->config.enforce,
    };
    st->classify = st->e->config.classify;
    st->classify.hp_threshold = asym_hp_threshold(&st->classify, st->s->machine);
    st->decay = asym_duty_decay(st->s->interval);
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
    if (r >= 0)
        r = asym_step_policy_input(&st);
    if (r >= 0)
        r = asym_step_plan(&st);
    if (r >= 0)
        r = asym_step_masks(&st);
    if (r >= 0)
        asym_step_idle_placement(&st);
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

static void take_done(struct asym_engine *e, struct asym_thread_state *m, const struct asym_action *a, uint32_t mask)
{
    switch (a->kind) {
    case ASYM_ACTION_STEER:
        asym_thread_state_steered(m, mask, a->nice, e->now);
        m->given = m->assignment.cpu;
        if (e->first_steered == 0)
            e->first_steered = e->now;
        break;
    case ASYM_ACTION_RELEASE:
        asym_thread_state_released(m);
        break;
    case ASYM_ACTION_REPAIR:
        m->state = ASYM_AFFINITY_OWN;
        break;
    case ASYM_ACTION_FORGET:
        m->state = ASYM_AFFINITY_OWN;
        m->boosted = false;
        break;
    }
}

static void take_outcome(struct asym_engine *e, size_t i, const struct asym_outcome *outcome)
{
    const struct asym_action *a = (const struct asym_action *)e->pools.actions.items + i;
    const uint32_t *masks = e->pools.action_masks.items;
    struct asym_thread_state *m = asym_table_find(&e->threads, &a->id);
    if (!m)
        return;
    switch (outcome->kind) {
    case ASYM_OUTCOME_DONE:
        take_done(e, m, a, masks[i]);
        break;
    case ASYM_OUTCOME_RETRY:
        break;
    case ASYM_OUTCOME_GONE:
        asym_thread_state_ended(m);
        break;
    case ASYM_OUTCOME_HANDS_OFF:
        m->state = ASYM_AFFINITY_OWN;
        m->boosted = false;
        m->hands_off = asym_why_hands_off(outcome->error);
        m->hands_off_at = e->now;
        m->hands_off_error = -outcome->error;
        break;
    }
}

void asym_engine_outcomes(struct asym_engine *e, const struct asym_outcome *outcomes, size_t n)
{
    for (size_t i = 0; i < n && i < e->n_actions; i++)
        take_outcome(e, i, &outcomes[i]);
    e->n_actions = 0;
}
