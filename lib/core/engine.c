/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "core/engine-internal.h"

/* Compare the masks in force with the plan, and push the actions that make up the difference. */

static const struct asym_mask *mask_at(const struct asym_step *st, uint32_t id)
{
    return asym_mask_table_at(&st->e->masks, id);
}

/* mask: number of the mask that is in force once the action is done. The action itself holds the whole mask. */
static void push(struct asym_step *st, const struct asym_action *a, uint32_t mask)
{
    struct asym_action *actions = st->e->pools.actions.items;
    uint32_t *masks = st->e->pools.action_masks.items;
    masks[st->e->n_actions] = mask;
    actions[st->e->n_actions++] = *a;
}

/* A thread that had its whole cpuset gets the whole cpuset back, grown or not. */
static uint32_t due_back(const struct asym_step *st, const struct asym_thread_state *m)
{
    if (m->extent == ASYM_ORIGINAL_CPUSET && m->cpuset != m->original &&
        !asym_mask_within(mask_at(st, m->cpuset), mask_at(st, m->original)))
        return m->cpuset;
    return m->original;
}

/* A release or a repair: the thread gets its own mask and nice value. */
static void restore(struct asym_step *st, const struct asym_thread_state *m, enum asym_action_kind kind,
                    const struct asym_reason *reason, const double figure[2])
{
    const uint32_t mask = kind == ASYM_ACTION_RELEASE ? due_back(st, m) : m->original;
    const struct asym_action a = {
        .kind = kind,
        .id = m->id,
        .expect = *mask_at(st, m->set),
        .mask = *mask_at(st, mask),
        .expect_nice = m->set_nice,
        .nice = m->original_nice,
        .full_cpuset = m->extent == ASYM_ORIGINAL_CPUSET,
        .reason = reason,
        .figure = {figure[0], figure[1]},
    };
    push(st, &a, mask);
}

/*
 * Another program set the mask, so it stays. asymd takes back a boost that is still in force. Without a reason to leave the thread
 * alone, it has its number since it called exec, and asymd has set nothing on it.
 */
static void forget(struct asym_step *st, const struct asym_task_ref *ref, const struct asym_plan_task *plan)
{
    const struct asym_thread_state *m = ref->thread_state;
    const struct asym_action a = {
        .kind = ASYM_ACTION_FORGET,
        .id = m->id,
        .expect = *ref->seen.task->mask,
        .mask = *ref->seen.task->mask,
        .expect_nice = m->set_nice,
        .nice = m->original_nice,
        .reason = m->hands_off != ASYM_WHY_NONE ? plan->reason : NULL,
    };
    push(st, &a, ref->seen.mask);
}

/* A mask often holds CPUs that are offline or outside the cpuset: the comparison leaves them out. */
static bool has_already(const struct asym_step *st, const struct asym_task_ref *ref, const struct asym_plan_task *plan)
{
    if (plan->nice != ref->seen.task->nice)
        return false;
    if (ref->plan_mask == ref->seen.mask)
        return true;
    if (ref->thread_state->state == ASYM_AFFINITY_STEERED)
        return false;
    struct asym_mask real = asym_mask_and(ref->seen.task->mask, ref->seen.task->cpuset);
    real = asym_mask_and(&real, &st->s->machine->usable);
    return asym_mask_equal(plan->mask, &real);
}

static void steer(struct asym_step *st, const struct asym_task_ref *ref, const struct asym_plan_task *plan)
{
    struct asym_thread_state *m = ref->thread_state;
    if (has_already(st, ref, plan)) {
        m->given = plan->target;
        if (m->state != ASYM_AFFINITY_STEERED)
            m->state = ASYM_AFFINITY_FITS;
        return;
    }
    if (m->state == ASYM_AFFINITY_FITS)
        m->state = ASYM_AFFINITY_OWN;
    m->cpuset = ref->seen.cpuset;
    const struct asym_action a = {
        .kind = ASYM_ACTION_STEER,
        .id = m->id,
        .transit_cpu = ref->transit_cpu,
        .expect = *ref->seen.task->mask,
        .mask = *plan->mask,
        .expect_nice = ref->seen.task->nice,
        .nice = plan->nice,
        .reason = plan->reason,
        .figure = {plan->figure[0], plan->figure[1]},
    };
    push(st, &a, ref->plan_mask);
}

static bool idle_for_long(const struct asym_step *st, const struct asym_thread_state *m,
                          const struct asym_app_state *app)
{
    const asym_usec release = st->e->config.enforce.release, now = st->s->now;
    return st->e->flush || now - m->last_active >= release ||
           (app && app->phase.value == ASYM_PHASE_IDLE && now - app->phase.since >= release);
}

/* The plan gives the thread no CPU. */
static void diff_unplaced(struct asym_step *st, struct asym_thread_state *m, struct asym_plan_task *plan,
                          const struct asym_app_state *app)
{
    const bool idle = plan->reason == asym_why(ASYM_WHY_IDLE);
    const bool waits = idle || plan->reason == asym_why(ASYM_WHY_NEXT_SWAP);
    if (m->state == ASYM_AFFINITY_STEERED && waits && !(idle && idle_for_long(st, m, app))) {
        /* The mask stays in force for now, and the plan shows it. */
        plan->target = m->given;
        plan->mask = mask_at(st, m->set);
    } else if (m->state == ASYM_AFFINITY_STEERED) {
        restore(st, m, ASYM_ACTION_RELEASE, plan->reason, plan->figure);
    } else if (!waits) {
        m->state = ASYM_AFFINITY_OWN; /* asymd has set nothing on it, and its last assignment no longer holds */
    }
}

static void diff_task(struct asym_step *st, uint32_t index, const struct asym_app_state *app)
{
    struct asym_plan_task *plan = &st->tasks[index];
    const struct asym_task_ref *ref = &st->refs[index];
    struct asym_thread_state *m = ref->thread_state;
    if (plan->target < 0) /* else asym_step_masks has set it */
        plan->mask = mask_at(st, m->original);
    if (m->state == ASYM_AFFINITY_LOST) {
        forget(st, ref, plan);
    } else if (m->state == ASYM_AFFINITY_INHERITED) {
        restore(st, m, ASYM_ACTION_REPAIR, plan->reason, plan->figure);
    } else if (plan->target >= 0) {
        steer(st, ref, plan);
    } else {
        diff_unplaced(st, m, plan, app);
    }
}

static bool is_ignored_by_user(const struct asym_snapshot *s, int32_t tgid)
{
    const size_t i = ASYM_LOWER_BOUND(s->ignored, s->n_ignored, tgid, tgid);
    return i < s->n_ignored && s->ignored[i].tgid == tgid;
}

/* Returns the reason why asymd no longer steers a thread that the snapshot does not list; NONE: it still does. */
static enum asym_exclusion unlisted(const struct asym_step *st, const struct asym_thread_state *m, double figure[2])
{
    const struct asym_engine *e = st->e;
    const struct asym_taskid key = {.tid = m->id.tgid};
    const struct asym_proc_entry *proc = asym_table_find(&e->procs, &key);
    enum asym_exclusion reason = ASYM_WHY_NONE;
    if (proc)
        reason = asym_eligible_proc(&st->s->procs[proc->index], st->s->now, &e->config.enforce, figure);
    if (reason == ASYM_WHY_NONE && is_ignored_by_user(st->s, m->id.tgid))
        reason = ASYM_WHY_RULE_IGNORE;
    if (reason == ASYM_WHY_NONE && st->s->paused)
        reason = ASYM_WHY_PAUSED;
    return reason == ASYM_WHY_NONE && idle_for_long(st, m, NULL) ? ASYM_WHY_IDLE : reason;
}

/* Steered threads that the snapshot does not list sleep or are gone. */
static void diff_unlisted(struct asym_step *st)
{
    const struct asym_engine *e = st->e;
    for (uint32_t i = 0; i < e->threads.n && asym_step_has_unlisted(st); i++) {
        const struct asym_thread_state *m = asym_table_at(&e->threads, i);
        if (m->state != ASYM_AFFINITY_STEERED || m->seen == e->step)
            continue;
        double figure[2] = {0, 0};
        const enum asym_exclusion reason = unlisted(st, m, figure);
        if (reason != ASYM_WHY_NONE)
            restore(st, m, ASYM_ACTION_RELEASE, asym_why(reason), figure);
    }
}

/* Each listed thread has at most one action, and so has each steered thread that is not listed. */
static size_t most_actions(const struct asym_step *st)
{
    size_t n = st->s->n_tasks;
    for (uint32_t i = 0; i < st->e->threads.n && asym_step_has_unlisted(st); i++) {
        const struct asym_thread_state *m = asym_table_at(&st->e->threads, i);
        n += m->state == ASYM_AFFINITY_STEERED && m->seen != st->e->step;
    }
    return n;
}

/*
 * Threads that must leave their CPU come before the threads that get one to themselves. The kernel finishes a migration before
 * sched_setaffinity(2) returns. In the other order the thread of a serial phase leaves its CPU for one that is still busy: it
 * waited 40 ms of a slow guest's clock until the call for the other thread had moved that away.
 */
enum { LEAVES, ENTERS, OTHER, N_ORDERS };

/* Where no thread leaves its CPU, no thread waits for that. */
static unsigned order_of(const struct asym_step *st, const struct asym_plan_task *plan)
{
    if (st->e->result.n_moves == 0)
        return OTHER;
    if (plan->exclusive)
        return ENTERS;
    return plan->moves ? LEAVES : OTHER;
}

static void diff_listed(struct asym_step *st, unsigned order)
{
    for (size_t a = 0; a < st->s->n_apps; a++) {
        const struct asym_app *app = &st->s->apps[a];
        for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++)
            if (order_of(st, &st->tasks[i]) == order)
                diff_task(st, i, st->app_states[a]);
    }
}

static int make_actions(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    const size_t most = most_actions(st);
    if (!asym_pool_reserve(&e->pools.actions, most, sizeof(struct asym_action)) ||
        !asym_pool_reserve(&e->pools.action_masks, most, sizeof(uint32_t)))
        return -ENOMEM;
    for (unsigned order = e->result.n_moves > 0 ? LEAVES : OTHER; order < N_ORDERS; order++)
        diff_listed(st, order);
    diff_unlisted(st);
    e->flush = false;
    return 0;
}

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
    for (size_t i = 0; i < ASYM_LENGTH(e->pools.all); i++)
        asym_pool_done(&e->pools.all[i]);
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
    union asym_pools *p = &st->e->pools;
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
        r = make_actions(&st);
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
