/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/bpf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/macro.h"
#include "linux/observe/bpf-internal.h"
#include "linux/observe/observer.h"

/* Threads that have slept, and that an answer reads from /proc. The next sample shows the others. */
#define SLEEPERS 16

/* --- the kernel's counts of each thread, between two full snapshots --- */

/*
 * An application whose threads change their states more often than this, per second of their CPU time, or of the time that passed
 * where that is more, is followed no more for a while: at some 0.1 to 0.25 us a change, it would lose more than half a per cent of
 * its time (docs/data/phases.md).
 */
#define CHANGES_MOST 20000

/* The changes are counted over this: a burst is not what a program does. */
#define CHANGES_OVER ASYM_SEC

static void free_counts(struct asym_bpf *b)
{
    free(b->counted);
    asym_hash_done(&b->thread_index);
}

/* A thread for which the kernel had no place may have run: then only the clock of its process knows. */
static void note_activity(struct asym_bpf *b, int32_t tgid, enum asym_procfs_activity activity)
{
    struct asym_bpf_proc *proc = asym_bpf_proc_of(b, tgid);
    if (!proc)
        return;
    proc->is_counted = true;
    if (!asym_phases_misses(b->kernel, proc->app))
        proc->activity = ASYM_MAX(proc->activity, activity);
}

static void note_changes(struct asym_bpf *b, const struct asym_bpf_counted *c, uint32_t seq_before)
{
    if (c->at.app == 0 || c->at.app > ASYM_PHASES_APPS)
        return;
    b->apps[c->at.app - 1].n_changes += (uint32_t)(c->at.seq - seq_before) / 2;
    b->apps[c->at.app - 1].ran_ns += c->ran_ns;
}

static void measure(struct asym_bpf_counted *c, const struct asym_phases_thread *before, double interval_ns)
{
    c->ran_ns = c->at.running_ns - before->running_ns;
    c->waited_ns = c->at.waiting_ns - before->waiting_ns;
    c->running = ASYM_MIN((double)c->ran_ns / interval_ns, 1);
    c->runnable = ASYM_MIN((double)(c->ran_ns + c->waited_ns) / interval_ns, 1);
    if (c->at.critical_ns > before->critical_ns)
        c->critical = ASYM_MIN((double)(c->at.critical_ns - before->critical_ns) / interval_ns, 1);
    c->is_measured = true;
}

/* The place may have another thread than at the last count, or none. */
static void count(struct asym_bpf *b, uint32_t place, const struct asym_phases_thread *now, double interval_ns)
{
    struct asym_bpf_counted *c = &b->counted[place];
    const struct asym_phases_thread before = c->at;
    *c = (struct asym_bpf_counted){.at = *now};
    if (before.tid != now->tid) {
        if (before.tid != 0)
            asym_hash_remove(&b->thread_index, asym_hash_of_id(before.tid), place);
        if (now->tid != 0)
            asym_hash_add(&b->thread_index, asym_hash_of_id(now->tid), place);
    } else if (now->tid != 0 && before.app == now->app && before.running_ns <= now->running_ns &&
               before.waiting_ns <= now->waiting_ns && interval_ns > 0) {
        /* A count that is lower is of another thread, which has the number now. */
        measure(c, &before, interval_ns);
        note_changes(b, c, before.seq);
    }
    const bool slept = c->is_measured && !c->at.is_runnable && c->ran_ns + c->waited_ns == 0;
    note_activity(b, now->tgid, slept ? ASYM_PROCFS_SLEPT : ASYM_PROCFS_RAN);
    if (before.tgid != now->tgid)
        note_activity(b, before.tgid, ASYM_PROCFS_RAN);
}

/* A thread sleeps, and a process has slept, unless the count says otherwise. */
static void forget_last_count(struct asym_bpf *b)
{
    for (size_t i = 0; i < b->n_active; i++) {
        struct asym_bpf_counted *c = &b->counted[b->active[i]];
        *c = (struct asym_bpf_counted){.at = c->at, .is_measured = c->at.tid != 0};
    }
    for (size_t i = 0; i < b->n_procs; i++) {
        struct asym_bpf_proc *proc = &b->procs[i];
        const bool knows = proc->is_counted && !asym_phases_misses(b->kernel, proc->app);
        proc->activity = knows ? ASYM_PROCFS_SLEPT : ASYM_PROCFS_UNKNOWN;
    }
}

/* Puts to rest who changes too often. */
static void judge(struct asym_bpf *b, asym_usec now)
{
    const asym_usec since = b->judged;
    if (now - since < CHANGES_OVER)
        return;
    b->judged = now;
    for (uint32_t i = 0; i < b->apps_end; i++) {
        struct asym_bpf_app *app = &b->apps[i];
        const double seconds = ASYM_MAX((double)app->ran_ns / 1e9, (double)(now - since) / ASYM_SEC);
        if (since > 0 && app->n_procs > 0 && (double)app->n_changes > CHANGES_MOST * seconds) {
            app->rests_until = now + ASYM_BPF_RESTS_FOR;
            app->alone = 0;
        }
        app->n_changes = app->ran_ns = 0;
    }
}

/* Returns the count of a thread at the last full snapshot, or NULL. */
static const struct asym_bpf_counted *find_counted(const struct asym_bpf *b, int32_t tid)
{
    ASYM_HASH_FOREACH (i, &b->thread_index, asym_hash_of_id(tid))
        if (b->counted[i].at.tid == tid)
            return &b->counted[i];
    return NULL;
}

/* Takes what it has counted since the last full snapshot. Applications whose threads change state too often rest. */
static void count_all(struct asym_bpf *b)
{
    const struct asym_phases_thread *threads;
    uint64_t now_ns = 0;
    forget_last_count(b);
    asym_phases_begin_interval(b->kernel);
    b->n_active = asym_phases_list(b->kernel, &threads, &b->active);
    asym_clock_ns(CLOCK_MONOTONIC, &now_ns);
    const double interval_ns = b->counted_at_ns == 0 ? 0 : (double)(now_ns - b->counted_at_ns);
    for (size_t i = 0; i < b->n_active; i++)
        count(b, b->active[i], &threads[b->active[i]], interval_ns);
    b->counted_at_ns = now_ns;
    judge(b, now_ns / 1000);
}

/* --- what a snapshot shows of them --- */

/* Replaces the sample by the kernel's count. Returns how much the runnable share grows by that. */
static double take_count(const struct asym_bpf_counted *c, struct asym_task *task)
{
    if (!c || !c->is_measured)
        return 0;
    const double more = c->runnable - task->runnable;
    task->running = c->running;
    task->runnable = c->runnable;
    task->critical = c->critical;
    return more;
}

/* Marks the only runnable thread of an application. The others sleep, whatever they did at the sample. */
static void mark_alone(struct asym_task *tasks, uint32_t n, int32_t alone)
{
    for (uint32_t i = 0; i < n; i++) {
        if (tasks[i].id.tid == alone)
            tasks[i].flags |= ASYM_TASK_ALONE;
        if (tasks[i].id.tid == alone || tasks[i].state == 'R')
            tasks[i].state = tasks[i].id.tid == alone ? 'R' : 'S';
    }
}

/*
 * While one thread is alone, the application counts as one thread, whatever it was in the interval before. The kernel knows that of
 * the threads that it follows: a job may have others, such as a compiler that has just begun.
 */
static void take_app(struct asym_bpf *b, const struct asym_snapshot *s, struct asym_app *out)
{
    const uint32_t number = asym_bpf_number(&b->source, &out->id);
    if (number == 0)
        return;
    struct asym_task *tasks = &b->tasks[out->first_task];
    int32_t only;
    const uint32_t runnable = asym_phases_runnable(b->kernel, number, &only);
    bool is_whole = !asym_phases_misses(b->kernel, number), is_listed = false;
    for (uint32_t i = 0; i < out->n_tasks; i++) {
        const struct asym_bpf_counted *c = find_counted(b, tasks[i].id.tid);
        out->runnable_mean += take_count(c, &tasks[i]);
        is_whole &= c != NULL;
        is_listed |= tasks[i].id.tid == only;
    }
    out->runnable_mean = ASYM_MAX(out->runnable_mean, 0);
    out->runnable_instant = is_whole ? runnable : ASYM_MAX(out->runnable_instant, runnable);
    if (is_whole && is_listed && only != 0 && only == b->apps[number - 1].alone) {
        mark_alone(tasks, out->n_tasks, only);
        b->apps[number - 1].told = only;
        out->runnable_mean = 1;
    } else if (s->refreshed) {
        out->runnable_mean = ASYM_MAX(out->runnable_mean, out->runnable_instant);
    }
}

static bool is_news(const struct asym_bpf *b, const struct asym_bpf_app *app, int32_t alone)
{
    return b->hears == ASYM_BPF_BEGINS ? alone != 0 && alone != app->told : alone != app->alone;
}

/* The next sample shows what no answer is left for. */
static void note_alone(struct asym_bpf *b, struct asym_bpf_app *app, int32_t alone)
{
    struct asym_bpf_user *user = &b->users[app->user];
    user->has_changed = true;
    const bool is_told = is_news(b, app, alone) && asym_token_bucket_has(&user->answers, asym_clock_now());
    b->has_changed |= is_told;
    app->is_new |= is_told;
    app->alone = alone;
}

/* Returns whether its events count: one that rests leaves the kernel process by process. */
static bool is_heard(const struct asym_bpf_app *app)
{
    return app->n_procs > 0 && app->rests_until == 0;
}

static void take_event(void *ctx, const struct asym_phases_event *e)
{
    struct asym_bpf *b = ctx;
    if (e->kind == ASYM_PHASES_LOST) {
        for (uint32_t i = 0; i < b->apps_end; i++) {
            int32_t alone = 0;
            if (!is_heard(&b->apps[i]))
                continue;
            (void)asym_phases_runnable(b->kernel, i + 1, &alone);
            if (alone != b->apps[i].alone)
                note_alone(b, &b->apps[i], alone);
        }
        return;
    }
    if (e->app == 0 || e->app > ASYM_PHASES_APPS || !is_heard(&b->apps[e->app - 1]))
        return;
    note_alone(b, &b->apps[e->app - 1], e->kind == ASYM_PHASES_SERIAL ? e->tid : 0);
}

/* Has procfs list the threads that are alone now, and slept through the last sample: such a one waits for all others. */
static void list_sleepers(struct asym_bpf *b)
{
    unsigned left = SLEEPERS;
    for (uint32_t i = 0; i < b->apps_end; i++) {
        const struct asym_bpf_app *app = &b->apps[i];
        const struct asym_bpf_counted *c = app->is_new && b->refresh ? find_counted(b, app->alone) : NULL;
        if (!c || c->ran_ns + c->waited_ns > 0 || left == 0)
            continue;
        left--;
        (void)asym_procfs_list_sleeper(b->source.inner, c->at.tgid, c->at.tid);
    }
}

_Static_assert(ASYM_OBSERVER_BPF == ASYM_OBSERVER_PROCFS + 1,
               "the calls of asym_procfs_ take the inner source for procfs");

static int bpf_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct asym_bpf *b = asym_bpf_of(source);
    struct asym_snapshot s;
    /* procfs asks what has run, so the count comes first; one sample may take several calls. */
    if (!b->refresh && !b->is_sampling)
        count_all(b);
    if (!b->is_sampling)
        list_sleepers(b);
    const int r = source->inner->next(source->inner, &s);
    b->is_sampling = r == -EINPROGRESS;
    b->refresh &= b->is_sampling;
    b->is_answer = false;
    if (r <= 0)
        return r;
    for (uint32_t i = 0; i < b->apps_end; i++) {
        b->apps[i].is_new = false;
        b->apps[i].told = s.refreshed ? b->apps[i].told : 0;
    }
    asym_phases_take(b->kernel, take_event, b);
    if (asym_copy(&b->tasks, &b->tasks_capacity, s.tasks, s.n_tasks, sizeof *s.tasks) < 0 ||
        asym_copy(&b->out_apps, &b->out_apps_capacity, s.apps, s.n_apps, sizeof *s.apps) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < s.n_apps; i++)
        take_app(b, &s, &b->out_apps[i]);
    s.tasks = b->tasks;
    s.apps = b->out_apps;
    if (b->has_changed && b->hears != ASYM_BPF_NOTHING)
        s.urgent = ASYM_URGENT_PHASE;
    b->has_changed = false;
    if (!s.refreshed)
        asym_bpf_follow_all(b, &s);
    if (b->is_full)
        s.coverage.remarks[ASYM_OBSERVER_BPF] =
            "More programs or threads run than the BPF observer has places for: asymd samples the others by /proc.";
    *ret = s;
    return 1;
}

static void bpf_refresh(struct asym_source *source)
{
    asym_bpf_of(source)->refresh = true;
}

static enum asym_procfs_activity process_activity(void *ctx, int32_t tgid)
{
    const struct asym_bpf *b = ctx;
    const struct asym_bpf_proc *proc = asym_bpf_proc_of(b, tgid);
    /* The programs look only at processes for which asymd asks: also at those that they follow. */
    const bool slept = asym_phases_slept(b->kernel, tgid);
    /* Where procfs cannot return the last snapshot again, it takes a full one, for which there is no count. asymd runs in each. */
    if (b->refresh || tgid == b->self)
        return ASYM_PROCFS_UNKNOWN;
    if (proc && proc->activity != ASYM_PROCFS_UNKNOWN)
        return proc->activity;
    return slept ? ASYM_PROCFS_SLEPT : ASYM_PROCFS_UNKNOWN;
}

static enum asym_procfs_activity thread_activity(void *ctx, int32_t tid, struct asym_procfs_watched *ret)
{
    const struct asym_bpf *b = ctx;
    const struct asym_bpf_counted *c = find_counted(b, tid);
    if (!c || !c->is_measured || b->refresh)
        return ASYM_PROCFS_UNKNOWN;
    *ret = (struct asym_procfs_watched){.ran = c->ran_ns,
                                        .waited = c->waited_ns,
                                        .cpu = c->at.cpu,
                                        .renewed = c->at.renewed,
                                        .settings = c->at.settings,
                                        .is_runnable = c->at.is_runnable};
    return c->ran_ns + c->waited_ns > 0 ? ASYM_PROCFS_RAN : ASYM_PROCFS_SLEPT;
}

/* Another source may have asked for the refresh, for programs that only that one knows. */
static bool has_app_changed(void *ctx, const struct asym_taskid *id)
{
    const struct asym_bpf *b = ctx;
    const uint32_t number = b->is_answer ? asym_bpf_number(&b->source, id) : 0;
    return !b->is_answer || (number != 0 && b->apps[number - 1].is_new);
}

static void bpf_close(struct asym_source *source)
{
    static const struct asym_procfs_watcher nobody = {.ctx = NULL};
    struct asym_bpf *b = asym_bpf_of(source);
    asym_procfs_set_watcher(source->inner, &nobody);
    asym_phases_close(b->kernel);
    asym_hash_done(&b->app_index);
    asym_hash_done(&b->proc_index);
    free_counts(b);
    free(b->procs);
    free(b->tasks);
    free(b->out_apps);
    free(b);
}

int asym_bpf_fd(const struct asym_source *source)
{
    return asym_phases_fd(asym_bpf_of(source)->kernel);
}

bool asym_bpf_take(struct asym_source *source)
{
    struct asym_bpf *b = asym_bpf_of(source);
    asym_phases_take(b->kernel, take_event, b);
    b->is_answer = b->has_changed && b->hears != ASYM_BPF_NOTHING;
    return b->has_changed;
}

/* The kernel tells nothing of the programs of this user until the user has paid. */
static void hold(struct asym_bpf *b, uint32_t user)
{
    const asym_usec due = asym_token_bucket_due(&b->users[user].answers);
    for (uint32_t i = 0; i < b->apps_end; i++)
        if (b->apps[i].n_procs > 0 && b->apps[i].user == user)
            asym_phases_hold(b->kernel, i + 1, due);
}

void asym_bpf_charge(struct asym_source *source, asym_usec cost)
{
    struct asym_bpf *b = asym_bpf_of(source);
    const asym_usec now = asym_clock_now();
    unsigned n = 0;
    for (uint32_t i = 0; i < b->users_end; i++)
        n += b->users[i].has_changed;
    for (uint32_t i = 0; i < b->users_end; i++) {
        struct asym_bpf_user *user = &b->users[i];
        if (!user->has_changed)
            continue;
        user->has_changed = false;
        asym_token_bucket_charge(&user->answers, (double)cost / n, now);
        if (!asym_token_bucket_has(&user->answers, now))
            hold(b, i);
    }
}

/* Those who have used answers lately share the CPU time. One whose bucket is full needs none. */
static void divide(struct asym_bpf *b, asym_usec now)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < b->users_end; i++) {
        asym_token_bucket_fill(&b->users[i].answers, now);
        n += b->users[i].answers.tokens < b->users[i].answers.capacity;
    }
    for (uint32_t i = 0; i < b->users_end; i++)
        b->users[i].answers.rate = b->cpu_share / ASYM_MAX(n, 1U);
}

void asym_bpf_set(struct asym_source *source, const struct asym_daemon_settings *settings, enum asym_bpf_hears hears)
{
    struct asym_bpf *b = asym_bpf_of(source);
    const struct asym_phases_limits limits = {.gap = settings->phase_gap,
                                              .settle = settings->phase_settle,
                                              .rate = hears != ASYM_BPF_NOTHING ? settings->phase_rate : 0,
                                              .quiet_ends = hears == ASYM_BPF_BEGINS};
    asym_phases_set(b->kernel, &limits);
    b->hears = hears;
    b->cpu_share = settings->cpu_budget / 100;
    divide(b, asym_clock_now());
}

bool asym_bpf_housekeeping(struct asym_source *source)
{
    struct asym_bpf *b = asym_bpf_of(source);
    asym_phases_reconcile(b->kernel);
    return b->n_procs > 0;
}

struct asym_phases *asym_bpf_kernel(const struct asym_source *source)
{
    return asym_bpf_of(source)->kernel;
}

static int bpf_open(const struct asym_observer_context *context, struct asym_source *inner, struct asym_source **ret,
                    struct asym_error *err)
{
    const struct asym_daemon_settings *settings = &context->settings->daemon;
    const struct asym_phases_limits none = {.gap = settings->phase_gap, .settle = settings->phase_settle};
    if (settings->observer == ASYM_OBSERVE_PROCFS)
        return -ECANCELED;
    if (!context->procfs->root->live)
        return -ECANCELED;
    struct asym_bpf *b = calloc(1, sizeof *b);
    if (!b)
        return asym_fail(err, -ENOMEM, "no memory");
    b->counted = calloc(ASYM_PHASES_THREADS + 1, sizeof *b->counted);
    const int r = !b->counted || asym_hash_reserve(&b->thread_index, ASYM_PHASES_THREADS + 1) < 0
                      ? asym_fail(err, -ENOMEM, "no memory")
                      : asym_phases_open(&none, &b->kernel, err);
    if (r < 0) {
        free_counts(b);
        free(b);
        return r;
    }
    b->self = (int32_t)getpid();
    b->root = context->procfs->root;
    b->cpu_share = settings->cpu_budget / 100;
    b->source = (struct asym_source){.next = bpf_next, .refresh = bpf_refresh, .close = bpf_close};
    const struct asym_procfs_watcher watcher = {
        .process = process_activity, .thread = thread_activity, .changed = has_app_changed, .ctx = b};
    asym_procfs_set_watcher(inner, &watcher);
    *ret = &b->source;
    return 0;
}

const struct asym_observer_entry asym_observer_entry_bpf = {.name = "bpf", .open = bpf_open};
