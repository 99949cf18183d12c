/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the snapshot to what a policy sees, and its answers back into the threads' memories. */
#include "core/engine-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "core/eligible.h"

/* The arena a policy first gets, per thread and CPU; it is grown when a policy asks for more. */
#define ARENA_FIRST(n_threads, n_cpus) (4096 + 64 * (n_threads) + 256 * (n_cpus))

/* A policy that asks for more than this would never be content: 20,000 threads want some megabytes. */
#define ARENA_MOST ((size_t)256 << 20)

/* Most threads have the same original mask, cpuset and rule as many others: what they may be given is kept. */
struct may_cache {
    struct may_entry {
        uint32_t original, cpuset, rule, may;
        bool full;
    } entry[64];
};

static uint32_t may_of(const struct asym_step *st, const struct asym_task_ref *ref, struct may_cache *cache)
{
    struct asym_masks *masks = &st->e->masks;
    const uint32_t original = ref->memory->whole ? ASYM_MASK_NONE : ref->memory->original;
    const enum asym_rule_action rule = ref->seen.proc->rule;
    const uint32_t h = original * 31 + ref->seen.cpuset * 7 + rule;
    struct may_entry *entry = &cache->entry[h % ASYM_LENGTH(cache->entry)];
    if (!entry->full || entry->original != original || entry->cpuset != ref->seen.cpuset || entry->rule != rule) {
        const struct asym_mask may = asym_may(original == ASYM_MASK_NONE ? NULL : asym_masks_at(masks, original),
                                              ref->seen.task->cpuset, rule, st->s->machine);
        *entry = (struct may_entry){original, ref->seen.cpuset, rule, asym_masks_id(masks, &may), true};
    }
    return entry->may;
}

/*
 * Within a mask of several CPUs the kernel has put it somewhere, mostly not on its target: who is about to have a CPU to
 * itself begins there, or it and another would have to change places just then.
 */
static int32_t home_of(const struct asym_thread_memory *m, const struct asym_task *task, const struct asym_mask *may)
{
    const bool claims = task->flags & ASYM_TASK_MASTER || m->class == ASYM_CLASS_SP;
    if (claims && asym_mask_has(may, task->cpu) && asym_mask_has(task->mask, task->cpu))
        return task->cpu;
    if ((m->steered || m->fits) && asym_mask_has(may, m->given))
        return m->given;
    return asym_mask_has(may, task->cpu) ? task->cpu : -1;
}

static void note_class(const struct asym_step *st, struct asym_thread_memory *m, const struct asym_app_memory *app)
{
    asym_usec since = st->s->now;
    enum asym_class class = asym_classify_thread(app, &m->id, &since);
    if (m->class != class || m->class_since == 0 || class == ASYM_CLASS_SP)
        m->class_since = since;
    m->class = class;
}

/* What speaks against a mapping of this thread, apart from where it might go? */
static enum asym_reason objection(const struct asym_step *st, const struct asym_app_memory *app, uint32_t index,
                                  double ret_figure[2])
{
    const struct asym_task *task = st->refs[index].seen.task;
    const struct asym_thread_memory *m = st->refs[index].memory;
    enum asym_reason reason = asym_eligible(m, task, st->refs[index].seen.proc, st->s->now, &st->e->config.enforce,
                                            ret_figure);
    if (reason != ASYM_WHY_NONE)
        return reason;
    if (app->phase.value == ASYM_PHASE_IDLE || !asym_task_is_active(task) || task->flags & ASYM_TASK_ENDED)
        return ASYM_WHY_IDLE;
    /* An heir is given its own mask first; of the other the next look tells whose it is now. */
    return m->heir || m->doubt ? ASYM_WHY_NEXT_SWAP : ASYM_WHY_NONE;
}

/* The core type that it had no way off since it was counted. */
static int16_t sampled_on(const struct asym_machine *machine, const struct asym_task *task)
{
    const struct asym_mask had = asym_mask_and(task->mask, &machine->usable);
    const int cpu = asym_mask_next(&had, 0);
    if (cpu < 0)
        return -1;
    const int16_t type = machine->cpus[cpu].type;
    return type >= 0 && asym_mask_within(&had, &machine->types[type].cpus) ? type : -1;
}

/* The sample of this task, if there is one: both stand in the same order. */
static void view_sample(struct asym_step *st, uint32_t index, struct asym_policy_thread *view)
{
    const struct asym_snapshot *s = st->s;
    while (st->next_sample < s->n_samples && s->samples[st->next_sample].task < index)
        st->next_sample++;
    view->sampled_on = -1;
    if (st->next_sample >= s->n_samples || s->samples[st->next_sample].task != index)
        return;
    view->sample = &s->samples[st->next_sample];
    view->sampled_on = sampled_on(s->machine, st->refs[index].seen.task);
}

/* Show a thread to the policy, unless something speaks against steering it: then say what. */
static void view_task(struct asym_step *st, const struct asym_app_memory *app, uint32_t index, struct may_cache *cache)
{
    const struct asym_task_ref *ref = &st->refs[index];
    const struct asym_task *task = ref->seen.task;
    struct asym_thread_memory *m = ref->memory;
    struct asym_plan_task *out = &st->tasks[index];
    note_class(st, m, app);
    /* its mask is filled in by the diff, and is most of it: clearing it here too would be felt */
    memset(out, 0, offsetof(struct asym_plan_task, mask));
    out->target = -1;
    out->nice = task->nice;
    out->class = m->class;
    out->reason = objection(st, app, index, out->figure);
    const uint32_t may = out->reason == ASYM_WHY_NONE ? may_of(st, ref, cache) : ASYM_MASK_NONE;
    if (out->reason == ASYM_WHY_NONE && may == ASYM_MASK_NONE)
        out->reason = ASYM_WHY_NOTHING_FREE;
    if (out->reason != ASYM_WHY_NONE)
        return;
    st->view_refs[st->n_views] = (struct asym_view_ref){.task = index, .may = may};
    st->views[st->n_views++] = (struct asym_policy_thread){
        .id = task->id,
        .app = (uint32_t)st->n_view_apps,
        .class = m->class,
        .class_since = m->class_since,
        .runnable = task->runnable,
        .running = task->running,
        .nice = m->original_nice,
        .master = task->flags & ASYM_TASK_MASTER,
        .spinning = task->flags & ASYM_TASK_SPINNING,
        .profile = ref->seen.proc->profile,
        .state = st->e->config.policy->task_state_size ? (void *)(m + 1) : NULL,
    };
    view_sample(st, index, &st->views[st->n_views - 1]);
}

/* Addresses of masks hold once no more are added. */
static int fill_may(struct asym_step *st)
{
    if (st->e->masks.failed)
        return -ENOMEM;
    for (size_t v = 0; v < st->n_views; v++) {
        const struct asym_task_ref *ref = &st->refs[st->view_refs[v].task];
        st->views[v].may = asym_masks_at(&st->e->masks, st->view_refs[v].may);
        st->views[v].home = home_of(ref->memory, ref->seen.task, st->views[v].may);
    }
    return 0;
}

/* An application of which no thread may be steered is shown to people as excluded, with the reason of its first. */
static void note_exclusion(struct asym_plan_app *out, const struct asym_plan_task *tasks, uint32_t n, size_t n_viewed)
{
    if (n_viewed > 0 || n == 0)
        return;
    out->excluded = tasks[0].reason;
    memcpy(out->figure, tasks[0].figure, sizeof out->figure);
}

int asym_step_views(struct asym_step *st)
{
    const struct asym_snapshot *s = st->s;
    struct may_cache cache = {0};
    for (size_t a = 0; a < s->n_apps; a++) {
        const struct asym_app *app = &s->apps[a];
        const struct asym_app_memory *memory = asym_table_find(&st->e->apps, &app->id);
        size_t first = st->n_views;
        struct asym_plan_app *out = &st->apps[a];
        *out = (struct asym_plan_app){
            .phase = (enum asym_phase)memory->phase.value,
            .class = (enum asym_class)memory->class.value,
            .runnable = asym_classify_runnable(&st->e->config.classify, app),
        };
        for (uint32_t i = 0; i < app->n_tasks; i++)
            view_task(st, memory, app->first_task + i, &cache);
        note_exclusion(out, st->tasks + app->first_task, app->n_tasks, st->n_views - first);
        if (st->n_views == first)
            continue;
        st->view_apps[st->n_view_apps++] = (struct asym_policy_app){
            .id = app->id,
            .phase = out->phase,
            .class = out->class,
            .runnable = out->runnable,
            .phase_since = memory->phase.since,
            .first_thread = (uint32_t)first,
            .n_threads = (uint32_t)(st->n_views - first),
        };
    }
    return fill_may(st);
}

/* Ask, with more working memory as long as the policy says that it had too little. */
static int ask(struct asym_step *st, struct asym_assignment *answers)
{
    struct asym_engine *e = st->e;
    size_t size = ASYM_MAX(e->pools.arena.capacity, ARENA_FIRST(st->n_views, st->s->machine->n_cpus));
    do {
        struct asym_arena arena = {.base = asym_pool_reserve(&e->pools.arena, size, 1), .size = size};
        if (!arena.base)
            return -ENOMEM;
        const struct asym_policy_input input = {
            .machine = st->s->machine,
            .now = st->s->now,
            .interval = e->last_plan ? st->s->now - e->last_plan : 0,
            .in_turn = st->s->now - e->turn,
            .apps = st->view_apps,
            .threads = st->views,
            .n_apps = st->n_view_apps,
            .n_threads = st->n_views,
            .params = e->params,
            .state = e->policy_state,
            .arena = &arena,
        };
        int r = e->config.policy->plan(&input, answers);
        if (r != -ENOBUFS)
            return r;
        size = ASYM_MAX(size * 2, arena.wanted);
    } while (size <= ARENA_MOST);
    return -ENOMEM;
}

/* Reasons that speak of an application or of a boost get their figures here: policies do not see the settings. */
static void fill_figures(const struct asym_step *st, const struct asym_policy_thread *view, unsigned hp_threshold,
                         struct asym_assignment *a)
{
    const struct asym_classify_settings *c = &st->e->config.classify;
    if (a->reason == ASYM_WHY_SP) {
        asym_usec age = st->s->now - view->class_since;
        a->figure[0] = age < c->amp_boost ? (double)(c->amp_boost - age) / (double)ASYM_SEC : 0;
        a->figure[1] = (double)c->amp_boost / (double)ASYM_SEC;
    } else if (a->reason == ASYM_WHY_HP) {
        a->figure[0] = st->view_apps[view->app].runnable;
        a->figure[1] = hp_threshold;
    }
}

/*
 * A timer of exactly one swap period fires now a little early, now a little late. Without the slack every early one
 * would cost a whole period; counting from when the swap was due keeps the mean rate.
 */
static bool time_to_plan(struct asym_engine *e, const struct asym_snapshot *s)
{
    const asym_usec period = e->config.policy->own_period ? 0 : e->config.enforce.swap_period;
    const asym_usec slack = ASYM_MIN(period / 20, 5 * ASYM_MSEC);
    bool due = s->now + slack >= e->next_swap;
    /* What a program tells of is not waited for, and uses up no swap. */
    if (!due && !e->dirty && s->machine->generation == e->generation)
        return s->urgent && e->config.policy->reacts;
    e->turn = s->now;
    bool in_step = due && e->next_swap != 0 && s->now < e->next_swap + period;
    e->next_swap = in_step ? e->next_swap + period : s->now + period;
    return true;
}

static int map_anew(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    struct asym_assignment *answers = asym_pool_reserve(&e->pools.assignments, st->n_views, sizeof *answers);
    if (!answers)
        return -ENOMEM;
    for (size_t v = 0; v < st->n_views; v++)
        answers[v] = (struct asym_assignment){.cpu = -1};
    int r = ask(st, answers);
    if (r < 0)
        return r;
    e->plan++;
    e->last_plan = st->s->now;
    e->generation = st->s->machine->generation;
    e->dirty = false;
    const unsigned hp_threshold = asym_hp_threshold(&e->config.classify, st->s->machine);
    for (size_t v = 0; v < st->n_views; v++) {
        struct asym_thread_memory *m = st->refs[st->view_refs[v].task].memory;
        fill_figures(st, &st->views[v], hp_threshold, &answers[v]);
        m->assignment = answers[v];
        m->assigned = e->plan;
    }
    return 0;
}

int asym_step_plan(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    /* with nobody to map the swap is not used up: the first thread that comes need not wait */
    if (st->n_views > 0) {
        const asym_usec next_swap = e->next_swap, turn = e->turn;
        int r = time_to_plan(e, st->s) ? map_anew(st) : 0;
        if (r < 0) {
            e->next_swap = next_swap;
            e->turn = turn;
            return r;
        }
    }
    for (size_t v = 0; v < st->n_views; v++) {
        struct asym_plan_task *out = &st->tasks[st->view_refs[v].task];
        const struct asym_thread_memory *m = st->refs[st->view_refs[v].task].memory;
        const struct asym_assignment *a = &m->assignment;
        if (m->assigned != e->plan || (a->cpu >= 0 && !asym_mask_has(st->views[v].may, a->cpu))) {
            out->reason = ASYM_WHY_NEXT_SWAP;
            continue;
        }
        out->reason = a->reason;
        out->target = a->cpu < 0 ? -1 : a->cpu;
        out->claim = a->claim && a->cpu >= 0;
        out->monitor = a->monitor;
        memcpy(out->figure, a->figure, sizeof out->figure);
    }
    return 0;
}
