/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/classify.h"

#include <limits.h>

#include "base/mask.h"

unsigned asym_hp_threshold(const struct asym_classify_settings *c, const struct asym_machine *m)
{
    return c->hp_threshold != UINT_MAX ? c->hp_threshold : asym_mask_count(&m->fast) + 1;
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

/* Of equals the one that has it keeps it. */
static const struct asym_task *busiest(const struct asym_snapshot *s, const struct asym_app *app, int32_t keep)
{
    const struct asym_task *best = NULL;
    for (uint32_t i = 0; i < app->n_tasks; i++) {
        const struct asym_task *t = &s->tasks[app->first_task + i];
        if (t->flags & ASYM_TASK_SPINNING)
            continue;
        if (!best || t->runnable > best->runnable || (t->id.tid == keep && t->runnable >= best->runnable))
            best = t;
    }
    return best;
}

static bool is_same(const struct asym_taskid *a, const struct asym_taskid *b)
{
    return a->tid == b->tid && a->tgid == b->tgid && a->start == b->start;
}

static const struct asym_task *master_of(const struct asym_snapshot *s, const struct asym_app *app)
{
    for (uint32_t i = 0; app && i < app->n_tasks; i++)
        if ((s->tasks[app->first_task + i].flags & (ASYM_TASK_MASTER | ASYM_TASK_SPINNING)) == ASYM_TASK_MASTER)
            return &s->tasks[app->first_task + i];
    return NULL;
}

/* Is it in a serial phase, by its own word? */
static bool is_told(const struct asym_classify_settings *c, struct asym_app_memory *m, const struct asym_snapshot *s,
                    const struct asym_app *app)
{
    const struct asym_task *master = master_of(s, app);
    if (!master) {
        if (m->told)
            m->told = m->boosting = false;
        return false;
    }
    if (!m->told || !is_same(&m->sp, &master->id)) {
        m->told = m->boosting = true;
        m->was_many = false;
        m->sp = master->id;
        m->sp_since = s->now;
    }
    if (s->now - m->sp_since >= c->amp_boost)
        m->boosting = false;
    return true;
}

static void boost(const struct asym_classify_settings *c, struct asym_app_memory *m, const struct asym_snapshot *s,
                  const struct asym_app *app)
{
    if (is_told(c, m, s, app))
        return;
    if (m->crowd.value == ASYM_CROWD_MANY) {
        m->was_many = true;
        m->boosting = false;
    } else if (m->crowd.value == ASYM_CROWD_ONE && m->was_many) {
        m->was_many = false;
        m->boosting = true;
        m->sp_since = s->now;
    } else if (m->crowd.value == ASYM_CROWD_NONE && s->now - m->crowd.since > c->amp_boost) {
        m->was_many = false;
    }
    if (m->boosting && s->now - m->sp_since >= c->amp_boost)
        m->boosting = false;
    if (m->boosting && m->crowd.value == ASYM_CROWD_ONE && app) {
        const struct asym_task *t = busiest(s, app, m->sp.tid);
        if (t)
            m->sp = t->id;
    }
    if (!m->boosting)
        m->sp = (struct asym_taskid){0};
}

void asym_classify(const struct asym_classify_settings *c, const struct asym_snapshot *s, const struct asym_app *app,
                   struct asym_app_memory *memory)
{
    unsigned n = app ? whole_threads(asym_classify_runnable(c, app)) : 0;
    enum asym_phase phase = ASYM_PHASE_IDLE;
    enum asym_class class = ASYM_CLASS_NONE;
    enum asym_crowd crowd = ASYM_CROWD_NONE;
    if (n > 0) {
        phase = n > c->serial_max_threads ? ASYM_PHASE_PARALLEL : ASYM_PHASE_SERIAL;
        class = n > asym_hp_threshold(c, s->machine) ? ASYM_CLASS_HP : ASYM_CLASS_MP;
        crowd = n > 1 ? ASYM_CROWD_MANY : ASYM_CROWD_ONE;
    }
    hold(&memory->phase, phase, c->hysteresis, s->now);
    hold(&memory->class, class, c->hysteresis, s->now);
    hold(&memory->crowd, crowd, c->hysteresis, s->now);
    boost(c, memory, s, app);
}

bool asym_classify_is_blank(const struct asym_classify_settings *c, const struct asym_app_memory *memory, asym_usec now)
{
    return memory->phase.value == ASYM_PHASE_IDLE && memory->class.value == ASYM_CLASS_NONE &&
           memory->crowd.value == ASYM_CROWD_NONE && !memory->boosting && now - memory->crowd.since > c->amp_boost;
}

enum asym_class asym_classify_thread(const struct asym_app_memory *memory, const struct asym_taskid *id,
                                     asym_usec *ret_since)
{
    if (!memory->boosting || (!memory->told && memory->crowd.value != ASYM_CROWD_ONE) || !is_same(&memory->sp, id))
        return (enum asym_class)memory->class.value;
    *ret_since = memory->sp_since;
    return ASYM_CLASS_SP;
}
