/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/classify.h"

#include <limits.h>
#include <math.h>

#include "base/mask.h"

unsigned asym_hp_threshold(const struct asym_classify_settings *c, const struct asym_machine *m)
{
    if (c->hp_threshold != UINT_MAX)
        return c->hp_threshold;
    const struct asym_mask fast = asym_machine_ordinary_fast(m), cores = asym_machine_cores(m, &fast);
    return asym_mask_count(&cores) + 1;
}

double asym_classify_runnable(const struct asym_classify_settings *c, const struct asym_app *app)
{
    return c->estimator == ASYM_ESTIMATOR_INSTANT ? app->runnable_instant : app->runnable_mean;
}

static unsigned whole_threads(double runnable)
{
    if (!(runnable >= 0.5))
        return 0;
    return runnable < UINT_MAX / 2 ? (unsigned)(runnable + 0.5) : UINT_MAX / 2;
}

static void hold(struct asym_held *h, unsigned seen, unsigned hysteresis, asym_usec now)
{
    if (seen == h->value) {
        h->count = 0;
        return;
    }
    h->count = seen == h->next ? h->count + 1 : 1;
    h->next = seen;
    if (h->count < hysteresis)
        return;
    *h = (struct asym_held){.value = seen, .next = seen, .since = now};
}

/* A thread that is known to run alone is it. On a tie the thread keep stays the busiest. */
static const struct asym_task *busiest(const struct asym_snapshot *s, const struct asym_app *app, int32_t keep)
{
    const struct asym_task *best = NULL;
    for (uint32_t i = 0; i < app->n_tasks; i++) {
        const struct asym_task *t = &s->tasks[app->first_task + i];
        if (t->flags & ASYM_TASK_SPINNING)
            continue;
        if (t->flags & ASYM_TASK_ALONE)
            return t;
        if (!best || t->runnable > best->runnable || (t->id.tid == keep && t->runnable >= best->runnable))
            best = t;
    }
    return best;
}

static const struct asym_task *master_of(const struct asym_snapshot *s, const struct asym_app *app)
{
    for (uint32_t i = 0; app && i < app->n_tasks; i++)
        if ((s->tasks[app->first_task + i].flags & (ASYM_TASK_MASTER | ASYM_TASK_SPINNING)) == ASYM_TASK_MASTER)
            return &s->tasks[app->first_task + i];
    return NULL;
}

/* True when the program itself reports a serial phase (RTX). */
static bool has_reported_serial_phase(const struct asym_classify_settings *c, struct asym_app_state *m,
                                      const struct asym_snapshot *s, const struct asym_app *app)
{
    const struct asym_task *master = master_of(s, app);
    if (!master) {
        if (m->reported)
            m->reported = m->boosting = false;
        return false;
    }
    if (!m->reported || !asym_taskid_equal(&m->sp, &master->id)) {
        m->reported = m->boosting = true;
        m->was_many = false;
        m->sp = master->id;
        m->sp_since = s->now;
    }
    if (s->now - m->sp_since >= c->amp_boost)
        m->boosting = false;
    return true;
}

static void boost(const struct asym_classify_settings *c, struct asym_app_state *m, const struct asym_snapshot *s,
                  const struct asym_app *app)
{
    if (has_reported_serial_phase(c, m, s, app))
        return;
    if (m->class_by == ASYM_CLASS_BY_NICE) {
        m->was_many = m->boosting = false;
    } else if (m->thread_count.value == ASYM_THREAD_COUNT_MANY) {
        m->was_many = true;
        m->boosting = false;
    } else if (m->thread_count.value == ASYM_THREAD_COUNT_ONE && m->was_many) {
        m->was_many = false;
        m->boosting = true;
        m->sp_since = s->now;
    } else if (m->thread_count.value == ASYM_THREAD_COUNT_NONE && s->now - m->thread_count.since > c->amp_boost) {
        m->was_many = false;
    }
    if (m->boosting && s->now - m->sp_since >= c->amp_boost)
        m->boosting = false;
    if (m->boosting && m->thread_count.value == ASYM_THREAD_COUNT_ONE && app) {
        const struct asym_task *t = busiest(s, app, m->sp.tid);
        if (t)
            m->sp = t->id;
    }
    if (!m->boosting)
        m->sp = (struct asym_taskid){0};
}

/*
 * The class that rules give the application. If its processes that ran have different classes by rules, it is parallel: a linker
 * may count as serial, but not while compilers of the same build run.
 */
static enum asym_rule_class class_by_rule(const struct asym_snapshot *s, const struct asym_app *app)
{
    enum asym_rule_class class = ASYM_RULE_CLASS_AUTO;
    for (uint32_t i = 0; i < app->n_tasks && class != ASYM_RULE_CLASS_PARALLEL; i++) {
        const struct asym_rule_facts *facts = s->procs[s->tasks[app->first_task + i].proc].rule_facts;
        if (facts && facts->policy_class != ASYM_RULE_CLASS_AUTO)
            class = facts->policy_class;
    }
    return class;
}

void asym_classify(const struct asym_classify_settings *c, const struct asym_snapshot *s, const struct asym_app *app,
                   int nice, struct asym_app_state *state)
{
    const double runnable = app ? asym_classify_runnable(c, app) : 0;
    unsigned n = whole_threads(runnable);
    enum asym_phase phase = ASYM_PHASE_IDLE;
    enum asym_class class = ASYM_CLASS_NONE;
    enum asym_thread_count thread_count = ASYM_THREAD_COUNT_NONE;
    enum asym_rule_class by_rule = ASYM_RULE_CLASS_AUTO;
    state->class_by = ASYM_CLASS_BY_COUNT;
    if (n == 0 && state->phase.value != ASYM_PHASE_IDLE && runnable >= ASYM_IDLE_BELOW)
        n = 1;
    if (n > 0) {
        phase = n > c->serial_max_threads ? ASYM_PHASE_PARALLEL : ASYM_PHASE_SERIAL;
        class = n > asym_hp_threshold(c, s->machine) ? ASYM_CLASS_HP : ASYM_CLASS_MP;
        thread_count = n > 1 ? ASYM_THREAD_COUNT_MANY : ASYM_THREAD_COUNT_ONE;
        by_rule = class_by_rule(s, app);
    }
    if (by_rule != ASYM_RULE_CLASS_AUTO)
        state->class_by = ASYM_CLASS_BY_RULE;
    else if (n > 0 && c->background_nice > 0 && nice >= (int)c->background_nice)
        state->class_by = ASYM_CLASS_BY_NICE;
    if (by_rule == ASYM_RULE_CLASS_SERIAL) {
        phase = ASYM_PHASE_SERIAL;
        class = ASYM_CLASS_MP;
    } else if (by_rule == ASYM_RULE_CLASS_PARALLEL || state->class_by == ASYM_CLASS_BY_NICE) {
        phase = ASYM_PHASE_PARALLEL;
        class = ASYM_CLASS_HP;
    }
    if (by_rule == ASYM_RULE_CLASS_PARALLEL)
        thread_count = ASYM_THREAD_COUNT_MANY;
    hold(&state->phase, phase, c->hysteresis, s->now);
    hold(&state->class, class, c->hysteresis, s->now);
    hold(&state->thread_count, thread_count, c->hysteresis, s->now);
    boost(c, state, s, app);
}

bool asym_classify_is_blank(const struct asym_classify_settings *c, const struct asym_app_state *state, asym_usec now)
{
    return state->phase.value == ASYM_PHASE_IDLE && state->class.value == ASYM_CLASS_NONE &&
           state->thread_count.value == ASYM_THREAD_COUNT_NONE && !state->boosting &&
           now - state->thread_count.since > c->amp_boost;
}

enum asym_class asym_classify_thread(const struct asym_app_state *state, const struct asym_taskid *id,
                                     asym_usec *ret_since)
{
    if (!state->boosting || (!state->reported && state->thread_count.value != ASYM_THREAD_COUNT_ONE) ||
        !asym_taskid_equal(&state->sp, id))
        return (enum asym_class)state->class.value;
    *ret_since = state->sp_since;
    return ASYM_CLASS_SP;
}

const char *asym_classify_word(const struct asym_plan_app *app, bool has_sp)
{
    if (app->phase == ASYM_PHASE_IDLE || app->runnable < ASYM_IDLE_BELOW)
        return "idle";
    if (has_sp)
        return "serial phase";
    if (app->class == ASYM_CLASS_HP)
        return app->class_by == ASYM_CLASS_BY_NICE ? "background" : "highly parallel";
    if (app->phase != ASYM_PHASE_PARALLEL)
        return "serial";
    return app->class == ASYM_CLASS_MP ? "mildly parallel" : "parallel";
}
