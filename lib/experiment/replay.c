/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "core/policy-select.h"
#include "core/task-table.h"
#include "experiment/what-if.h"
#include "record/plan-digest.h"

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
                         asym_text_escape(head->version, strlen(head->version), version, sizeof version),
                         asym_text_escape(wrong.text, strlen(wrong.text), why, sizeof why));
    }
    *ret_settings = s;
    return 0;
}

struct asym_engine_config asym_replay_engine_config(const struct asym_settings *settings,
                                                    const struct asym_policy *policy, bool keep_nice)
{
    return (struct asym_engine_config){
        .policy = policy,
        .params = asym_settings_params(settings, policy),
        .classify = settings->classify,
        .enforce = settings->enforce,
        .keep_nice = keep_nice,
    };
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
    const bool keep_nice = asym_record_reader_head(st->reader)->keep_nice;
    const struct asym_engine_config config = asym_replay_engine_config(settings, policy, keep_nice);
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

static void count_steered(struct asym_replay_tally *t, const struct step *st, const struct asym_taskid *id)
{
    struct counted *c = asym_table_find(&st->threads, id);
    t->steered += !c->steered;
    c->steered = true;
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
        if (st->plan->tasks[i].target >= 0)
            count_steered(t, st, &task->id);
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
                         policy->name, asym_signal_name(lacks),
                         asym_text_escape(st->s.missing[lacks], strlen(st->s.missing[lacks]), why, sizeof why));
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

const char *asym_replay_row_name(const struct asym_policy *policy)
{
    return strcmp(policy->name, "none") == 0 ? "seen" : policy->name;
}
