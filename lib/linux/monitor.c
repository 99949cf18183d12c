/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* A thread that is counted, and what it had at the last look. */
struct watched {
    struct asym_taskid id;
    struct asym_counts last;
    uint64_t wanted; /* turn that wanted it last */
};

struct asym_monitor {
    struct asym_source source;
    struct asym_monitor_config config;
    struct watched *watched; /* by tid, rising */
    size_t n, capacity;
    struct asym_sample *samples;
    size_t samples_capacity;
    uint64_t turn;
    uint32_t n_refused; /* in the last turn */
    const char *refused_why;
};

static struct asym_monitor *of(struct asym_source *source)
{
    return (struct asym_monitor *)(void *)source;
}

static size_t position(const struct asym_monitor *m, int32_t tid)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->watched[middle].id.tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct watched *find(struct asym_monitor *m, const struct asym_taskid *id)
{
    const size_t i = position(m, id->tid);
    struct watched *w = i < m->n ? &m->watched[i] : NULL;
    return w && w->id.tid == id->tid && w->id.start == id->start ? w : NULL;
}

static void drop(struct asym_monitor *m, size_t i)
{
    m->config.counters->unwatch(m->config.counters, &m->watched[i].id);
    memmove(m->watched + i, m->watched + i + 1, (m->n - i - 1) * sizeof *m->watched);
    m->n--;
}

static int grow(struct asym_monitor *m)
{
    if (m->n < m->capacity)
        return 0;
    const size_t larger = m->capacity ? m->capacity * 2 : 64;
    struct watched *grown = reallocarray(m->watched, larger, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    m->watched = grown;
    m->capacity = larger;
    return 0;
}

static int add(struct asym_monitor *m, const struct asym_taskid *id)
{
    struct asym_counters *c = m->config.counters;
    struct watched w = {.id = *id, .wanted = m->turn};
    size_t i = position(m, id->tid);
    if (i < m->n && m->watched[i].id.tid == id->tid)
        drop(m, i); /* of a thread that had the number before */
    int r = grow(m);
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

/* -1 where it was not counted at both ends. */
static double delta(const struct asym_counts *a, const struct asym_counts *b, enum asym_counter k)
{
    if (!(a->valid & b->valid & 1u << k) || b->value[k] < a->value[k])
        return -1;
    return (double)(b->value[k] - a->value[k]);
}

/* One that was not counted at all while it ran, as others had the counters, says nothing. */
static bool take_sample(struct asym_monitor *m, struct watched *w, uint32_t task, struct asym_sample *ret)
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

static int take_samples(struct asym_monitor *m, struct asym_snapshot *s)
{
    if (m->n > m->samples_capacity) {
        struct asym_sample *grown = reallocarray(m->samples, m->capacity, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        m->samples = grown;
        m->samples_capacity = m->capacity;
    }
    size_t n = 0;
    for (uint32_t i = 0; m->n > 0 && i < s->n_tasks && n < m->n; i++) {
        struct watched *w = find(m, &s->tasks[i].id);
        n += w && take_sample(m, w, i, &m->samples[n]);
    }
    s->samples = m->samples;
    s->n_samples = n;
    return 0;
}

static int monitor_next(struct asym_source *source, struct asym_snapshot *ret)
{
    static const enum asym_signal ours[] = {ASYM_SIGNAL_IPC, ASYM_SIGNAL_STALL, ASYM_SIGNAL_PROFILE};
    struct asym_monitor *m = of(source);
    struct asym_snapshot s;
    int r = m->config.source->next(m->config.source, &s);
    if (r <= 0)
        return r;
    r = take_samples(m, &s);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ASYM_LENGTH(ours); i++)
        s.missing[ours[i]] = m->config.missing[ours[i]];
    s.sight.n_uncounted = m->n_refused;
    s.sight.uncounted_why = m->refused_why;
    *ret = s;
    return 1;
}

static void refuse(struct asym_monitor *m, int error)
{
    const char *remedy;
    if (error == -ESRCH)
        return;
    m->n_refused++;
    asym_counters_why(error, &m->refused_why, &remedy);
}

/* Before others are added: it makes room within the budget. */
static void let_go(struct asym_monitor *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->watched[i].wanted == m->turn)
            m->watched[kept++] = m->watched[i];
        else
            m->config.counters->unwatch(m->config.counters, &m->watched[i].id);
    }
    m->n = kept;
}

void asym_monitor_follow(struct asym_source *monitor, const struct asym_snapshot *snapshot,
                         const struct asym_plan *plan)
{
    struct asym_monitor *m = of(monitor);
    bool full = false;
    if (!m->config.counters)
        return;
    m->turn++;
    m->n_refused = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        struct watched *w = plan->tasks[i].monitor ? find(m, &snapshot->tasks[i].id) : NULL;
        if (w)
            w->wanted = m->turn;
    }
    let_go(m);
    for (size_t i = 0; i < plan->n_tasks; i++) {
        if (!plan->tasks[i].monitor || find(m, &snapshot->tasks[i].id))
            continue;
        int r = full ? -EDQUOT : add(m, &snapshot->tasks[i].id);
        /* EINTR: a process that holds up the kernel. One a look is enough. */
        full = full || r == -EINTR || r == -EDQUOT || r == -EMFILE || r == -ENFILE;
        if (r < 0)
            refuse(m, r);
    }
}

void asym_monitor_set_source(struct asym_source *monitor, struct asym_source *source)
{
    of(monitor)->config.source = source;
}

void asym_monitor_set(struct asym_source *monitor, struct asym_counters *counters,
                      const char *const missing[ASYM_N_SIGNALS])
{
    struct asym_monitor *m = of(monitor);
    if (m->config.counters)
        m->config.counters->close(m->config.counters);
    m->config.counters = counters;
    m->n = m->n_refused = 0;
    memcpy(m->config.missing, missing, sizeof m->config.missing);
}

static void monitor_close(struct asym_source *source)
{
    struct asym_monitor *m = of(source);
    if (m->config.counters)
        m->config.counters->close(m->config.counters);
    free(m->watched);
    free(m->samples);
    free(m);
}

int asym_monitor_new(const struct asym_monitor_config *config, struct asym_source **ret_source)
{
    struct asym_monitor *m = calloc(1, sizeof *m);
    if (!m) {
        if (config->counters)
            config->counters->close(config->counters);
        return -ENOMEM;
    }
    m->source = (struct asym_source){.next = monitor_next, .close = monitor_close};
    m->config = *config;
    *ret_source = &m->source;
    return 0;
}
