/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/replay.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "core/machine-situation.h"

/*
 * What-if: shows the snapshots of a source as they would look if each action had been carried out. A steered thread has the
 * planned mask and nice value, and the planned CPU where the mask leaves out the CPU of the snapshot. If the program itself
 * changes its mask in the snapshots, that mask counts from then on.
 */

struct steered {
    struct asym_taskid id;
    struct asym_mask own, mask; /* in the snapshots, and planned */
    int32_t cpu;                /* planned; -1: not known */
    int8_t nice;
};

void asym_what_if_init(struct asym_what_if *w)
{
    *w = (struct asym_what_if){.masks = {.n = 0}};
    asym_table_init(&w->steered, sizeof(struct steered));
}

void asym_what_if_done(struct asym_what_if *w)
{
    asym_table_done(&w->steered);
    asym_mask_table_done(&w->masks);
    asym_pool_done(&w->tasks);
    asym_pool_done(&w->outcomes);
}

static void show_task(struct asym_what_if *w, struct asym_task *task)
{
    struct steered *t = asym_table_find(&w->steered, &task->id);
    if (t && !asym_mask_equal(&t->own, task->mask)) {
        asym_table_remove(&w->steered, &task->id);
        t = NULL;
    }
    if (t) {
        task->nice = t->nice;
        if (!asym_mask_has(&t->mask, task->cpu))
            task->cpu = t->cpu >= 0 ? t->cpu : asym_mask_next(&t->mask, 0);
    }
    task->mask = asym_mask_table_get(&w->masks, t ? &t->mask : task->mask);
    task->cpuset = asym_mask_table_get(&w->masks, task->cpuset);
}

int asym_what_if_show(struct asym_what_if *w, struct asym_snapshot *s)
{
    struct asym_task *tasks = asym_pool_reserve(&w->tasks, s->n_tasks + 1, sizeof *tasks);
    if (!tasks)
        return -ENOMEM;
    if (s->n_tasks > 0)
        memcpy(tasks, s->tasks, s->n_tasks * sizeof *tasks);
    /* No mask of an earlier snapshot is in use any more. */
    if (asym_mask_table_is_full(&w->masks))
        asym_mask_table_sweep(&w->masks);
    for (size_t i = 0; i < s->n_tasks; i++)
        show_task(w, &tasks[i]);
    s->tasks = tasks;
    return w->masks.failed ? -ENOMEM : 0;
}

static bool carry_out(struct asym_what_if *w, const struct asym_action *a)
{
    if (a->kind != ASYM_ACTION_STEER) {
        asym_table_remove(&w->steered, &a->id);
        return true;
    }
    const bool is_new = asym_table_find(&w->steered, &a->id) == NULL;
    struct steered *t = asym_table_get(&w->steered, &a->id);
    if (!t)
        return false;
    if (is_new)
        t->own = a->expect;
    t->mask = a->mask;
    t->nice = a->nice;
    t->cpu = -1;
    return true;
}

const struct asym_outcome *asym_what_if_apply(struct asym_what_if *w, const struct asym_snapshot *s,
                                              const struct asym_plan *plan, const struct asym_action *actions, size_t n)
{
    struct asym_outcome *outcomes = asym_pool_reserve(&w->outcomes, n + 1, sizeof *outcomes);
    if (!outcomes)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        outcomes[i] = (struct asym_outcome){.kind = ASYM_OUTCOME_DONE};
        if (!carry_out(w, &actions[i]))
            return NULL;
    }
    for (size_t i = 0; i < plan->n_tasks; i++) {
        struct steered *t = plan->tasks[i].target >= 0 ? asym_table_find(&w->steered, &s->tasks[i].id) : NULL;
        if (t && asym_mask_has(&t->mask, plan->tasks[i].target))
            t->cpu = plan->tasks[i].target;
    }
    return outcomes;
}

int asym_replay_settings(const struct asym_record_head *head, struct asym_settings **ret_settings,
                         struct asym_error *err)
{
    struct asym_settings *s;
    struct asym_error wrong = {""};
    int r = asym_settings_new(&s);
    if (r < 0)
        return asym_fail(err, r, "no memory for the settings");
    for (size_t i = 0; r >= 0 && i < head->n_settings; i++) {
        char text[2 * ASYM_RECORD_MAX_TEXT + 2];
        snprintf(text, sizeof text, "%s=%s", head->settings[i].name, head->settings[i].value);
        r = asym_settings_set(s, text, "the record", &wrong);
    }
    if (r < 0) {
        char version[256], why[1024];
        asym_settings_free(s);
        return asym_fail(err, r, "cannot use the settings of the record (made by asymd %.60s): %.400s",
                         asym_text_show(head->version, version, sizeof version),
                         asym_text_show(wrong.text, why, sizeof why));
    }
    *ret_settings = s;
    return 0;
}

/* The threads that a replay has seen. */
struct counted {
    struct asym_taskid id;
    bool steered;
};

/* The state of a replay at a snapshot. */
struct step {
    struct asym_table threads, apps; /* of the record so far; the engine keeps no more */
    struct asym_record_reader *reader;
    struct asym_engine *engine;
    const struct asym_replay_watch *watch;
    struct asym_snapshot s;
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n_actions, number;
};

static void init(struct step *st, struct asym_record_reader *reader, const struct asym_replay_watch *watch)
{
    *st = (struct step){.reader = reader, .watch = watch};
    asym_table_init(&st->threads, sizeof(struct counted));
    asym_table_init(&st->apps, sizeof(struct asym_taskid));
}

static void step_done(struct step *st)
{
    asym_table_done(&st->threads);
    asym_table_done(&st->apps);
    asym_engine_free(st->engine);
}

static int begin(struct step *st, const struct asym_settings *settings, const struct asym_policy *policy,
                 struct asym_error *err)
{
    struct asym_engine_config config = asym_settings_engine_config(settings, policy);
    config.keep_nice = asym_record_reader_head(st->reader)->keep_nice;
    int r = asym_record_reader_rewind(st->reader);
    if (r >= 0)
        r = asym_engine_new(&config, &st->engine);
    return r < 0 ? asym_fail(err, r, "%s", strerror(-r)) : 0;
}

/* Counts an item. The time of a hostile record need not pass, so that an engine would keep all that it has seen. */
static int count_item(struct asym_table *table, const struct asym_taskid *id, uint32_t most)
{
    if (table->n == most && !asym_table_find(table, id))
        return -E2BIG;
    return asym_table_get(table, id) ? 0 : -ENOMEM;
}

static int count_items(struct step *st, struct asym_error *err)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < st->s.n_tasks; i++)
        r = count_item(&st->threads, &st->s.tasks[i].id, ASYM_RECORD_MAX_THREADS);
    for (size_t i = 0; r >= 0 && i < st->s.n_apps; i++)
        r = count_item(&st->apps, &st->s.apps[i].id, ASYM_RECORD_MAX_APPLICATIONS);
    if (r == -E2BIG)
        return asym_record_reader_refuse(st->reader, "the record has more threads or applications than asymctl keeps",
                                         err);
    return r < 0 ? asym_fail(err, r, "no memory") : 1;
}

/* Returns 1; 0 at the end; -errno with err. */
static int read_next(struct step *st, const volatile sig_atomic_t *stop, struct asym_error *err)
{
    if (stop && *stop)
        return asym_fail(err, -EINTR, "interrupted");
    struct asym_source *source = asym_record_reader_source(st->reader);
    const int r = source->next(source, &st->s);
    st->number += r > 0;
    if (r < 0)
        return asym_fail(err, r, "%s", asym_record_reader_error(st->reader));
    return r > 0 ? count_items(st, err) : 0;
}

static int plan_next(struct step *st, struct asym_error *err)
{
    int r = asym_engine_step(st->engine, &st->s, &st->plan, &st->actions, &st->n_actions);
    if (r >= 0 && st->watch)
        r = st->watch->plan(st->watch->ctx, st->number, &st->s, st->plan, st->actions, st->n_actions);
    return r < 0 ? asym_fail(err, r, "%s", strerror(-r)) : 0;
}

static void compare(struct step *st, struct asym_replay_check *check)
{
    const struct asym_record_result *result = asym_record_reader_result(st->reader);
    if (!result->known)
        return;
    const bool same = asym_plan_digest(st->plan, st->actions, st->n_actions) == result->digest;
    check->plans++;
    check->same += same;
    if (!same && check->first_diff == 0)
        check->first_diff = st->number;
    asym_engine_outcomes(st->engine, result->outcomes, result->n_outcomes);
}

int asym_replay_check(struct asym_record_reader *reader, const struct asym_settings *settings,
                      const struct asym_replay_watch *watch, const volatile sig_atomic_t *stop,
                      struct asym_replay_check *ret, struct asym_error *err)
{
    const char *name = asym_record_reader_head(reader)->policy;
    const struct asym_policy *policy = asym_policy_find(name);
    ASYM_CLEANUP(step_done) struct step st;
    struct asym_replay_check check = {.plans = 0};
    init(&st, reader, watch);
    if (!policy)
        return asym_policy_unknown(name, "the record", err);
    int r = begin(&st, settings, policy, err);
    while (r >= 0 && (r = read_next(&st, stop, err)) > 0) {
        r = plan_next(&st, err);
        if (r >= 0)
            compare(&st, &check);
    }
    if (r >= 0)
        *ret = check;
    return r;
}

static void account(struct asym_replay_tally *t, const struct step *st)
{
    const double interval = (double)st->s.interval / ASYM_SEC;
    t->alike = (t->snapshots == 0 || t->alike) && !asym_machine_is_asymmetric(st->s.machine);
    t->snapshots++;
    t->threads = st->threads.n;
    t->seconds += interval;
    t->moves += st->plan->n_moves;
    t->changes += st->n_actions;
    for (size_t i = 0; i < st->s.n_tasks; i++) {
        const struct asym_task *task = &st->s.tasks[i];
        const enum asym_class class = st->plan->tasks[i].class;
        const double ran = task->running * interval;
        t->running[class] += ran;
        if (asym_mask_has(&st->s.machine->fast, task->cpu))
            t->fast[class] += ran;
        if (st->plan->tasks[i].target >= 0) {
            struct counted *c = asym_table_find(&st->threads, &task->id);
            t->steered += !c->steered;
            c->steered = true;
        }
    }
}

/* Counts exist for the threads that the recording policy counted, and for no others. */
static int check_signals(const struct step *st, const struct asym_policy *policy, struct asym_error *err)
{
    const char *made_under = asym_record_reader_head(st->reader)->policy;
    const unsigned counts = 1u << ASYM_SIGNAL_IPC | 1u << ASYM_SIGNAL_STALL;
    const enum asym_signal lacks = asym_policy_lacks(policy, st->s.missing, 0);
    if (lacks != ASYM_N_SIGNALS) {
        char why[512];
        return asym_fail(err, -ENODATA, "policy %s needs the signal %s, which the recorded machine did not give: %s",
                         policy->name, asym_signal_name(lacks), asym_text_show(st->s.missing[lacks], why, sizeof why));
    }
    if ((policy->needs & counts) != 0 && strcmp(policy->name, made_under) != 0)
        return asym_fail(err, -ENODATA,
                         "policy %s needs counts of instructions, and a record made under %s has none that it chose; "
                         "record with --policy=%s",
                         policy->name, made_under, policy->name);
    return 0;
}

static int what_if_step(struct step *st, struct asym_what_if *w, struct asym_replay_tally *t, struct asym_error *err)
{
    int r = st->number == 1 ? check_signals(st, t->policy, err) : 0;
    if (r < 0)
        return r;
    if (asym_what_if_show(w, &st->s) < 0)
        return asym_fail(err, -ENOMEM, "no memory");
    r = plan_next(st, err);
    if (r < 0)
        return r;
    const struct asym_outcome *outcomes = asym_what_if_apply(w, &st->s, st->plan, st->actions, st->n_actions);
    if (!outcomes)
        return asym_fail(err, -ENOMEM, "no memory");
    account(t, st);
    asym_engine_outcomes(st->engine, outcomes, st->n_actions);
    return 0;
}

int asym_replay_run(struct asym_record_reader *reader, const struct asym_settings *settings,
                    const struct asym_policy *policy, const struct asym_replay_watch *watch,
                    const volatile sig_atomic_t *stop, struct asym_replay_tally *ret, struct asym_error *err)
{
    ASYM_CLEANUP(step_done) struct step st;
    ASYM_CLEANUP(asym_what_if_done) struct asym_what_if w;
    struct asym_replay_tally tally = {.policy = policy};
    init(&st, reader, watch);
    asym_what_if_init(&w);
    int r = begin(&st, settings, policy, err);
    while (r >= 0 && (r = read_next(&st, stop, err)) > 0)
        r = what_if_step(&st, &w, &tally, err);
    if (r >= 0)
        *ret = tally;
    return r;
}
