/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/perf/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/sort.h"

/* A thread that is counted, and its counts at the last sample. */
struct watched {
    struct asym_taskid id;
    struct asym_counts last;
    uint64_t wanted; /* the last cycle whose plan requested it */
    asym_usec since; /* snapshot time of its first cycle */
};

struct asym_sampler {
    struct asym_source source;
    struct asym_sampler_config config;
    struct watched *watched; /* sorted by tid */
    size_t n, capacity;
    struct asym_sample *samples;
    size_t samples_capacity;
    uint64_t cycle;
    struct asym_taskid refused; /* the budget was spent at it: the next cycle begins there; tid 0: it was not */
    int32_t blocked;            /* the next cycle begins behind the threads of this process; 0: none */
    size_t stopped_at;          /* with one of these two: its task in the snapshot of then */
    uint32_t n_refused;         /* in the last cycle */
    uint32_t n_without_place;   /* of these: no descriptor was left */
    const char *refused_why;
    bool counts_all;
};

static struct asym_sampler *sampler_of(struct asym_source *source)
{
    return (struct asym_sampler *)(void *)source;
}

static bool is_wanted(const struct asym_sampler *m, const struct asym_plan_task *planned)
{
    return planned->counted || m->counts_all;
}

static size_t position(const struct asym_sampler *m, int32_t tid)
{
    return ASYM_LOWER_BOUND(m->watched, m->n, id.tid, tid);
}

static struct watched *find_watched(struct asym_sampler *m, const struct asym_taskid *id)
{
    const size_t i = position(m, id->tid);
    struct watched *w = i < m->n ? &m->watched[i] : NULL;
    return w && w->id.tid == id->tid && w->id.start == id->start ? w : NULL;
}

static void drop(struct asym_sampler *m, size_t i)
{
    m->config.counters->unwatch(m->config.counters, &m->watched[i].id);
    memmove(m->watched + i, m->watched + i + 1, (m->n - i - 1) * sizeof *m->watched);
    m->n--;
}

static int add_watched(struct asym_sampler *m, const struct asym_taskid *id, asym_usec now)
{
    struct asym_counters *c = m->config.counters;
    struct watched w = {.id = *id, .wanted = m->cycle, .since = now};
    size_t i = position(m, id->tid);
    if (i < m->n && m->watched[i].id.tid == id->tid)
        drop(m, i); /* the kernel reused the number: the entry is of an earlier thread */
    int r = asym_grow(&m->watched, m->n, &m->capacity, sizeof *m->watched);
    if (r >= 0)
        r = c->watch(c, id);
    if (r < 0)
        return r;
    r = c->read(c, id, &w.last);
    if (r < 0) {
        c->unwatch(c, id);
        return r;
    }
    memmove(m->watched + i + 1, m->watched + i, (m->n - i) * sizeof *m->watched);
    m->watched[i] = w;
    m->n++;
    return 0;
}

/* -1 if the counter is not valid at both ends. */
static double delta(const struct asym_counts *a, const struct asym_counts *b, enum asym_counter k)
{
    if (!(a->valid & b->valid & 1u << k) || b->value[k] < a->value[k])
        return -1;
    return (double)(b->value[k] - a->value[k]);
}

/* False if the thread did not run, or was never counted while it ran because other users had the counters. */
static bool take_sample(struct asym_sampler *m, struct watched *w, uint32_t task, struct asym_sample *ret)
{
    struct asym_counts now;
    if (m->config.counters->read(m->config.counters, &w->id, &now) < 0)
        return false;
    *ret = (struct asym_sample){
        .task = task,
        .seconds = (double)(now.on_cpu_ns - w->last.on_cpu_ns) / 1e9,
        .instructions = delta(&w->last, &now, ASYM_COUNTER_INSTRUCTIONS),
        .cycles = delta(&w->last, &now, ASYM_COUNTER_CYCLES),
        .llc_misses = delta(&w->last, &now, ASYM_COUNTER_LLC_MISSES),
    };
    w->last = now;
    return ret->seconds > 0 && now.running_share > 0;
}

static int take_samples(struct asym_sampler *m, struct asym_snapshot *s)
{
    if (asym_reserve(&m->samples, m->n, &m->samples_capacity, sizeof *m->samples) < 0)
        return -ENOMEM;
    size_t n = 0;
    for (uint32_t i = 0; m->n > 0 && i < s->n_tasks && n < m->n; i++) {
        struct watched *w = find_watched(m, &s->tasks[i].id);
        n += w && take_sample(m, w, i, &m->samples[n]);
    }
    s->samples = m->samples;
    s->n_samples = n;
    return 0;
}

static int sampler_next(struct asym_source *source, struct asym_snapshot *ret)
{
    static const enum asym_signal ours[] = {ASYM_SIGNAL_IPC, ASYM_SIGNAL_STALL, ASYM_SIGNAL_PROFILE};
    struct asym_sampler *m = sampler_of(source);
    struct asym_snapshot s;
    int r = source->inner->next(source->inner, &s);
    if (r <= 0)
        return r;
    r = take_samples(m, &s);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ASYM_LENGTH(ours); i++)
        s.missing[ours[i]] = m->config.missing[ours[i]];
    s.coverage.n_uncounted = m->n_refused;
    s.coverage.uncounted_why = m->refused_why;
    *ret = s;
    return 1;
}

static void refuse(struct asym_sampler *m, int error)
{
    const char *remedy;
    if (error == -ESRCH)
        return;
    m->n_refused++;
    m->n_without_place += error == -EDQUOT;
    asym_counters_why(error, &m->refused_why, &remedy);
}

/* Runs before new threads are added, to free descriptors of the budget. */
static void unwatch_unwanted(struct asym_sampler *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->watched[i].wanted == m->cycle)
            m->watched[kept++] = m->watched[i];
        else
            m->config.counters->unwatch(m->config.counters, &m->watched[i].id);
    }
    m->n = kept;
}

/* Returns the thread that has been counted for longest; n: none for a whole turn. */
static size_t find_oldest(const struct asym_sampler *m, asym_usec now)
{
    size_t oldest = m->n;
    for (size_t i = 0; i < m->n; i++)
        if (now - m->watched[i].since >= ASYM_SAMPLER_TURN &&
            (oldest == m->n || m->watched[i].since < m->watched[oldest].since))
            oldest = i;
    return oldest;
}

/* While the budget is spent, threads that had their turn make room for as many others. */
static void end_turns(struct asym_sampler *m, uint32_t n_others, asym_usec now)
{
    for (uint32_t n = 0; m->refused.tid > 0 && n < ASYM_MIN(n_others, (uint32_t)ASYM_SAMPLER_TURNS); n++) {
        const size_t i = find_oldest(m, now);
        if (i == m->n)
            return;
        drop(m, i);
    }
}

/* Returns whether asymd tries no further thread in this cycle. */
static bool is_final(int error)
{
    return error == -EINTR || error == -EDQUOT || error == -EMFILE || error == -ENFILE;
}

/* Returns the task; the first one behind the last. */
static size_t wrap(size_t i, size_t n)
{
    return i < n ? i : 0;
}

/* Returns the first task behind those of the process; gone if it is not listed. The threads of a process stand together. */
static size_t behind_process(const struct asym_snapshot *snapshot, size_t n, int32_t tgid, size_t gone)
{
    size_t i = 0;
    while (i < n && snapshot->tasks[i].id.tgid != tgid)
        i++;
    if (i == n)
        return wrap(gone, n);
    while (i < n && snapshot->tasks[i].id.tgid == tgid)
        i++;
    return wrap(i, n);
}

/*
 * Returns the task at which the cycle begins: where the last one stopped. If what stopped it has ended, the cycle does not begin at
 * the first task again: else a user whose threads stand first, and end soon, would keep all others from being counted.
 */
static size_t find_first(const struct asym_sampler *m, const struct asym_snapshot *snapshot, size_t n)
{
    if (m->blocked)
        return behind_process(snapshot, n, m->blocked, m->stopped_at + 1);
    if (m->refused.tid == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (snapshot->tasks[i].id.tid == m->refused.tid && snapshot->tasks[i].id.start == m->refused.start)
            return i;
    return behind_process(snapshot, n, m->refused.tgid, m->stopped_at);
}

/*
 * EINTR: a process blocks perf_event_open until the time limit, for each of its threads. Stop after one such process in a cycle.
 * The next cycle starts behind it, so that it cannot keep the processes behind it from being counted. All threads that are not
 * tried are reported with the error that ended the cycle.
 */
static void add_wanted(struct asym_sampler *m, const struct asym_snapshot *snapshot, const struct asym_plan *plan)
{
    const size_t first = find_first(m, snapshot, plan->n_tasks);
    int error = 0;
    m->blocked = 0;
    m->refused = (struct asym_taskid){.tid = 0};
    for (size_t k = 0; k < plan->n_tasks; k++) {
        const size_t i = (first + k) % plan->n_tasks;
        if (!is_wanted(m, &plan->tasks[i]) || find_watched(m, &snapshot->tasks[i].id))
            continue;
        if (!is_final(error)) {
            error = add_watched(m, &snapshot->tasks[i].id, snapshot->now);
            m->stopped_at = i;
            if (error == -EINTR)
                m->blocked = snapshot->tasks[i].id.tgid;
            if (error == -EDQUOT)
                m->refused = snapshot->tasks[i].id;
        }
        if (error < 0)
            refuse(m, error);
    }
}

static void follow(struct asym_sampler *m, const struct asym_snapshot *snapshot, const struct asym_plan *plan)
{
    const uint32_t n_without_place = m->n_without_place;
    m->cycle++;
    m->n_refused = m->n_without_place = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        struct watched *w = is_wanted(m, &plan->tasks[i]) ? find_watched(m, &snapshot->tasks[i].id) : NULL;
        if (w)
            w->wanted = m->cycle;
    }
    unwatch_unwanted(m);
    end_turns(m, n_without_place, snapshot->now);
    add_wanted(m, snapshot, plan);
}

/* The counters start last: by then the threads are on their planned CPUs. */
static void sampler_feedback(struct asym_source *source, const struct asym_feedback *feedback)
{
    struct asym_sampler *m = sampler_of(source);
    if (m->config.counters)
        follow(m, feedback->snapshot, feedback->plan);
}

void asym_sampler_set(struct asym_source *sampler, struct asym_counters *counters,
                      const char *const missing[ASYM_N_SIGNALS])
{
    struct asym_sampler *m = sampler_of(sampler);
    if (m->config.counters)
        m->config.counters->close(m->config.counters);
    m->config.counters = counters;
    m->n = m->n_refused = m->n_without_place = 0;
    memcpy(m->config.missing, missing, sizeof m->config.missing);
}

void asym_sampler_count_all(struct asym_source *sampler)
{
    sampler_of(sampler)->counts_all = true;
}

static void sampler_close(struct asym_source *source)
{
    struct asym_sampler *m = sampler_of(source);
    if (m->config.counters)
        m->config.counters->close(m->config.counters);
    free(m->watched);
    free(m->samples);
    free(m);
}

int asym_sampler_new(const struct asym_sampler_config *config, struct asym_source **ret_source)
{
    struct asym_sampler *m = calloc(1, sizeof *m);
    if (!m) {
        if (config->counters)
            config->counters->close(config->counters);
        return -ENOMEM;
    }
    m->source = (struct asym_source){
        .inner = config->source, .next = sampler_next, .feedback = sampler_feedback, .close = sampler_close};
    m->config = *config;
    *ret_source = &m->source;
    return 0;
}
