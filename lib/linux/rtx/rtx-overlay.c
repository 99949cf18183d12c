/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-overlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/sort.h"
#include "linux/sys/proc-parse.h"

struct overlay_source {
    struct asym_source source;
    struct asym_rtxd_overlay_config config;
    struct asym_task *tasks; /* writable copies */
    struct asym_app *apps;
    size_t tasks_capacity, apps_capacity;
    uint64_t phases; /* phases_of() the last snapshot */
    bool refresh;    /* the next snapshot is the last one with new reports */
};

/* State while the reports on one application are applied. */
struct gathering {
    struct asym_app *app;
    struct asym_task *tasks;
    const struct asym_rtxd_program_report *program_reports;
    size_t n_reports;
    asym_usec interval; /* length of the measured interval */
    bool is_refresh, has_master;
    double more; /* working threads that the inner source did not count as runnable */
};

static struct overlay_source *overlay_of(struct asym_source *source)
{
    return (struct overlay_source *)(void *)((char *)source - offsetof(struct overlay_source, source));
}

static const struct asym_rtxd_thread_report *find_report(const struct asym_rtxd_program_report *t, int32_t tid)
{
    const size_t i = ASYM_LOWER_BOUND(t->threads, t->n, tid, tid);
    return i < t->n && t->threads[i].tid == tid ? &t->threads[i] : NULL;
}

/* Returns the part of the interval for which the thread is known to have spun, 0 to 1. */
static double part_of(const struct gathering *g, const struct asym_rtxd_thread_report *t, asym_usec said_at)
{
    const asym_usec spun = said_at > t->since ? said_at - t->since : 0;
    return t->since == 0 || spun >= g->interval ? 1 : (double)spun / (double)g->interval;
}

/* The count includes the thread's runnable share. Limit that share to the part of the interval without spinning. */
static void leave_out(struct gathering *g, struct asym_task *task, double part)
{
    const double less = ASYM_MAX(0.0, task->runnable - (1 - part));
    if (part >= 1)
        task->flags |= ASYM_TASK_SPINNING;
    g->app->runnable_mean = ASYM_MAX(0.0, g->app->runnable_mean - less);
    g->app->runnable_instant -= task->state == 'R' && g->app->runnable_instant > 0;
}

static void gather_task(struct gathering *g, struct asym_task *task, const struct asym_rtxd_thread_report *t,
                        asym_usec said_at)
{
    if (t->spins) {
        leave_out(g, task, part_of(g, t, said_at));
    } else if (t->master && !g->has_master) {
        task->flags |= ASYM_TASK_MASTER | (t->in_phase ? (unsigned)ASYM_TASK_PHASE : 0u);
        g->has_master = true;
    }
    if (g->is_refresh && t->works && t->changed) {
        g->more += ASYM_MAX(0.0, 1.0 - task->runnable);
        g->app->runnable_instant += task->state != 'R';
    }
}

/* Returns the number of working threads whose word has changed since the last sample. */
static size_t count_changed(const struct asym_rtxd_program_report *t)
{
    size_t n = 0;
    for (size_t k = 0; k < t->n; k++)
        n += t->threads[k].works && t->threads[k].changed;
    return n;
}

/* Apply one page to the tasks first..end of its process. */
static void gather_page(struct gathering *g, const struct asym_rtxd_program_report *t, size_t first, size_t end)
{
    /* Threads that slept at the last sample are not among the tasks. */
    size_t unlisted = g->is_refresh ? count_changed(t) : 0;
    for (size_t i = first; i < end; i++) {
        const struct asym_rtxd_thread_report *thread = find_report(t, g->tasks[i].id.tid);
        if (!thread)
            continue;
        unlisted -= g->is_refresh && thread->works && thread->changed;
        /* A program with two pages may report a thread twice: the first report counts. */
        if (!(g->tasks[i].flags & (ASYM_TASK_MASTER | ASYM_TASK_SPINNING)))
            gather_task(g, &g->tasks[i], thread, t->at);
    }
    g->more += (double)unlisted;
    g->app->runnable_instant += (uint32_t)unlisted;
}

static void gather_process(struct gathering *g, const struct asym_proc *proc, size_t first, size_t end)
{
    const struct asym_rtxd_program_report *t = g->program_reports +
                                               ASYM_LOWER_BOUND(g->program_reports, g->n_reports, pid, proc->id.tgid);
    for (; t < g->program_reports + g->n_reports && t->pid == proc->id.tgid; t++) {
        if (t->start != proc->id.start)
            continue;
        g->app->uses_rtx = true;
        gather_page(g, t, first, end);
    }
}

static void gather_app(struct gathering *g, const struct asym_snapshot *s)
{
    const size_t end = g->app->first_task + g->app->n_tasks;
    g->has_master = false;
    g->more = 0;
    for (size_t i = g->app->first_task, next; i < end; i = next) {
        for (next = i + 1; next < end && g->tasks[next].proc == g->tasks[i].proc; next++)
            ;
        gather_process(g, &s->procs[g->tasks[i].proc], i, next);
    }
    /* The counts must not exceed the number of threads. */
    g->app->runnable_mean = ASYM_MIN(g->app->runnable_mean + g->more, (double)g->app->n_threads);
    g->app->runnable_instant = ASYM_MIN(g->app->runnable_instant, g->app->n_threads);
}

/* Returns a hash of the threads in a serial phase. It changes when a serial phase begins or ends in any program. */
static uint64_t phases_of(const struct asym_rtxd_program_report *program_reports, size_t n)
{
    uint64_t h = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < program_reports[i].n; k++) {
            if (!program_reports[i].threads[k].master)
                continue;
            h = (h ^ (uint64_t)program_reports[i].start ^ (uint64_t)program_reports[i].threads[k].tid << 32) *
                UINT64_C(0x9E3779B97F4A7C15);
            h ^= h >> 29;
        }
    }
    return h;
}

static int overlay(struct overlay_source *t, struct asym_snapshot *s,
                   const struct asym_rtxd_program_report *program_reports, size_t n, bool is_refresh)
{
    if (asym_copy(&t->tasks, &t->tasks_capacity, s->tasks, s->n_tasks, sizeof *t->tasks) < 0 ||
        asym_copy(&t->apps, &t->apps_capacity, s->apps, s->n_apps, sizeof *t->apps) < 0)
        return -ENOMEM;
    struct gathering g = {.tasks = t->tasks,
                          .program_reports = program_reports,
                          .n_reports = n,
                          .interval = s->interval,
                          .is_refresh = is_refresh};
    for (size_t a = 0; a < s->n_apps; a++) {
        g.app = &t->apps[a];
        gather_app(&g, s);
    }
    s->tasks = t->tasks;
    s->apps = t->apps;
    return 0;
}

static uint32_t count_programs(const struct asym_rtxd_program_report *program_reports, size_t n)
{
    uint32_t programs = 0;
    for (size_t i = 0; i < n; i++)
        programs += i == 0 || program_reports[i].pid != program_reports[i - 1].pid;
    return programs;
}

static int overlay_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct overlay_source *t = overlay_of(source);
    const struct asym_rtxd_program_report *program_reports;
    struct asym_snapshot s;
    /*
     * Ask before and after the sample: a wait that both answers contain is not short. A refresh takes some 20 us. If there is
     * nothing to refresh, the source takes a sample: then a short wait may count as a long one, once.
     */
    if (!t->refresh)
        t->config.provider->ask(t->config.provider, t->config.now(), 0, &program_reports);
    t->refresh = false;
    int r = source->inner->next(source->inner, &s);
    if (r <= 0)
        return r;
    /* The inner source takes a full snapshot if it has no last one. */
    const unsigned how = s.refreshed ? ASYM_ASK_FINAL | ASYM_ASK_REFRESH : ASYM_ASK_FINAL;
    const size_t n = t->config.provider->ask(t->config.provider, t->config.now(), how, &program_reports);
    if (n > 0 && overlay(t, &s, program_reports, n, s.refreshed) < 0)
        return -ENOMEM;
    for (size_t i = 0; !s.refreshed && t->config.provider->meet && i < s.n_procs; i++)
        if (!(s.procs[i].flags & (ASYM_PROC_KERNEL | ASYM_PROC_FOREIGN_NS)))
            t->config.provider->meet(t->config.provider, s.procs[i].id.tid, s.procs[i].id.start);
    const uint64_t phases = phases_of(program_reports, n);
    if (phases != t->phases)
        s.urgent = ASYM_URGENT_REPORT;
    s.coverage.n_reporting = count_programs(program_reports, n);
    t->phases = phases;
    *ret = s;
    return 1;
}

static void overlay_refresh(struct asym_source *source)
{
    overlay_of(source)->refresh = true;
}

static void overlay_close(struct asym_source *source)
{
    struct overlay_source *t = overlay_of(source);
    free(t->tasks);
    free(t->apps);
    free(t);
}

int asym_rtxd_overlay_new(const struct asym_rtxd_overlay_config *config, struct asym_source **ret_source)
{
    struct overlay_source *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->source = (struct asym_source){
        .inner = config->inner, .next = overlay_next, .refresh = overlay_refresh, .close = overlay_close};
    t->config = *config;
    *ret_source = &t->source;
    return 0;
}

/*
 * A thread that was runnable for less than this share of an interval has paused. The kernel brings the counters of a thread up to
 * date at a tick (10 ms at 100 Hz) and when a wait ends: in half a second, 0.04 can be missing of one that never pauses.
 */
#define ALL_OF_IT 0.95

bool asym_rtxd_never_pauses(const struct asym_snapshot *s, const struct asym_app *app)
{
    size_t n = 0;
    for (uint32_t i = 0; i < app->n_tasks; i++)
        n += s->tasks[app->first_task + i].runnable >= ALL_OF_IT;
    return n >= 2;
}

bool asym_rtxd_detection_needs_maps(const struct asym_app *app)
{
    return !app->uses_rtx && !app->cgroup;
}

enum asym_rtxd_detection asym_rtxd_detect(unsigned maps, const struct asym_snapshot *s, const struct asym_app *app)
{
    if (!asym_rtxd_detection_needs_maps(app))
        return app->uses_rtx ? ASYM_RTXD_DETECTION_REPORTS : ASYM_RTXD_DETECTION_NONE;
    if (maps & ASYM_MAPS_PAGE)
        return ASYM_RTXD_DETECTION_REPORTS;
    return maps & ASYM_MAPS_OPENMP && asym_rtxd_never_pauses(s, app) ? ASYM_RTXD_DETECTION_SUSPECT
                                                                     : ASYM_RTXD_DETECTION_NONE;
}
