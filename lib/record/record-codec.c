/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

/* The format has these numbers (docs/record-format.md). */
_Static_assert(ASYM_OUTCOME_DONE == 0 && ASYM_OUTCOME_GONE == 1 && ASYM_OUTCOME_RETRY == 2 &&
                   ASYM_OUTCOME_HANDS_OFF == 3,
               "outcomes keep their numbers");
_Static_assert(ASYM_RULE_CLASS_AUTO == 0 && ASYM_RULE_CLASS_SERIAL == 1 && ASYM_RULE_CLASS_PARALLEL == 2,
               "classes of a rule keep their numbers");

/* Points in time and durations, microseconds. */
#define MAX_TIME (UINT64_C(1) << 62)

/* The most runnable threads of an application, in 1 / ASYM_RECORD_SHARE. */
#define MAX_MEAN (UINT64_C(1) << 40)

void asym_record_codec_done(struct asym_record_codec *c)
{
    struct asym_pool *pools[] = {&c->tasks, &c->procs, &c->facts, &c->profiles, &c->apps, &c->samples, &c->outcomes};
    asym_mask_table_done(&c->masks);
    asym_hash_done(&c->ids);
    for (size_t i = 0; i < ASYM_LENGTH(pools); i++)
        asym_pool_done(pools[i]);
}

static void no_memory(struct asym_record_io *io)
{
    if (io->error == 0)
        io->error = -ENOMEM;
}

/* Returns memory for n items with a copy of from while writing, and zeros while reading. NULL after a fault. */
static void *copy_items(struct asym_record_io *io, struct asym_pool *pool, const void *from, size_t n, size_t size)
{
    void *items = asym_pool_reserve(pool, n + 1, size);
    if (!items)
        no_memory(io);
    else if (!io->writing)
        memset(items, 0, n * size);
    else if (n > 0)
        memcpy(items, from, n * size);
    return items;
}

/* Codes a number in its place. */
#define NUMBER(io, place, min, max)                                                                                    \
    ((place) = (__typeof__(place))asym_record_delta((io), (int64_t)(place), 0, (min), (max)))

static void code_id(struct asym_record_io *io, struct asym_taskid *id)
{
    NUMBER(io, id->tid, 0, INT32_MAX);
    NUMBER(io, id->tgid, 0, INT32_MAX);
    NUMBER(io, id->start, INT64_MIN, INT64_MAX);
}

/* Each item of a list begins with its identity. */
static void check_ids(struct asym_record_io *io, struct asym_hash *ids, const void *items, size_t n, size_t size)
{
    asym_hash_clear(ids);
    if (asym_hash_reserve(ids, n) < 0)
        no_memory(io);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++) {
        const struct asym_taskid *id = (const void *)((const char *)items + i * size);
        const uint32_t hash = asym_hash_of_u64((uint64_t)id->tid << 32 ^ id->start);
        ASYM_HASH_FOREACH (k, ids, hash)
            if (asym_taskid_equal((const void *)((const char *)items + k * size), id))
                asym_record_io_fail(io, "a snapshot names a thread, a process or an application twice");
        asym_hash_add(ids, hash, i);
    }
}

/* The bytes after the NUL are no part of the name. */
static void code_comm(struct asym_record_io *io, char comm[ASYM_COMM_LEN])
{
    const size_t n = asym_record_count(io, strnlen(comm, ASYM_COMM_LEN - 1), ASYM_COMM_LEN - 1);
    asym_record_bytes(io, comm, n);
    memset(comm + n, 0, ASYM_COMM_LEN - n);
    if (!io->writing && strlen(comm) != n)
        asym_record_io_fail(io, "a name has a NUL");
}

/* Most threads have the mask of the one before. last: that; NULL: none. */
static const struct asym_mask *code_mask(struct asym_record_io *io, struct asym_mask_table *masks,
                                         const struct asym_mask *mask, const struct asym_mask *last)
{
    if (asym_record_bool(io, io->writing && last && asym_mask_equal(mask, last)) && last)
        return last;
    struct asym_mask content = io->writing ? *mask : (struct asym_mask){.w = {0}};
    asym_record_mask(io, &content);
    if (masks->n >= ASYM_RECORD_MAX_MASKS)
        asym_record_io_fail(io, "there are too many masks");
    mask = asym_mask_table_get(masks, &content);
    if (!mask)
        no_memory(io);
    return mask;
}

static uint32_t round_share(double share)
{
    if (!(share > 0))
        return 0;
    /* A thread that ran for a moment did run. */
    const double parts = fmin(share, 1) * ASYM_RECORD_SHARE;
    return parts < 1 ? 1 : (uint32_t)lround(parts);
}

static double code_share(struct asym_record_io *io, double share)
{
    return (double)asym_record_u64(io, round_share(share), ASYM_RECORD_SHARE) / ASYM_RECORD_SHARE;
}

/* These fields seldom change: zstd finds the row of the snapshot before again. */
static void code_task(struct asym_record_io *io, struct asym_record_codec *c, const struct asym_snapshot *s,
                      struct asym_task *t, const struct asym_task *before)
{
    code_id(io, &t->id);
    NUMBER(io, t->proc, 0, (int64_t)s->n_procs - 1);
    NUMBER(io, t->flags, 0, UINT32_MAX);
    NUMBER(io, t->nice, -20, 19);
    NUMBER(io, t->sched, 0, UINT8_MAX);
    t->mask = code_mask(io, &c->masks, t->mask, before ? before->mask : NULL);
    t->cpuset = code_mask(io, &c->masks, t->cpuset, before ? before->cpuset : NULL);
    code_comm(io, t->comm);
}

/* Fields that change all the time are no part of the rows: they would break these into short matches. */
static void code_tasks(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    const size_t n = s->n_tasks;
    struct asym_task *tasks = copy_items(io, &c->tasks, s->tasks, n, sizeof *tasks);
    s->tasks = tasks;
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        code_task(io, c, s, &tasks[i], i > 0 ? &tasks[i - 1] : NULL);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        NUMBER(io, tasks[i].cpu, 0, ASYM_MAX_CPUS - 1);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        NUMBER(io, tasks[i].state, 0, 127);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        tasks[i].runnable = code_share(io, tasks[i].runnable);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        tasks[i].running = code_share(io, tasks[i].running);
    if (asym_record_io_ok(io))
        check_ids(io, &c->ids, tasks, n, sizeof *tasks);
}

static void code_facts(struct asym_record_io *io, struct asym_rule_facts *facts)
{
    asym_record_mask(io, &facts->cpus);
    facts->nice = (int8_t)asym_record_delta(io, facts->nice, 0, -20, 19);
    facts->has_nice = asym_record_bool(io, facts->has_nice);
    facts->library = asym_record_bool(io, facts->library);
    facts->policy_class = (enum asym_rule_class)asym_record_u64(io, facts->policy_class, ASYM_RULE_CLASS_PARALLEL);
}

/* Figures up to the last type that has some. */
static void code_profile(struct asym_record_io *io, struct asym_profile *p)
{
    size_t n = ASYM_MAX_TYPES;
    while (io->writing && n > 0 && !(p->ips[n - 1] > 0) && !(p->mpki[n - 1] >= 0))
        n--;
    n = asym_record_count(io, n, ASYM_MAX_TYPES);
    for (size_t i = 0; i < ASYM_MAX_TYPES; i++) {
        p->ips[i] = i < n ? asym_record_double(io, p->ips[i]) : 0;
        p->mpki[i] = i < n ? asym_record_double(io, p->mpki[i]) : -1;
    }
}

static void code_proc(struct asym_record_io *io, const struct asym_snapshot *s, struct asym_proc *p,
                      struct asym_rule_facts *facts, struct asym_profile *profile)
{
    code_id(io, &p->id);
    NUMBER(io, p->app, 0, (int64_t)s->n_apps - 1);
    NUMBER(io, p->ppid, 0, INT32_MAX);
    NUMBER(io, p->flags, 0, UINT32_MAX);
    NUMBER(io, p->born, 0, (int64_t)MAX_TIME);
    NUMBER(io, p->last_fork, 0, (int64_t)MAX_TIME);
    NUMBER(io, p->last_exec, 0, (int64_t)MAX_TIME);
    NUMBER(io, p->adopted, 0, (int64_t)MAX_TIME);
    NUMBER(io, p->rule, 0, ASYM_RULE_UNLISTED);
    NUMBER(io, p->nice_group, 0, INT32_MAX);
    p->rule_name = asym_record_text(io, p->rule_name);
    if (asym_record_bool(io, p->rule_facts != NULL)) {
        *facts = io->writing ? *p->rule_facts : (struct asym_rule_facts){.nice = 0};
        code_facts(io, facts);
        p->rule_facts = facts;
    }
    if (asym_record_bool(io, p->profile != NULL)) {
        *profile = io->writing ? *p->profile : (struct asym_profile){.ips = {0}};
        code_profile(io, profile);
        p->profile = profile;
    }
}

static void code_procs(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    const size_t n = s->n_procs;
    struct asym_proc *procs = copy_items(io, &c->procs, s->procs, n, sizeof *procs);
    struct asym_rule_facts *facts = asym_pool_reserve(&c->facts, n + 1, sizeof *facts);
    struct asym_profile *profiles = asym_pool_reserve(&c->profiles, n + 1, sizeof *profiles);
    s->procs = procs;
    if (!facts || !profiles)
        no_memory(io);
    for (size_t i = 0; i < n && asym_record_io_ok(io); i++)
        code_proc(io, s, &procs[i], &facts[i], &profiles[i]);
    if (asym_record_io_ok(io))
        check_ids(io, &c->ids, procs, n, sizeof *procs);
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

/* Threads follow each other by application. An application without threads begins where the one before it ends. */
static void code_app(struct asym_record_io *io, struct asym_app *app, uint64_t at)
{
    code_id(io, &app->id);
    NUMBER(io, app->n_tasks, 0, ASYM_RECORD_MAX_TASKS);
    if (!io->writing || app->n_tasks == 0)
        app->first_task = (uint32_t)at;
    NUMBER(io, app->n_procs, 0, UINT32_MAX);
    NUMBER(io, app->n_threads, 0, UINT32_MAX);
    NUMBER(io, app->runnable_instant, 0, UINT32_MAX);
    app->uses_rtx = asym_record_bool(io, app->uses_rtx);
    code_comm(io, app->comm);
    app->cgroup = asym_record_text(io, app->cgroup);
    const double mean = fmin(fmax(app->runnable_mean * ASYM_RECORD_SHARE, 0), (double)MAX_MEAN);
    app->runnable_mean = (double)asym_record_u64(io, (uint64_t)llround(mean), MAX_MEAN) / ASYM_RECORD_SHARE;
}

static void code_apps(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    const size_t n = s->n_apps;
    struct asym_app *apps = copy_items(io, &c->apps, s->apps, n, sizeof *apps);
    s->apps = apps;
    uint64_t at = 0;
    for (size_t a = 0; a < n && asym_record_io_ok(io); a++) {
        code_app(io, &apps[a], at);
        at += apps[a].n_tasks;
        if (at > ASYM_RECORD_MAX_TASKS)
            asym_record_io_fail(io, "the applications list too many threads");
    }
    if (asym_record_io_ok(io))
        check_order(io, s);
    if (asym_record_io_ok(io))
        check_ids(io, &c->ids, apps, n, sizeof *apps);
}

static void code_samples(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    struct asym_sample *samples = copy_items(io, &c->samples, s->samples, s->n_samples, sizeof *samples);
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

static void code_coverage(struct asym_record_io *io, struct asym_snapshot *s)
{
    struct asym_coverage *v = &s->coverage;
    uint32_t *const counts[] = {&v->n_procs,  &v->n_threads,   &v->n_denied, &v->n_foreign,
                                &v->n_unkept, &v->n_reporting, &v->n_unread, &v->n_uncounted};
    bool *const facts[] = {&v->sampled, &v->hidepid, &v->process_events};
    for (size_t i = 0; i < ASYM_LENGTH(counts); i++)
        *counts[i] = (uint32_t)asym_record_u64(io, *counts[i], UINT32_MAX);
    v->n_lost_events = asym_record_u64(io, v->n_lost_events, UINT64_MAX);
    for (size_t i = 0; i < ASYM_LENGTH(facts); i++)
        *facts[i] = asym_record_bool(io, *facts[i]);
    s->urgent = (enum asym_urgency)asym_record_u64(io, s->urgent, ASYM_URGENT_PHASE);
    s->refreshed = asym_record_bool(io, s->refreshed);
    v->uncounted_why = asym_record_text(io, v->uncounted_why);
    v->process_events_why = asym_record_text(io, v->process_events_why);
    for (size_t i = 0; i < ASYM_N_SIGNALS; i++)
        s->missing[i] = asym_record_text(io, s->missing[i]);
}

void asym_record_snapshot(struct asym_record_io *io, struct asym_record_codec *c, struct asym_snapshot *s)
{
    asym_mask_table_done(&c->masks);
    s->now = asym_record_u64(io, s->now, MAX_TIME);
    s->interval = asym_record_u64(io, s->interval, MAX_TIME);
    code_coverage(io, s);
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
    if (!asym_record_io_ok(io)) {
        *n = 0;
        return;
    }
    struct asym_outcome *list = copy_items(io, &c->outcomes, *outcomes, *n, sizeof *list);
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

/* Machines and the head. */

/* Sources of speeds that a record may name. */
#define MAX_ORIGINS 64
#define NAME_SIZE   16

/* The record has the names of the origins, as a number may mean another source in another version of asymd. */
struct origins {
    size_t n;
    uint8_t of[MAX_ORIGINS]; /* enum asym_origin by the number in the record; ASYM_N_ORIGINS: no such name here */
};
_Static_assert(ASYM_N_ORIGINS <= MAX_ORIGINS, "a record can name all origins");

static uint8_t find_origin(const char *name)
{
    uint8_t origin = 0;
    while (origin < ASYM_N_ORIGINS && strcmp(asym_origin_name((enum asym_origin)origin), name) != 0)
        origin++;
    return origin;
}

static void code_origins(struct asym_record_io *io, struct origins *o)
{
    o->n = asym_record_count(io, ASYM_N_ORIGINS, MAX_ORIGINS);
    for (size_t i = 0; i < o->n; i++) {
        char name[NAME_SIZE] = "";
        if (io->writing)
            snprintf(name, sizeof name, "%s", asym_origin_name((enum asym_origin)i));
        asym_record_bytes(io, name, sizeof name);
        name[sizeof name - 1] = '\0';
        o->of[i] = find_origin(name);
    }
    if (o->n == 0)
        asym_record_io_fail(io, "the machine has no list of speed sources");
}

static void code_origin(struct asym_record_io *io, const struct origins *o, struct asym_cpu *cpu)
{
    const uint8_t origin = o->of[asym_record_u64(io, cpu->origin, o->n - 1)];
    if (origin >= ASYM_N_ORIGINS)
        asym_record_io_fail(io, "a speed from a source that this version of asymd does not know");
    else
        cpu->origin = origin;
}

/* The CPU before: most CPUs differ from it in little. */
static void code_cpu(struct asym_record_io *io, const struct origins *origins, struct asym_cpu *cpu,
                     const struct asym_cpu *last)
{
    struct {
        int16_t *value;
        int16_t last;
    } groups[] = {{&cpu->kind, last->kind},
                  {&cpu->core, last->core},
                  {&cpu->llc, last->llc},
                  {&cpu->node, last->node},
                  {&cpu->freq_domain, last->freq_domain}};
    for (unsigned i = 0; i < sizeof groups / sizeof groups[0]; i++)
        *groups[i].value = (int16_t)asym_record_delta(io, *groups[i].value, groups[i].last, -1,
                                                      INT16_MAX - ASYM_MAX_CPUS);
    cpu->speed = asym_record_double(io, cpu->speed);
    code_origin(io, origins, cpu);
    cpu->favour = (uint32_t)asym_record_delta(io, cpu->favour, last->favour, 0, UINT32_MAX);
    cpu->l3_kib = (uint32_t)asym_record_delta(io, cpu->l3_kib, last->l3_kib, 0, UINT32_MAX);
}

void asym_record_machine(struct asym_record_io *io, struct asym_machine *m)
{
    static const struct asym_cpu first;
    struct origins origins = {0};
    if (!io->writing)
        *m = (struct asym_machine){0};
    m->generation = asym_record_u64(io, m->generation, UINT64_MAX);
    m->n_cpus = (unsigned)asym_record_u64(io, m->n_cpus, ASYM_MAX_CPUS);
    m->fast_from = asym_record_double(io, m->fast_from);
    m->smt_gain = asym_record_double(io, m->smt_gain);
    asym_record_mask(io, &m->online);
    asym_record_mask(io, &m->usable);
    asym_record_mask(io, &m->isolated);
    asym_record_mask(io, &m->held);
    for (unsigned k = 0; k < ASYM_MAX_KINDS; k++) {
        asym_record_bytes(io, m->kind_names[k], sizeof m->kind_names[k]);
        m->kind_names[k][sizeof m->kind_names[k] - 1] = '\0';
    }
    code_origins(io, &origins);
    for (unsigned c = 0; c < m->n_cpus && asym_record_io_ok(io); c++)
        code_cpu(io, &origins, &m->cpus[c], c > 0 ? &m->cpus[c - 1] : &first);
    if (io->writing || !asym_record_io_ok(io))
        return;
    if (!asym_mask_within(&m->usable, &m->online) || asym_machine_finish(m) < 0)
        asym_record_io_fail(io, "the machine is impossible");
}

void asym_record_head_done(struct asym_record_head_data *d)
{
    free(d->settings);
    free(d->notes);
    *d = (struct asym_record_head_data){.settings = NULL};
}

static const char *code_text(struct asym_record_io *io, const char *text)
{
    text = asym_record_text(io, text);
    if (!text)
        asym_record_io_fail(io, "a text is missing");
    /* The texts of the head reach terminals and scenarios. */
    else if (!asym_text_is_printable(text, strlen(text)))
        asym_record_io_fail(io, "a text of the head has control characters, or is not UTF-8");
    return text;
}

void asym_record_head(struct asym_record_io *io, struct asym_record_head_data *d)
{
    struct asym_record_head *h = &d->head;
    h->version = code_text(io, h->version);
    h->policy = code_text(io, h->policy);
    h->keep_nice = asym_record_bool(io, h->keep_nice);
    h->began = asym_record_u64(io, h->began, UINT64_MAX);
    h->interval = asym_record_u64(io, h->interval, UINT64_MAX);
    h->n_settings = asym_record_count(io, h->n_settings, ASYM_RECORD_MAX_SETTINGS);
    h->n_notes = asym_record_count(io, h->n_notes, ASYM_RECORD_MAX_NOTES);
    d->settings = calloc(h->n_settings + 1, sizeof *d->settings);
    d->notes = calloc(h->n_notes + 1, sizeof *d->notes);
    if (!d->settings || !d->notes) {
        io->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < h->n_settings && asym_record_io_ok(io); i++) {
        const struct asym_record_setting from = io->writing ? h->settings[i] : (struct asym_record_setting){NULL, NULL};
        d->settings[i].name = code_text(io, from.name);
        d->settings[i].value = code_text(io, from.value);
    }
    for (size_t i = 0; i < h->n_notes && asym_record_io_ok(io); i++)
        d->notes[i] = code_text(io, io->writing ? h->notes[i] : NULL);
    h->settings = d->settings;
    h->notes = d->notes;
}
