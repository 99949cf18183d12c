/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Targets to masks, and what is in force to what shall be: the actions. */
#include "core/engine-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

static struct asym_mask llc_of(const struct asym_machine *m, const struct asym_cpu *cpu)
{
    struct asym_mask mask = {0};
    ASYM_MASK_FOREACH (c, &m->types[cpu->type].cpus)
        if (m->cpus[c].llc == cpu->llc)
            asym_mask_set(&mask, (unsigned)c);
    return mask;
}

/* The pin set of the CPU asked for last is kept: threads of one application mostly want the same. */
struct pin_cache {
    int32_t cpu;
    struct asym_mask mask;
};

static const struct asym_mask *pin_set(const struct asym_machine *m, enum asym_pin pin, int32_t cpu,
                                       struct pin_cache *cache)
{
    const struct asym_cpu *c = &m->cpus[cpu];
    if (pin == ASYM_PIN_TYPE)
        return &m->types[c->type].cpus;
    if (pin == ASYM_PIN_LLC && cache->cpu >= 0 && m->cpus[cache->cpu].llc == c->llc &&
        m->cpus[cache->cpu].type == c->type)
        return &cache->mask;
    cache->cpu = cpu;
    cache->mask = (struct asym_mask){0};
    if (pin == ASYM_PIN_LLC)
        cache->mask = llc_of(m, c);
    else
        asym_mask_set(&cache->mask, (unsigned)cpu);
    return &cache->mask;
}

/* A claim is exclusive (policies.md, rule 2): claimers share the claimed CPUs of the set, all others keep off them. */
static struct asym_mask narrow(const struct asym_mask *may, const struct asym_mask *set,
                               const struct asym_mask *claimed, bool claim)
{
    struct asym_mask all = asym_mask_and(may, set);
    struct asym_mask part = claim ? asym_mask_and(&all, claimed) : asym_mask_minus(&all, claimed);
    return asym_mask_empty(&part) ? all : part;
}

static int8_t planned_nice(const struct asym_thread_memory *m, const struct asym_task *task)
{
    int own = m->boosted ? m->original_nice : task->nice;
    if (m->nice_foreign || m->assignment.nice_delta == 0)
        return m->nice_foreign ? task->nice : (int8_t)own;
    return (int8_t)ASYM_MAX(-20, ASYM_MIN(19, own + m->assignment.nice_delta));
}

void asym_step_masks(struct asym_step *st)
{
    const struct asym_engine_config *config = &st->e->config;
    const enum asym_pin pin = config->enforce.pin < 0 ? config->policy->pin : (enum asym_pin)config->enforce.pin;
    struct pin_cache cache = {.cpu = -1};
    struct asym_mask claimed = {0};
    for (size_t v = 0; v < st->n_views; v++)
        if (st->tasks[st->view_task[v]].claim)
            asym_mask_set(&claimed, (unsigned)st->tasks[st->view_task[v]].target);
    for (size_t v = 0; v < st->n_views; v++) {
        struct asym_plan_task *out = &st->tasks[st->view_task[v]];
        const struct asym_task *task = &st->s->tasks[st->view_task[v]];
        if (out->target < 0)
            continue;
        out->mask = narrow(st->views[v].may, pin_set(st->s->machine, pin, out->target, &cache), &claimed, out->claim);
        out->nice = planned_nice(asym_memory_of(st, task), task);
        out->moves = out->target != task->cpu;
        st->e->result.n_moves += out->moves;
    }
}

static void push(struct asym_step *st, const struct asym_action *a)
{
    struct asym_action *actions = st->e->actions.items;
    actions[st->e->n_actions++] = *a;
}

static void release(struct asym_step *st, const struct asym_thread_memory *m, enum asym_reason reason,
                    const double *figure)
{
    struct asym_action a = {
        .kind = ASYM_ACTION_RELEASE,
        .id = m->id,
        .expect = m->set,
        .mask = m->original,
        .expect_nice = m->boosted ? m->set_nice : m->original_nice,
        .nice = m->original_nice,
        .whole = m->whole,
        .reason = reason,
    };
    if (figure)
        memcpy(a.figure, figure, sizeof a.figure);
    push(st, &a);
}

/* Idle and new ones keep what they have until the next mapping or until they have been idle for long enough. */
static bool waits(enum asym_reason reason)
{
    return reason == ASYM_WHY_IDLE || reason == ASYM_WHY_NEXT_SWAP;
}

static void diff_task(struct asym_step *st, uint32_t index)
{
    const struct asym_task *task = &st->s->tasks[index];
    const struct asym_plan_task *plan = &st->tasks[index];
    const struct asym_thread_memory *m = asym_memory_of(st, task);
    struct asym_action a = {
        .kind = ASYM_ACTION_STEER,
        .id = task->id,
        .expect = *task->mask,
        .mask = plan->mask,
        .expect_nice = task->nice,
        .nice = plan->nice,
        .reason = plan->reason,
        .figure = {plan->figure[0], plan->figure[1]},
    };
    if (m->heir) {
        a.kind = ASYM_ACTION_REPAIR;
        a.mask = m->original;
        a.nice = m->original_nice;
        a.whole = m->whole;
        push(st, &a);
    } else if (plan->target >= 0) {
        if (!asym_mask_equal(&a.mask, &a.expect) || a.nice != a.expect_nice)
            push(st, &a);
    } else if (m->steered && !waits(plan->reason)) {
        release(st, m, plan->reason, plan->figure);
    }
}

/* Threads that have been idle for long enough get back what they had, whether the snapshot lists them or not. */
static void diff_idle(struct asym_step *st)
{
    const struct asym_engine *e = st->e;
    for (uint32_t i = 0; i < e->threads.n; i++) {
        const struct asym_thread_memory *m = asym_table_at(&e->threads, i);
        bool planned = m->seen == e->step && m->assigned == e->plan && m->last_active == st->s->now;
        if (m->steered && !planned && st->s->now - m->last_active >= e->config.enforce.release)
            release(st, m, ASYM_WHY_IDLE, NULL);
    }
}

int asym_step_actions(struct asym_step *st)
{
    st->e->n_actions = 0;
    size_t most = st->s->n_tasks + st->e->threads.n + 1;
    if (!asym_pool_reserve(&st->e->actions, most, sizeof(struct asym_action)))
        return -ENOMEM;
    for (uint32_t i = 0; i < st->s->n_tasks; i++)
        diff_task(st, i);
    diff_idle(st);
    return 0;
}
