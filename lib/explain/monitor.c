/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "explain/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/token-bucket.h"
#include "core/task-table.h"

/* The window of an application consists of slices. The present one is not full yet. */
enum { SLICES = 6, SECONDS = 60 };
#define SLICE        (ASYM_MONITOR_WINDOW / SLICES)
#define SWEEP_PERIOD (10 * ASYM_SEC)

struct slice {
    double running, fast;      /* seconds */
    double active, sequential; /* seconds */
    uint32_t moves;
};

/* The id comes first, as in every item of a table. */
struct app_record {
    struct asym_monitor_app app;
    char *cgroup;
    struct slice slices[SLICES]; /* the present one first */
    enum asym_class told;        /* the last class that asym_monitor_class_line has seen */
    struct asym_token_bucket lines;
    unsigned n_left_out; /* changes of class since the last line */
};

struct asym_monitor {
    struct asym_table threads; /* struct asym_monitor_thread */
    struct asym_table apps;    /* struct app_record */
    struct asym_histories histories;
    struct asym_monitor_cpu cpus[ASYM_MAX_CPUS];
    double most[ASYM_MAX_CPUS]; /* the running share of the thread that is last there */
    struct asym_monitor_totals totals;
    uint32_t changes[SECONDS]; /* by second, modulo SECONDS */
    uint64_t second, slice;    /* of the last snapshot */
    asym_usec swept;
    uint64_t n_decisions;
    struct asym_token_bucket lines; /* on the class of all applications */
};

/* One more line is a debt. */
static struct asym_token_bucket new_lines(unsigned n, asym_usec now)
{
    return asym_token_bucket_full(n / (double)ASYM_CLASS_LOG_PERIOD, n - 1.0, now);
}

const char *asym_monitor_what_name(enum asym_monitor_what what)
{
    static const char *const names[ASYM_MONITOR_N_WHATS] = {"steer", "release", "repair", "leave alone"};
    return (unsigned)what < ASYM_MONITOR_N_WHATS ? names[what] : "unknown";
}

int asym_monitor_new(struct asym_monitor **ret_monitor)
{
    struct asym_monitor *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    asym_table_init(&m->threads, sizeof(struct asym_monitor_thread));
    asym_table_init(&m->apps, sizeof(struct app_record));
    if (asym_histories_init(&m->histories, ASYM_MONITOR_HISTORIES) < 0) {
        free(m);
        return -ENOMEM;
    }
    m->lines = new_lines(ASYM_CLASS_LOG_ALL, 0);
    *ret_monitor = m;
    return 0;
}

static struct app_record *app_record_at(const struct asym_monitor *m, uint32_t i)
{
    return asym_table_at(&m->apps, i);
}

void asym_monitor_free(struct asym_monitor *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->apps.n; i++)
        free(app_record_at(m, i)->cgroup);
    asym_table_done(&m->threads);
    asym_table_done(&m->apps);
    asym_histories_done(&m->histories);
    free(m);
}

/* Returns the item, a new one if there is room for it; NULL: there is none. */
static void *get(struct asym_monitor *m, struct asym_table *t, const struct asym_taskid *id, uint32_t most,
                 uint32_t *hint)
{
    void *item = t->n < most ? asym_table_get_near(t, id, hint) : asym_table_find(t, id);
    m->totals.n_unremembered += !item;
    return item;
}

/* Applications */

static void sum_up(struct app_record *a)
{
    struct slice sum = {0};
    for (size_t i = 0; i < SLICES; i++) {
        sum.running += a->slices[i].running;
        sum.fast += a->slices[i].fast;
        sum.active += a->slices[i].active;
        sum.sequential += a->slices[i].sequential;
        sum.moves += a->slices[i].moves;
    }
    a->app.fast_share = sum.running > 0 ? sum.fast / sum.running : 0;
    a->app.sequential_share = sum.active > 0 ? sum.sequential / sum.active : 0;
    a->app.moves = sum.moves;
}

static void roll(struct asym_monitor *m, asym_usec now)
{
    const uint64_t slice = now / SLICE, second = now / ASYM_SEC;
    const uint64_t steps = ASYM_MIN(slice - m->slice, (uint64_t)SLICES);
    for (uint64_t s = m->second; s < second && s < m->second + SECONDS; s++)
        m->changes[(s + 1) % SECONDS] = 0;
    if (second > m->second + SECONDS)
        memset(m->changes, 0, sizeof m->changes);
    for (uint32_t i = 0; steps > 0 && i < m->apps.n; i++) {
        struct app_record *a = app_record_at(m, i);
        memmove(a->slices + steps, a->slices, (SLICES - steps) * sizeof a->slices[0]);
        memset(a->slices, 0, steps * sizeof a->slices[0]);
        sum_up(a);
    }
    m->slice = slice;
    m->second = second;
}

static void name_app(struct app_record *a, const struct asym_app *app)
{
    memcpy(a->app.comm, app->comm, sizeof a->app.comm);
    if (app->cgroup && !a->cgroup)
        a->cgroup = strdup(app->cgroup);
    a->app.cgroup = a->cgroup;
}

static void record_app(struct asym_monitor *m, const struct asym_feedback *f, size_t index, uint32_t *hint)
{
    const struct asym_app *app = &f->snapshot->apps[index];
    const struct asym_plan_app *plan = &f->plan->apps[index];
    struct app_record *a = get(m, &m->apps, &app->id, ASYM_MONITOR_APPS, hint);
    if (!a)
        return;
    struct asym_monitor_app *ret = &a->app;
    if (ret->seen == 0 || ret->class != plan->class)
        ret->class_since = f->snapshot->now;
    name_app(a, app);
    ret->seen = f->snapshot->now;
    ret->phase = plan->phase;
    ret->class = plan->class;
    ret->class_by = plan->class_by;
    ret->runnable = plan->runnable;
    ret->n_procs = app->n_procs;
    ret->n_threads = app->n_threads;
    ret->uses_rtx = app->uses_rtx;
    ret->n_steered = ret->n_fast = 0;
    ret->has_sp = false;
    ret->running = 0;
    ret->reason = plan->excluded;
    memcpy(ret->figure, plan->figure, sizeof ret->figure);
}

/* Threads */

static void record_cpu(struct asym_monitor *m, const struct asym_task *task, const struct asym_plan_task *plan)
{
    if (plan->target >= 0)
        m->cpus[plan->target].threads++;
    if (task->cpu < 0 || task->cpu >= ASYM_MAX_CPUS)
        return;
    struct asym_monitor_cpu *cpu = &m->cpus[task->cpu];
    cpu->busy = ASYM_MIN(cpu->busy + task->running, 1.0);
    if (task->running <= m->most[task->cpu])
        return;
    m->most[task->cpu] = task->running;
    cpu->last = task->id;
    memcpy(cpu->comm, task->comm, sizeof cpu->comm);
}

/* A refresh repeats the shares of the last snapshot: they count once. */
static double seconds_of(const struct asym_snapshot *s)
{
    return s->refreshed ? 0 : (double)s->interval / (double)ASYM_SEC;
}

/* "The fraction of time the application spent running with a single runnable thread" (Saez 2010, 3.1). */
static void add_sequential(struct app_record *a, const struct asym_snapshot *s, const struct asym_app *app)
{
    double most = 0, second = 0;
    for (size_t i = app->first_task; i < (size_t)app->first_task + app->n_tasks; i++) {
        const struct asym_task *task = &s->tasks[i];
        if (task->flags & ASYM_TASK_SPINNING || task->runnable <= second)
            continue;
        second = ASYM_MIN(most, task->runnable);
        most = ASYM_MAX(most, task->runnable);
    }
    a->slices[0].active += most * seconds_of(s);
    a->slices[0].sequential += (most - second) * seconds_of(s);
}

/* moved: to another CPU than its last target. */
static void add_to_app(struct app_record *a, const struct asym_feedback *f, const struct asym_task *task,
                       const struct asym_plan_task *plan, bool moved)
{
    const struct asym_mask *fast = &f->snapshot->machine->fast;
    const double seconds = task->running * seconds_of(f->snapshot);
    a->app.n_steered += plan->target >= 0;
    a->app.n_fast += plan->target >= 0 && asym_mask_has(fast, plan->target);
    a->app.has_sp |= plan->class == ASYM_CLASS_SP;
    a->app.running += task->running;
    a->slices[0].running += seconds;
    a->slices[0].fast += asym_mask_has(fast, task->cpu) ? seconds : 0;
    a->slices[0].moves += moved;
}

static void record_thread(struct asym_monitor_thread *t, const struct asym_feedback *f, size_t index)
{
    const struct asym_task *task = &f->snapshot->tasks[index];
    const struct asym_plan_task *plan = &f->plan->tasks[index];
    const struct asym_proc *proc = &f->snapshot->procs[task->proc];
    const asym_usec now = f->snapshot->now;
    if (t->seen == 0 || t->class != plan->class)
        t->class_since = now;
    if (t->reason != plan->reason)
        t->reason_since = now;
    memcpy(t->comm, task->comm, sizeof t->comm);
    t->app = f->snapshot->apps[proc->app].id;
    t->seen = now;
    t->cpu = task->cpu;
    t->target = plan->target;
    t->class = plan->class;
    t->runnable = task->runnable;
    t->running = task->running;
    t->reason = plan->reason;
    memcpy(t->figure, plan->figure, sizeof t->figure);
    t->exclusive = plan->exclusive;
}

static void record_task(struct asym_monitor *m, const struct asym_feedback *f, size_t index, struct app_record *a,
                        uint32_t *hint)
{
    const struct asym_task *task = &f->snapshot->tasks[index];
    const struct asym_plan_task *plan = &f->plan->tasks[index];
    struct asym_monitor_thread *t = get(m, &m->threads, &task->id, ASYM_MONITOR_THREADS, hint);
    const bool moved = t && t->seen != 0 && t->target >= 0 && plan->target >= 0 && plan->target != t->target;
    record_cpu(m, task, plan);
    m->totals.n_steered += plan->target >= 0;
    m->totals.n_class[plan->class & 3]++;
    if (a)
        add_to_app(a, f, task, plan, moved);
    if (t)
        record_thread(t, f, index);
}

/* The application has the reason of its thread that ran most. */
static void record_tasks(struct asym_monitor *m, const struct asym_feedback *f, size_t index, uint32_t *hint)
{
    const struct asym_app *app = &f->snapshot->apps[index];
    struct app_record *a = asym_table_find(&m->apps, &app->id);
    size_t best = app->first_task;
    for (size_t i = app->first_task; i < (size_t)app->first_task + app->n_tasks; i++) {
        record_task(m, f, i, a, hint);
        if (f->snapshot->tasks[i].running > f->snapshot->tasks[best].running)
            best = i;
    }
    if (!a)
        return;
    add_sequential(a, f->snapshot, app);
    sum_up(a);
    if (app->n_tasks == 0)
        return;
    a->app.busiest = f->snapshot->procs[f->snapshot->tasks[best].proc].id;
    if (a->app.reason)
        return;
    a->app.reason = f->plan->tasks[best].reason;
    memcpy(a->app.figure, f->plan->tasks[best].figure, sizeof a->app.figure);
}

/* Decisions */

bool asym_monitor_leaves_alone(const struct asym_action *a, const struct asym_outcome *o)
{
    return o->kind == ASYM_OUTCOME_HANDS_OFF ||
           (a->kind == ASYM_ACTION_FORGET && o->kind == ASYM_OUTCOME_DONE && a->reason);
}

static void change_thread(struct asym_monitor_thread *t, const struct asym_monitor_decision *d)
{
    if (d->what == ASYM_MONITOR_STEER)
        return;
    t->target = -1;
    if (!d->reason || t->reason == d->reason)
        return;
    t->reason = d->reason;
    t->reason_since = d->time;
    memcpy(t->figure, d->figure, sizeof t->figure);
}

static void decide(struct asym_monitor *m, const struct asym_feedback *f, const struct asym_action *a,
                   const struct asym_outcome *o)
{
    static const enum asym_monitor_what whats[] = {ASYM_MONITOR_STEER, ASYM_MONITOR_RELEASE, ASYM_MONITOR_REPAIR,
                                                   ASYM_MONITOR_LEAVE_ALONE};
    struct asym_monitor_thread *t = asym_table_find(&m->threads, &a->id);
    struct asym_monitor_decision d = {
        .number = ++m->n_decisions,
        .time = f->snapshot->now,
        .id = a->id,
        .what = whats[a->kind],
        .class = t ? t->class : ASYM_CLASS_NONE,
        .from = t ? t->cpu : -1,
        .to = t && a->kind == ASYM_ACTION_STEER ? t->target : -1,
        .nice = a->nice,
        .reason = a->reason,
        .figure = {a->figure[0], a->figure[1]},
    };
    if (a->kind == ASYM_ACTION_FORGET && !a->reason)
        d.what = ASYM_MONITOR_RELEASE;
    if (o->kind == ASYM_OUTCOME_HANDS_OFF) {
        d.what = ASYM_MONITOR_LEAVE_ALONE;
        d.to = -1;
        d.nice = a->expect_nice;
        d.reason = asym_why(asym_why_hands_off(o->error));
        d.figure[0] = d.reason == asym_why(ASYM_WHY_DENIED) ? -o->error : 0;
    }
    if (t) {
        memcpy(d.comm, t->comm, sizeof d.comm);
        change_thread(t, &d);
        t->history = asym_histories_add(&m->histories, t->history, &d);
    }
    m->totals.left_alone += d.what == ASYM_MONITOR_LEAVE_ALONE;
}

static void record_actions(struct asym_monitor *m, const struct asym_feedback *f)
{
    for (size_t i = 0; i < f->n_actions; i++) {
        const struct asym_action *a = &f->actions[i];
        const struct asym_outcome *o = &f->outcomes[i];
        const bool done = o->kind == ASYM_OUTCOME_DONE;
        m->totals.actions[a->kind & 3][o->kind & 3]++;
        m->totals.changes += done;
        m->changes[m->second % SECONDS] += done;
        if (done || asym_monitor_leaves_alone(a, o))
            decide(m, f, a, o);
    }
}

/* Forgetting */

static bool is_kept(const struct asym_monitor_thread *t, asym_usec now, bool crowded)
{
    const bool left_alone = t->reason == asym_why(ASYM_WHY_FOREIGN) || t->reason == asym_why(ASYM_WHY_DENIED) ||
                            t->reason == asym_why(ASYM_WHY_FOREIGN_NICE);
    return now - t->seen < (crowded ? SWEEP_PERIOD : ASYM_MONITOR_KEEP) || (left_alone && !crowded);
}

static void sweep(struct asym_monitor *m, asym_usec now)
{
    const bool crowded = m->threads.n > ASYM_MONITOR_THREADS / 4 * 3, full = m->apps.n > ASYM_MONITOR_APPS / 4 * 3;
    for (uint32_t i = m->threads.n; i-- > 0;)
        if (!is_kept(asym_table_at(&m->threads, i), now, crowded))
            asym_table_remove_at(&m->threads, i);
    for (uint32_t i = m->apps.n; i-- > 0;) {
        struct app_record *a = app_record_at(m, i);
        if (now - a->app.seen < (full ? SWEEP_PERIOD : ASYM_MONITOR_KEEP))
            continue;
        free(a->cgroup);
        asym_table_remove_at(&m->apps, i);
    }
    m->swept = now;
}

static void record_totals(struct asym_monitor *m, const struct asym_snapshot *s)
{
    struct asym_monitor_totals *t = &m->totals;
    t->n_cycles++;
    t->n_prompt += s->refreshed;
    t->lost_events = s->coverage.n_lost_events;
    t->n_procs = s->coverage.n_procs;
    t->n_threads = s->coverage.n_threads;
    t->n_apps = (uint32_t)s->n_apps;
    t->n_listed = (uint32_t)s->n_tasks;
    t->n_steered = 0;
    memset(t->n_class, 0, sizeof t->n_class);
    t->now = s->now;
}

void asym_monitor_record(struct asym_monitor *m, const struct asym_feedback *feedback)
{
    const struct asym_snapshot *s = feedback->snapshot;
    uint32_t app_hint = 0, hint = 0;
    if (s->now / SLICE != m->slice || s->now / ASYM_SEC != m->second)
        roll(m, s->now);
    if (s->now - m->swept >= SWEEP_PERIOD)
        sweep(m, s->now);
    record_totals(m, s);
    for (unsigned c = 0; c < s->machine->n_cpus; c++) {
        m->cpus[c].busy = m->most[c] = 0;
        m->cpus[c].threads = 0;
    }
    for (size_t a = 0; a < s->n_apps; a++) {
        record_app(m, feedback, a, &app_hint);
        record_tasks(m, feedback, a, &hint);
    }
    record_actions(m, feedback);
}

/* Changes of class, for the log */

static const struct asym_plan_task *shown_task(const struct asym_app *app, const struct asym_plan *plan)
{
    const struct asym_plan_task *first = NULL;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        if (plan->tasks[i].target < 0)
            continue;
        if (plan->tasks[i].class == ASYM_CLASS_SP)
            return &plan->tasks[i];
        first = first ? first : &plan->tasks[i];
    }
    return first;
}

const struct asym_plan_task *asym_monitor_class_line(struct asym_monitor *m, const struct asym_snapshot *s,
                                                     const struct asym_plan *plan, size_t app, unsigned *ret_left_out)
{
    const struct asym_plan_task *shown = shown_task(&s->apps[app], plan);
    struct app_record *a = asym_table_find(&m->apps, &s->apps[app].id);
    if (!a || !shown || shown->class == ASYM_CLASS_NONE || shown->class == a->told)
        return NULL;
    if (a->told == ASYM_CLASS_NONE)
        a->lines = new_lines(ASYM_CLASS_LOG_LINES, s->now);
    a->told = shown->class;
    if (!asym_token_bucket_has(&a->lines, s->now) || !asym_token_bucket_has(&m->lines, s->now)) {
        a->n_left_out++;
        return NULL;
    }
    asym_token_bucket_charge(&a->lines, 1, s->now);
    asym_token_bucket_charge(&m->lines, 1, s->now);
    *ret_left_out = a->n_left_out;
    a->n_left_out = 0;
    return shown;
}

/* Queries */

const struct asym_monitor_app *asym_monitor_app_next(const struct asym_monitor *m, size_t *at)
{
    while (*at < m->apps.n) {
        const struct asym_monitor_app *app = &app_record_at(m, (uint32_t)(*at)++)->app;
        if (app->seen == m->totals.now)
            return app;
    }
    return NULL;
}

static const struct asym_monitor_app *youngest_app(const struct asym_monitor *m, int32_t pid)
{
    const struct asym_monitor_app *found = NULL;
    for (uint32_t i = 0; pid > 0 && i < m->apps.n; i++) {
        const struct asym_monitor_app *app = &app_record_at(m, i)->app;
        if (app->id.tid == pid && (!found || app->seen > found->seen))
            found = app;
    }
    return found;
}

const struct asym_monitor_app *asym_monitor_app_of(const struct asym_monitor *m, int32_t pid)
{
    const struct asym_monitor_app *app = youngest_app(m, pid);
    for (uint32_t i = 0; !app && i < m->threads.n; i++) {
        const struct asym_monitor_thread *t = asym_table_at(&m->threads, i);
        if (t->id.tgid == pid) {
            const struct app_record *a = asym_table_find(&m->apps, &t->app);
            app = a ? &a->app : NULL;
        }
    }
    return app;
}

const struct asym_monitor_thread *asym_monitor_thread_of(const struct asym_monitor *m, int32_t tid)
{
    const struct asym_monitor_thread *found = NULL;
    for (uint32_t i = 0; i < m->threads.n; i++) {
        const struct asym_monitor_thread *t = asym_table_at(&m->threads, i);
        if (t->id.tid == tid && (!found || t->seen > found->seen))
            found = t;
    }
    return found;
}

const struct asym_monitor_thread *asym_monitor_thread_at(const struct asym_monitor *m, size_t i)
{
    return i < m->threads.n ? asym_table_at(&m->threads, (uint32_t)i) : NULL;
}

size_t asym_monitor_decisions(const struct asym_monitor *m, const struct asym_monitor_thread *thread,
                              struct asym_monitor_decision ret[ASYM_MONITOR_DECISIONS])
{
    return asym_histories_read(&m->histories, thread->history, &thread->id, ret);
}

uint64_t asym_monitor_last_decision(const struct asym_monitor *m)
{
    return m->n_decisions;
}

int asym_monitor_decisions_since(const struct asym_monitor *m, uint64_t since,
                                 const struct asym_monitor_decision ***ret, size_t *ret_n)
{
    return asym_histories_since(&m->histories, since, ret, ret_n);
}

const struct asym_monitor_cpu *asym_monitor_cpu_of(const struct asym_monitor *m, unsigned cpu)
{
    return &m->cpus[cpu];
}

void asym_monitor_totals(const struct asym_monitor *m, struct asym_monitor_totals *ret)
{
    *ret = m->totals;
    ret->changes_last_minute = 0;
    for (size_t i = 0; i < SECONDS; i++)
        ret->changes_last_minute += m->changes[i];
}
