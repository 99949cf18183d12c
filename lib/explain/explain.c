/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects the facts that explain how a thread or a program stands. */
#include "explain/explain.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* These pass by themselves. */
static bool passes(const struct asym_reason *reason)
{
    static const enum asym_exclusion passing[] = {ASYM_WHY_SETTLING,    ASYM_WHY_FORKED,     ASYM_WHY_UNKNOWN,
                                                  ASYM_WHY_COUNTS_LATE, ASYM_WHY_HARDLY_RAN, ASYM_WHY_NEXT_SWAP};
    for (size_t i = 0; i < ASYM_LENGTH(passing); i++)
        if (reason == asym_why(passing[i]))
            return true;
    return false;
}

static enum asym_standing standing_of(const struct asym_explanation *e)
{
    const struct asym_machine *m = e->context.machine;
    const struct asym_reason *reason = e->thread ? e->thread->reason : e->app->reason;
    const int32_t target = e->thread ? e->thread->target : -1;
    if (reason && reason->kind == ASYM_REASON_EXCLUDED)
        return passes(reason) ? ASYM_STANDING_WAITS : ASYM_STANDING_LEFT_ALONE;
    if (!reason || reason->kind == ASYM_REASON_IDLE || (e->thread && e->thread->seen != e->now))
        return ASYM_STANDING_IDLE;
    if (target < 0)
        return ASYM_STANDING_UNSTEERED;
    if (asym_mask_empty(&m->slow))
        return ASYM_STANDING_STEERED;
    return asym_mask_has(&m->fast, target) ? ASYM_STANDING_STEERED_FAST : ASYM_STANDING_STEERED_SLOW;
}

static bool is_same(const struct asym_taskid *a, const struct asym_taskid *b)
{
    return a->tid == b->tid && a->start == b->start;
}

/* Returns the thread of the program that was seen last; among several of them, the one that ran most. */
static const struct asym_monitor_thread *busiest(const struct asym_monitor *m, const struct asym_monitor_app *app)
{
    const struct asym_monitor_thread *best = NULL, *t;
    for (size_t i = 0; (t = asym_monitor_thread_at(m, i)); i++) {
        if (!is_same(&t->app, &app->id))
            continue;
        if (!best || t->seen > best->seen || (t->seen == best->seen && t->running > best->running))
            best = t;
    }
    return best;
}

/* The user can end these by asymctl adopt. They are reasons of a thread, so other threads of the program can be steered. */
static bool is_adoptable(const struct asym_reason *reason)
{
    return reason == asym_why(ASYM_WHY_FOREIGN) || reason == asym_why(ASYM_WHY_DENIED) ||
           reason == asym_why(ASYM_WHY_OWN_MASK) || reason == asym_why(ASYM_WHY_FOREIGN_NICE);
}

static bool is_main(const struct asym_monitor_thread *t)
{
    return t->id.tid == t->id.tgid;
}

static bool comes_before(const struct asym_monitor_thread *a, const struct asym_monitor_thread *b)
{
    return is_main(a) != is_main(b) ? is_main(b) : a->id.tid < b->id.tid;
}

/*
 * A thread that the last snapshot with the program did not list may have ended: it does not count. In a cgroup only those of the
 * same process count: the user may not be allowed to see the others.
 */
static void find_left_alone(const struct asym_monitor *m, struct asym_explanation *e)
{
    const struct asym_monitor_thread *t;
    for (size_t i = 0; e->of_program && e->thread && (t = asym_monitor_thread_at(m, i)); i++) {
        if (t == e->thread || t->seen != e->app->seen || t->id.tgid != e->thread->id.tgid || !is_adoptable(t->reason))
            continue;
        if (e->n_left_alone++ == 0 || comes_before(t, e->left_alone))
            e->left_alone = t;
    }
}

static void add_holder(struct asym_explanation *e, const struct asym_monitor_app *app)
{
    size_t i = ASYM_MIN(e->n_holders, (size_t)ASYM_EXPLAIN_HOLDERS - 1);
    if (e->n_holders++ >= ASYM_EXPLAIN_HOLDERS && e->holders[i]->n_fast >= app->n_fast)
        return;
    for (; i > 0 && e->holders[i - 1]->n_fast < app->n_fast; i--)
        e->holders[i] = e->holders[i - 1];
    e->holders[i] = app;
}

static void count_fast_cpus(const struct asym_monitor *m, struct asym_explanation *e)
{
    const struct asym_mask *fast = &e->context.machine->fast;
    ASYM_MASK_FOREACH (c, fast) {
        e->n_fast_cpus++;
        e->n_free_fast += asym_monitor_cpu_of(m, (unsigned)c)->threads == 0;
    }
}

/* Threads that sleep or have ended keep their last target: only those of the last snapshot count, as in n_free_fast. */
static void count_shares(const struct asym_monitor *m, struct asym_explanation *e)
{
    const struct asym_mask *fast = &e->context.machine->fast;
    struct asym_mask own = {0}, held = {0};
    const struct asym_monitor_thread *t;
    if (e->standing != ASYM_STANDING_STEERED_SLOW)
        return;
    for (size_t i = 0; (t = asym_monitor_thread_at(m, i)); i++)
        if (t->seen == e->now && t->target >= 0 && asym_mask_has(fast, t->target))
            asym_mask_set(e->app && is_same(&t->app, &e->app->id) ? &own : &held, (unsigned)t->target);
    e->n_own_fast = asym_mask_count(&own);
    e->n_held_fast = asym_mask_count(&held);
}

static void find_holders(const struct asym_monitor *m, struct asym_explanation *e)
{
    const struct asym_monitor_app *app;
    for (size_t at = 0; (app = asym_monitor_app_next(m, &at));)
        if (app != e->app && app->n_fast > 0)
            add_holder(e, app);
}

int asym_explain(const struct asym_monitor *m, const struct asym_explain_context *context, int32_t id,
                 struct asym_explanation *ret)
{
    struct asym_explanation e = {.context = *context};
    struct asym_monitor_totals totals;
    asym_monitor_totals(m, &totals);
    e.now = totals.now;
    e.app = asym_monitor_app_of(m, id);
    e.of_program = e.app != NULL;
    e.thread = e.app ? busiest(m, e.app) : asym_monitor_thread_of(m, id);
    if (!e.app && e.thread)
        e.app = asym_monitor_app_of(m, e.thread->id.tgid);
    if (!e.app && !e.thread)
        return -ESRCH;
    e.standing = standing_of(&e);
    find_holders(m, &e);
    count_fast_cpus(m, &e);
    count_shares(m, &e);
    find_left_alone(m, &e);
    *ret = e;
    return 0;
}
