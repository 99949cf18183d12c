/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

struct told_source {
    struct asym_source source;
    struct asym_told_config config;
    struct asym_task *tasks; /* copies that may be written to */
    struct asym_app *apps;
    size_t tasks_capacity, apps_capacity;
    uint64_t phases; /* which serial phases there were in the last snapshot */
    bool hurry;
};

/* One application, while what is said of it is gathered. */
struct gathering {
    struct asym_app *app;
    struct asym_task *tasks;
    const struct asym_told *told;
    size_t n_told;
    asym_usec now, interval; /* of what is measured */
    bool hurried, has_master;
    double more; /* threads that have just said that they work, and were not counted so */
};

static struct told_source *of(struct asym_source *source)
{
    return (struct told_source *)(void *)((char *)source - offsetof(struct told_source, source));
}

static int reserve(void *array, size_t n, size_t *capacity, size_t size)
{
    void *grown;
    if (n <= *capacity)
        return 0;
    grown = reallocarray(*(void **)array, ASYM_MAX(n, *capacity * 2), size);
    if (!grown)
        return -ENOMEM;
    *(void **)array = grown;
    *capacity = ASYM_MAX(n, *capacity * 2);
    return 0;
}

/* The first of this pid, or where it would be. */
static const struct asym_told *first_of(const struct asym_told *told, size_t n, int32_t pid)
{
    size_t low = 0;
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (told[middle].pid < pid)
            low = middle + 1;
        else
            n = middle;
    }
    return told + low;
}

static const struct asym_told_thread *find(const struct asym_told *t, int32_t tid)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->threads[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n && t->threads[low].tid == tid ? &t->threads[low] : NULL;
}

/* The part of the interval that it is known to have spun for. */
static double part_of(const struct gathering *g, const struct asym_told_thread *t)
{
    const asym_usec spun = g->now > t->since ? g->now - t->since : 0;
    return t->since == 0 || spun >= g->interval ? 1 : (double)spun / (double)g->interval;
}

/* Counted as far as it was runnable, it is counted for no more than the rest of the interval. */
static void leave_out(struct gathering *g, struct asym_task *task, double part)
{
    const double less = ASYM_MAX(0.0, task->runnable - (1 - part));
    if (part >= 1)
        task->flags |= ASYM_TASK_SPINNING;
    g->app->runnable_mean = ASYM_MAX(0.0, g->app->runnable_mean - less);
    g->app->runnable_instant -= task->state == 'R' && g->app->runnable_instant > 0;
}

static void gather_task(struct gathering *g, struct asym_task *task, const struct asym_told_thread *t)
{
    if (t->spins) {
        leave_out(g, task, part_of(g, t));
    } else if (t->master && !g->has_master) {
        task->flags |= ASYM_TASK_MASTER;
        g->has_master = true;
    }
    if (g->hurried && t->works && t->news) {
        g->more += ASYM_MAX(0.0, 1.0 - task->runnable);
        g->app->runnable_instant += task->state != 'R';
    }
}

/* Threads that say since the last look that they work. */
static size_t count_news(const struct asym_told *t)
{
    size_t n = 0;
    for (size_t k = 0; k < t->n; k++)
        n += t->threads[k].works && t->threads[k].news;
    return n;
}

/* The tasks first..end are one process's: hold them against one page of it. */
static void gather_page(struct gathering *g, const struct asym_told *t, size_t first, size_t end)
{
    /* Those that slept at the last look are not among the tasks. */
    size_t unlisted = g->hurried ? count_news(t) : 0;
    for (size_t i = first; i < end; i++) {
        const struct asym_told_thread *thread = find(t, g->tasks[i].id.tid);
        if (!thread)
            continue;
        unlisted -= g->hurried && thread->works && thread->news;
        /* A program with two pages may say two things of a thread: the first counts. */
        if (!(g->tasks[i].flags & (ASYM_TASK_MASTER | ASYM_TASK_SPINNING)))
            gather_task(g, &g->tasks[i], thread);
    }
    g->more += (double)unlisted;
    g->app->runnable_instant += (uint32_t)unlisted;
}

static void gather_process(struct gathering *g, const struct asym_proc *proc, size_t first, size_t end)
{
    const struct asym_told *t = first_of(g->told, g->n_told, proc->id.tgid);
    for (; t < g->told + g->n_told && t->pid == proc->id.tgid; t++) {
        if (t->start != proc->id.start)
            continue;
        g->app->speaks = true;
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
    /* It never has more threads than it has. */
    g->app->runnable_mean = ASYM_MIN(g->app->runnable_mean + g->more, (double)g->app->n_threads);
    g->app->runnable_instant = ASYM_MIN(g->app->runnable_instant, g->app->n_threads);
}

/* Changes whenever a serial phase begins or ends somewhere: a hash of who is in one. */
static uint64_t phases_of(const struct asym_told *told, size_t n)
{
    uint64_t h = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < told[i].n; k++) {
            if (!told[i].threads[k].master)
                continue;
            h = (h ^ (uint64_t)told[i].start ^ (uint64_t)told[i].threads[k].tid << 32) * UINT64_C(0x9E3779B97F4A7C15);
            h ^= h >> 29;
        }
    }
    return h;
}

static int overlay(struct told_source *t, struct asym_snapshot *s, const struct asym_told *told, size_t n, bool hurried)
{
    if (reserve(&t->tasks, s->n_tasks, &t->tasks_capacity, sizeof *t->tasks) < 0 ||
        reserve(&t->apps, s->n_apps, &t->apps_capacity, sizeof *t->apps) < 0)
        return -ENOMEM;
    if (s->n_tasks > 0)
        memcpy(t->tasks, s->tasks, s->n_tasks * sizeof *t->tasks);
    if (s->n_apps > 0)
        memcpy(t->apps, s->apps, s->n_apps * sizeof *t->apps);
    struct gathering g = {.tasks = t->tasks,
                          .told = told,
                          .n_told = n,
                          .now = t->config.now(),
                          .interval = s->interval,
                          .hurried = hurried};
    for (size_t a = 0; a < s->n_apps; a++) {
        g.app = &t->apps[a];
        gather_app(&g, s);
    }
    s->tasks = t->tasks;
    s->apps = t->apps;
    return 0;
}

static uint32_t count_programs(const struct asym_told *told, size_t n)
{
    uint32_t programs = 0;
    for (size_t i = 0; i < n; i++)
        programs += i == 0 || told[i].pid != told[i - 1].pid;
    return programs;
}

static int told_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct told_source *t = of(source);
    const struct asym_told *told;
    struct asym_snapshot s;
    const bool hurried = t->hurry && t->config.again;
    t->hurry = false;
    /* Before and after: a wait that is the same in both is no short one. */
    t->config.teller->ask(t->config.teller, t->config.now(), hurried ? ASYM_ASK_HURRIED : 0, &told);
    /* Where the inner source has none to hand out again, it looks. */
    int r = hurried ? t->config.again(t->config.inner, &s) : -ENODATA;
    const bool whole = r == -ENODATA;
    if (whole)
        r = t->config.inner->next(t->config.inner, &s);
    if (r < 0 || (r == 0 && whole))
        return r;
    const unsigned how = whole ? ASYM_ASK_FINAL : ASYM_ASK_FINAL | ASYM_ASK_HURRIED;
    const size_t n = t->config.teller->ask(t->config.teller, t->config.now(), how, &told);
    if (n > 0 && overlay(t, &s, told, n, !whole) < 0)
        return -ENOMEM;
    const uint64_t phases = phases_of(told, n);
    s.urgent = phases != t->phases;
    s.sight.n_speaking = count_programs(told, n);
    t->phases = phases;
    *ret = s;
    return 1;
}

static void told_close(struct asym_source *source)
{
    struct told_source *t = of(source);
    free(t->tasks);
    free(t->apps);
    free(t);
}

int asym_told_source_new(const struct asym_told_config *config, struct asym_source **ret_source)
{
    struct told_source *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->source = (struct asym_source){.next = told_next, .close = told_close};
    t->config = *config;
    *ret_source = &t->source;
    return 0;
}

void asym_told_source_hurry(struct asym_source *source)
{
    of(source)->hurry = true;
}
