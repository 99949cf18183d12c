/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/classify.h"

#include <limits.h>

#include "base/mask.h"

#define IDLE_BELOW 0.5
#define ONE_BELOW  1.5

unsigned asym_hp_threshold(const struct asym_classify_settings *c, const struct asym_machine *m)
{
    return c->hp_threshold != UINT_MAX ? c->hp_threshold : asym_mask_count(&m->fast) + 1;
}

double asym_classify_runnable(const struct asym_classify_settings *c, const struct asym_app *app)
{
    return c->estimator == ASYM_ESTIMATOR_INSTANT ? app->runnable_instant : app->runnable_mean;
}

/* Held for n intervals? Counts how long the same new value has been seen. */
static bool held(unsigned *count, bool same_as_before, unsigned hysteresis)
{
    *count = same_as_before ? *count + 1 : 1;
    return *count >= hysteresis;
}

static void take_phase(const struct asym_classify_settings *c, struct asym_app_memory *m, double runnable,
                       asym_usec now)
{
    enum asym_phase phase = ASYM_PHASE_PARALLEL;
    if (runnable < IDLE_BELOW)
        phase = ASYM_PHASE_IDLE;
    else if (runnable <= c->serial_max_threads)
        phase = ASYM_PHASE_SERIAL;
    bool now_held = held(&m->phase_held, phase == m->next_phase, c->hysteresis);
    m->next_phase = phase;
    if (phase != m->phase && now_held) {
        m->phase = phase;
        m->phase_since = now;
    }
}

static void take_class(const struct asym_classify_settings *c, struct asym_app_memory *m, double runnable,
                       unsigned threshold)
{
    enum asym_class class = ASYM_CLASS_MP;
    if (runnable < IDLE_BELOW)
        class = ASYM_CLASS_NONE;
    else if (runnable > threshold)
        class = ASYM_CLASS_HP;
    bool now_held = held(&m->class_held, class == m->next_class, c->hysteresis);
    m->next_class = class;
    if (now_held)
        m->class = class;
}

static const struct asym_task *busiest(const struct asym_snapshot *s, const struct asym_app *app)
{
    const struct asym_task *best = NULL;
    for (uint32_t i = 0; i < app->n_tasks; i++) {
        const struct asym_task *t = &s->tasks[app->first_task + i];
        if (t->flags & ASYM_TASK_SPINNING)
            continue;
        if (!best || t->runnable > best->runnable)
            best = t;
    }
    return best;
}

static void take_sp(const struct asym_classify_settings *c, struct asym_app_memory *m, const struct asym_snapshot *s,
                    const struct asym_app *app, double runnable)
{
    if (runnable >= ONE_BELOW) {
        m->many = true;
        m->sp = (struct asym_taskid){0};
        return;
    }
    if (m->sp.tid != 0 && s->now - m->sp_since >= c->amp_boost)
        m->sp = (struct asym_taskid){0};
    if (!m->many || runnable < IDLE_BELOW)
        return;
    m->many = false;
    const struct asym_task *t = busiest(s, app);
    if (t) {
        m->sp = t->id;
        m->sp_since = s->now;
    }
}

void asym_classify(const struct asym_classify_settings *c, const struct asym_snapshot *s, const struct asym_app *app,
                   struct asym_app_memory *memory)
{
    double runnable = asym_classify_runnable(c, app);
    take_phase(c, memory, runnable, s->now);
    take_class(c, memory, runnable, asym_hp_threshold(c, s->machine));
    take_sp(c, memory, s, app, runnable);
}

double asym_classify_sp_left(const struct asym_classify_settings *c, const struct asym_app_memory *memory,
                             const struct asym_taskid *id, asym_usec now)
{
    if (memory->sp.tid == 0 || memory->sp.tid != id->tid || memory->sp.start != id->start ||
        now - memory->sp_since >= c->amp_boost)
        return 0;
    return (double)(c->amp_boost - (now - memory->sp_since)) / (double)ASYM_SEC;
}
