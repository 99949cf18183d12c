/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "record/record.h"

/* The format has these numbers (docs/record-format.md). */
_Static_assert(ASYM_OUTCOME_DONE == 0 && ASYM_OUTCOME_GONE == 1 && ASYM_OUTCOME_RETRY == 2 &&
                   ASYM_OUTCOME_HANDS_OFF == 3,
               "outcomes keep their numbers");
_Static_assert(ASYM_RULE_CLASS_AUTO == 0 && ASYM_RULE_CLASS_SERIAL == 1 && ASYM_RULE_CLASS_PARALLEL == 2,
               "classes of a rule keep their numbers");

/* Points in time and durations, microseconds. */
#define MAX_TIME (UINT64_C(1) << 62)

/* The most that the runnable mean of an application may differ from the sum over its threads. */
#define MAX_DIFFERENCE (INT64_C(1) << 40)

void asym_record_codec_reset(struct asym_record_codec *c)
{
    c->named += c->tasks.n;
    asym_record_known_reset(&c->tasks);
    asym_record_known_reset(&c->procs);
    asym_record_known_reset(&c->apps);
    asym_mask_table_done(&c->masks);
    asym_record_texts_reset(&c->texts);
    asym_record_profiles_reset(&c->profiles);
    c->now = 0;
}

void asym_record_codec_done(struct asym_record_codec *c)
{
    struct asym_pool *pools[] = {&c->out_tasks,   &c->out_procs, &c->out_facts, &c->out_apps,
                                 &c->out_samples, &c->refs,      &c->outcomes};
    asym_record_codec_reset(c);
    asym_record_known_done(&c->tasks);
    asym_record_known_done(&c->procs);
    asym_record_known_done(&c->apps);
    asym_record_texts_done(&c->texts);
    asym_record_profiles_done(&c->profiles);
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
        asym_pool_done(pools[i]);
}

bool asym_record_codec_has_room(const struct asym_record_codec *c, const struct asym_snapshot *s)
{
    return c->tasks.n + s->n_tasks <= ASYM_RECORD_MAX_KNOWN && c->procs.n + s->n_procs <= ASYM_RECORD_MAX_KNOWN &&
           c->apps.n + s->n_apps <= ASYM_RECORD_MAX_KNOWN && c->masks.n + 2 * s->n_tasks <= ASYM_RECORD_MAX_MASKS &&
           c->texts.n + s->n_procs + s->n_apps + 64 <= ASYM_RECORD_MAX_TEXTS &&
           c->profiles.n + s->n_procs <= ASYM_RECORD_MAX_PROFILES;
}

/* Returns memory for n items with a copy of from while writing, and zeros while reading. NULL after a fault. */
static void *take(struct asym_record_io *io, struct asym_pool *pool, const void *from, size_t n, size_t size)
{
    void *items = asym_pool_reserve(pool, n + 1, size);
    if (!items && io->error == 0) {
        io->error = -ENOMEM;
        io->fault = "no memory";
    }
    if (!items)
        return NULL;
    if (io->writing && n > 0)
        memcpy(items, from, n * size);
    else
        memset(items, 0, n * size);
    return items;
}

/* Codes which items a list names, and keeps their numbers in c->refs. Returns the ids' list; NULL after a fault. */
static uint32_t *code_ids(struct asym_record_io *io, struct asym_record_codec *c, struct asym_record_known *known,
                          void *items, size_t n, size_t size)
{
    uint32_t *refs = asym_pool_reserve(&c->refs, n + 1, sizeof *refs);
    if (!refs) {
        io->error = io->error < 0 ? io->error : -ENOMEM;
        return NULL;
    }
    known->next = 0;
    for (size_t i = 0; i < n; i++) {
        struct asym_taskid *id = (struct asym_taskid *)(void *)((char *)items + i * size);
        if (!asym_record_item(io, known, id, c->snapshot))
            return NULL;
        refs[i] = known->next - 1;
    }
    return refs;
}

static void code_comm(struct asym_record_io *io, char comm[ASYM_COMM_LEN], char last[ASYM_COMM_LEN])
{
    /* The bytes after the NUL are no part of the name. */
    if (io->writing) {
        const size_t len = strnlen(comm, ASYM_COMM_LEN - 1);
        memset(comm + len, 0, ASYM_COMM_LEN - len);
    }
    if (asym_record_bool(io, memcmp(comm, last, ASYM_COMM_LEN) != 0)) {
        asym_record_bytes(io, comm, ASYM_COMM_LEN);
        memcpy(last, comm, ASYM_COMM_LEN);
    }
    memcpy(comm, last, ASYM_COMM_LEN);
    if (comm[ASYM_COMM_LEN - 1] != '\0')
        asym_record_io_fail(io, "a name has no end");
}

/* Codes the number of a mask as the distance from the last one, and the mask the first time. Returns its address. */
static const struct asym_mask *code_mask(struct asym_record_io *io, struct asym_mask_table *masks,
                                         const struct asym_mask *mask, uint32_t *last)
{
    const uint32_t before = masks->n;
    uint32_t number = io->writing ? asym_mask_table_id(masks, mask) : 0;
    number = (uint32_t)asym_record_delta(io, number, *last, 0, (int64_t)before + 1);
    if (number > before) {
        struct asym_mask content = io->writing ? *mask : (struct asym_mask){.w = {0}};
        asym_record_mask(io, &content);
        if (before == ASYM_RECORD_MAX_MASKS || asym_mask_table_id(masks, &content) != number)
            asym_record_io_fail(io, "a mask has two numbers, or there are too many");
    }
    if (masks->failed)
        io->error = -ENOMEM;
    if (!asym_record_io_ok(io))
        return asym_mask_table_at(masks, ASYM_MASK_NONE);
    *last = number;
    return asym_mask_table_at(masks, number);
}

/* Codes a field of all items: each value as its distance from the last one of the same item. */
#define COLUMN(io, known, refs, items, n, member, field, min, max)                                                     \
    for (size_t i = 0; i < (n) && asym_record_io_ok(io); i++) {                                                        \
        struct asym_record_item *item = asym_record_item_at((known), (refs)[i]);                                       \
        (items)[i].field = (__typeof__((items)[i].field))asym_record_delta(                                            \
            (io), (int64_t)(items)[i].field, (int64_t)item->last.member.field, (min), (max));                          \
        item->last.member.field = (items)[i].field;                                                                    \
    }

static uint32_t round_share(double share)
{
    if (!(share > 0))
        return 0;
    /* A thread that ran for a moment did run. */
    const double parts = fmin(share, 1) * ASYM_RECORD_SHARE;
    return parts < 1 ? 1 : (uint32_t)lround(parts);
}

static double code_share(struct asym_record_io *io, double share, uint32_t *last)
{
    *last = (uint32_t)asym_record_delta(io, round_share(share), *last, 0, ASYM_RECORD_SHARE);
    return (double)*last / ASYM_RECORD_SHARE;
}

static void code_task_rest(struct asym_record_io *io, struct asym_record_codec *c, struct asym_task *tasks, size_t n,
                           const uint32_t *refs)
{
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++) {
        struct asym_record_item *item = asym_record_item_at(&c->tasks, refs[i]);
        tasks[i].mask = code_mask(io, &c->masks, tasks[i].mask, &item->mask);
        tasks[i].cpuset = code_mask(io, &c->masks, tasks[i].cpuset, &item->cpuset);
    }
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        code_comm(io, tasks[i].comm, asym_record_item_at(&c->tasks, refs[i])->last.task.comm);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        tasks[i].runnable = code_share(io, tasks[i].runnable, &asym_record_item_at(&c->tasks, refs[i])->runnable);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        tasks[i].running = code_share(io, tasks[i].running, &asym_record_item_at(&c->tasks, refs[i])->running);
}

static void code_tasks(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    const size_t n = s->n_tasks;
    struct asym_task *tasks = take(io, &c->out_tasks, s->tasks, n, sizeof *tasks);
    s->tasks = tasks;
    const uint32_t *refs = tasks ? code_ids(io, c, &c->tasks, tasks, n, sizeof *tasks) : NULL;
    if (!refs)
        return;
    int64_t last = 0;
    for (size_t i = 0; i < n; i++)
        last = tasks[i].proc = (uint32_t)asym_record_delta(io, tasks[i].proc, last, 0, (int64_t)s->n_procs - 1);
    COLUMN(io, &c->tasks, refs, tasks, n, task, flags, 0, UINT32_MAX)
    COLUMN(io, &c->tasks, refs, tasks, n, task, cpu, 0, ASYM_MAX_CPUS - 1)
    COLUMN(io, &c->tasks, refs, tasks, n, task, nice, -20, 19)
    COLUMN(io, &c->tasks, refs, tasks, n, task, sched, 0, UINT8_MAX)
    COLUMN(io, &c->tasks, refs, tasks, n, task, state, 0, 127)
    code_task_rest(io, c, tasks, n, refs);
}

static void code_facts(struct asym_record_io *io, struct asym_rule_facts *facts)
{
    asym_record_mask(io, &facts->cpus);
    facts->nice = (int8_t)asym_record_delta(io, facts->nice, 0, -20, 19);
    facts->has_nice = asym_record_bool(io, facts->has_nice);
    facts->library = asym_record_bool(io, facts->library);
    facts->policy_class = (enum asym_rule_class)asym_record_u64(io, facts->policy_class, ASYM_RULE_CLASS_PARALLEL);
}

/* Few programs have a rule with more than an action, and zstd finds that they repeat. */
static void code_rule_facts(struct asym_record_io *io, struct asym_record_codec *c, struct asym_proc *procs, size_t n)
{
    struct asym_rule_facts *facts = asym_pool_reserve(&c->out_facts, n + 1, sizeof *facts);
    if (!facts && io->error == 0)
        io->error = -ENOMEM;
    for (size_t i = 0; facts && i < n && asym_record_io_ok(io); i++) {
        const struct asym_rule_facts *had = procs[i].rule_facts;
        procs[i].rule_facts = NULL;
        if (!asym_record_bool(io, had != NULL))
            continue;
        facts[i] = io->writing ? *had : (struct asym_rule_facts){.nice = 0};
        code_facts(io, &facts[i]);
        procs[i].rule_facts = &facts[i];
    }
}

static void code_procs(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    const size_t n = s->n_procs;
    struct asym_proc *procs = take(io, &c->out_procs, s->procs, n, sizeof *procs);
    s->procs = procs;
    const uint32_t *refs = procs ? code_ids(io, c, &c->procs, procs, n, sizeof *procs) : NULL;
    if (!refs)
        return;
    int64_t last = 0;
    for (size_t i = 0; i < n; i++)
        last = procs[i].app = (uint32_t)asym_record_delta(io, procs[i].app, last, 0, (int64_t)s->n_apps - 1);
    COLUMN(io, &c->procs, refs, procs, n, proc, ppid, 0, INT32_MAX)
    COLUMN(io, &c->procs, refs, procs, n, proc, flags, 0, UINT32_MAX)
    COLUMN(io, &c->procs, refs, procs, n, proc, born, 0, (int64_t)MAX_TIME)
    COLUMN(io, &c->procs, refs, procs, n, proc, last_fork, 0, (int64_t)MAX_TIME)
    COLUMN(io, &c->procs, refs, procs, n, proc, last_exec, 0, (int64_t)MAX_TIME)
    COLUMN(io, &c->procs, refs, procs, n, proc, adopted, 0, (int64_t)MAX_TIME)
    COLUMN(io, &c->procs, refs, procs, n, proc, rule, 0, ASYM_RULE_UNLISTED)
    COLUMN(io, &c->procs, refs, procs, n, proc, nice_group, 0, INT32_MAX)
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++) {
        procs[i].rule_name = asym_record_text(io, &c->texts, procs[i].rule_name);
        procs[i].profile = asym_record_profile(io, &c->profiles, procs[i].profile);
    }
    code_rule_facts(io, c, procs, n);
}

/* The tasks of the applications follow each other, and each belongs to its application. */
static void check_order(struct asym_record_io *io, const struct asym_snapshot *s)
{
    uint32_t at = 0;
    for (size_t a = 0; a < s->n_apps; a++) {
        const struct asym_app *app = &s->apps[a];
        if (app->first_task != at || app->n_tasks > s->n_tasks - at) {
            asym_record_io_fail(io, "the threads are not in the order of their applications");
            return;
        }
        for (uint32_t end = at + app->n_tasks; at < end; at++)
            if (s->procs[s->tasks[at].proc].app != a)
                asym_record_io_fail(io, "a thread belongs to another application");
    }
    if (at != s->n_tasks)
        asym_record_io_fail(io, "a thread belongs to no application");
}

/* The runnable threads of an application, in 1 / ASYM_RECORD_SHARE. */
static int64_t runnable_of(const struct asym_snapshot *s, const struct asym_app *app)
{
    int64_t sum = 0;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++)
        if (!(s->tasks[i].flags & ASYM_TASK_SPINNING))
            sum += (int64_t)(s->tasks[i].runnable * ASYM_RECORD_SHARE);
    return sum;
}

static void code_mean(struct asym_record_io *io, const struct asym_snapshot *s, struct asym_app *app,
                      struct asym_record_item *item)
{
    const int64_t sum = runnable_of(s, app);
    const double most = (double)MAX_DIFFERENCE / 4;
    const int64_t mean = io->writing ? llround(fmin(fmax(app->runnable_mean * ASYM_RECORD_SHARE, 0), most)) : 0;
    item->difference = asym_record_delta(io, mean - sum, item->difference, -MAX_DIFFERENCE, MAX_DIFFERENCE);
    if (sum + item->difference < 0)
        asym_record_io_fail(io, "a runnable count is below 0");
    app->runnable_mean = (double)(sum + item->difference) / ASYM_RECORD_SHARE;
}

/* Codes the lists of threads of the applications. An application without threads begins where the one before it ends. */
static void code_extents(struct asym_record_io *io, struct asym_app *apps, size_t n)
{
    uint64_t at = 0;
    for (size_t a = 0; a < n && asym_record_io_ok(io); a++) {
        apps[a].n_tasks = (uint32_t)asym_record_u64(io, apps[a].n_tasks, ASYM_RECORD_MAX_TASKS);
        if (!io->writing || apps[a].n_tasks == 0)
            apps[a].first_task = (uint32_t)at;
        at += apps[a].n_tasks;
        if (at > ASYM_RECORD_MAX_TASKS)
            asym_record_io_fail(io, "the applications list too many threads");
    }
}

static void code_apps(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    const size_t n = s->n_apps;
    struct asym_app *apps = take(io, &c->out_apps, s->apps, n, sizeof *apps);
    s->apps = apps;
    const uint32_t *refs = apps ? code_ids(io, c, &c->apps, apps, n, sizeof *apps) : NULL;
    if (!refs)
        return;
    code_extents(io, apps, n);
    COLUMN(io, &c->apps, refs, apps, n, app, n_procs, 0, UINT32_MAX)
    COLUMN(io, &c->apps, refs, apps, n, app, n_threads, 0, UINT32_MAX)
    COLUMN(io, &c->apps, refs, apps, n, app, runnable_instant, 0, UINT32_MAX)
    COLUMN(io, &c->apps, refs, apps, n, app, uses_rtx, 0, 1)
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++) {
        code_comm(io, apps[i].comm, asym_record_item_at(&c->apps, refs[i])->last.app.comm);
        apps[i].cgroup = asym_record_text(io, &c->texts, apps[i].cgroup);
    }
    if (asym_record_io_ok(io))
        check_order(io, s);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        code_mean(io, s, &apps[i], asym_record_item_at(&c->apps, refs[i]));
}

static void code_samples(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    struct asym_sample *samples = take(io, &c->out_samples, s->samples, s->n_samples, sizeof *samples);
    s->samples = samples;
    int64_t last = -1;
    for (size_t i = 0; samples && i < s->n_samples && asym_record_io_ok(io); i++) {
        last = asym_record_delta(io, samples[i].task, last, last + 1, (int64_t)s->n_tasks - 1);
        samples[i].task = (uint32_t)last;
        samples[i].seconds = asym_record_double(io, samples[i].seconds);
        samples[i].instructions = asym_record_double(io, samples[i].instructions);
        samples[i].cycles = asym_record_double(io, samples[i].cycles);
        samples[i].llc_misses = asym_record_double(io, samples[i].llc_misses);
    }
}

static void code_coverage(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    struct asym_coverage *v = &s->coverage;
    uint32_t *const counts[] = {&v->n_procs,  &v->n_threads,   &v->n_denied, &v->n_foreign,
                                &v->n_unkept, &v->n_reporting, &v->n_unread, &v->n_uncounted};
    bool *const facts[] = {&v->sampled, &v->hidepid, &v->process_events, &s->urgent, &s->refreshed};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        *counts[i] = (uint32_t)asym_record_u64(io, *counts[i], UINT32_MAX);
    v->n_lost_events = asym_record_u64(io, v->n_lost_events, UINT64_MAX);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        *facts[i] = asym_record_bool(io, *facts[i]);
    v->uncounted_why = asym_record_text(io, &c->texts, v->uncounted_why);
    v->process_events_why = asym_record_text(io, &c->texts, v->process_events_why);
    for (size_t i = 0; i < ASYM_N_SIGNALS; i++)
        s->missing[i] = asym_record_text(io, &c->texts, s->missing[i]);
}

void asym_record_snapshot(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    c->snapshot++;
    s->now = (asym_usec)asym_record_delta(io, (int64_t)s->now, (int64_t)c->now, (int64_t)c->now, (int64_t)MAX_TIME);
    c->now = s->now;
    s->interval = asym_record_u64(io, s->interval, MAX_TIME);
    code_coverage(io, c, s);
    s->n_apps = asym_record_count(io, s->n_apps, ASYM_RECORD_MAX_TASKS);
    s->n_procs = asym_record_count(io, s->n_procs, ASYM_RECORD_MAX_TASKS);
    s->n_tasks = asym_record_count(io, s->n_tasks, ASYM_RECORD_MAX_TASKS);
    s->n_samples = asym_record_count(io, s->n_samples, s->n_tasks);
    if ((s->n_procs > 0 && s->n_apps == 0) || (s->n_tasks > 0 && s->n_procs == 0))
        asym_record_io_fail(io, "a thread has no process, or a process no application");
    if (asym_record_io_ok(io))
        code_procs(io, c, s);
    if (asym_record_io_ok(io))
        code_tasks(io, c, s);
    if (asym_record_io_ok(io))
        code_apps(io, c, s);
    if (asym_record_io_ok(io))
        code_samples(io, c, s);
}

/* Returns how many outcomes from i on are equal. */
static size_t run_of(const struct asym_outcome *outcomes, size_t i, size_t n)
{
    size_t end = i + 1;
    while (end < n && outcomes[end].kind == outcomes[i].kind && outcomes[end].error == outcomes[i].error)
        end++;
    return end - i;
}

void asym_record_outcomes(struct asym_record_io *io, struct asym_record_codec *c, const struct asym_outcome **outcomes,
                          size_t *n)
{
    *n = (size_t)asym_record_u64(io, *n, ASYM_RECORD_MAX_ACTIONS);
    if (*n > c->named + c->tasks.n)
        asym_record_io_fail(io, "there are more outcomes than threads");
    if (!asym_record_io_ok(io)) {
        *n = 0;
        return;
    }
    struct asym_outcome *list = take(io, &c->outcomes, *outcomes, *n, sizeof *list);
    if (!list)
        return;
    *outcomes = list;
    for (size_t i = 0; i < *n && asym_record_io_ok(io);) {
        const size_t run = (size_t)asym_record_u64(io, io->writing ? run_of(list, i, *n) : 0, *n - i);
        struct asym_outcome one = list[i];
        one.kind = (enum asym_outcome_kind)asym_record_u64(io, one.kind, ASYM_OUTCOME_HANDS_OFF);
        one.error = -(int)asym_record_u64(io, (uint64_t)-one.error, 4095);
        if (run == 0)
            asym_record_io_fail(io, "a run of outcomes is empty");
        for (size_t end = i + run; i < end; i++)
            list[i] = one;
    }
}
