/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log lines of a cycle: changes of class at info, threads that asymd leaves alone at notice, each decision at debug; and
 * whether asymd can write the ledger.
 */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "explain/explain.h"

/*
 * Finds the task of an action in the snapshot. Actions mostly have the order of the tasks, so the search starts behind the
 * last hit. Idle threads are not in the snapshot.
 */
static const struct asym_task *find_task(const struct asym_snapshot *snapshot, const struct asym_taskid *id,
                                         size_t *hint)
{
    for (size_t i = 0; i < snapshot->n_tasks; i++) {
        const size_t at = (*hint + i) % snapshot->n_tasks;
        if (snapshot->tasks[at].id.tid != id->tid || snapshot->tasks[at].id.start != id->start)
            continue;
        *hint = at + 1;
        return &snapshot->tasks[at];
    }
    return NULL;
}

static bool leaves_alone(const struct asym_action *a, const struct asym_outcome *o)
{
    return o->kind == ASYM_OUTCOME_HANDS_OFF ||
           (a->kind == ASYM_ACTION_FORGET && o->kind == ASYM_OUTCOME_DONE && a->reason);
}

static const char *words_for(const struct asym_action *a, const struct asym_outcome *o)
{
    static const char *const done[] = {"steered", "released", "repaired", "not steered any more"};
    if (leaves_alone(a, o))
        return "left alone";
    return o->kind == ASYM_OUTCOME_DONE ? done[a->kind] : "not changed";
}

static void log_outcome(const struct asym_service *s, size_t i, size_t *hint)
{
    const struct asym_action *a = &s->cycle.actions[i];
    const struct asym_outcome *o = &s->cycle.outcomes[i];
    const int priority = leaves_alone(a, o) ? LOG_NOTICE : LOG_DEBUG;
    if (priority > s->run->log.level)
        return;
    const struct asym_task unknown = {.id = a->id}, *task = find_task(&s->cycle.snapshot, &a->id, hint);
    const struct asym_plan_task *plan = task ? &s->cycle.plan->tasks[task - s->cycle.snapshot.tasks] : NULL;
    struct asym_log_thread line = {
        .task = task ? task : &unknown,
        .policy = s->run->policy->name,
        .class = plan && plan->target >= 0 && priority == LOG_DEBUG ? plan->class : ASYM_CLASS_NONE,
        .reason = a->reason,
        .figure = {a->figure[0], a->figure[1]},
        .cpu = plan ? plan->target : -1,
        .mask = &a->mask,
    };
    if (o->kind == ASYM_OUTCOME_HANDS_OFF) {
        line.reason = asym_why(asym_why_hands_off(o->error));
        line.figure[0] = -o->error;
        line.mask = task ? task->mask : NULL;
    }
    asym_log_thread(&s->run->log, priority, &line, words_for(a, o));
}

/* The sentences of asymctl why. A program that the monitor has no room for gets no line. */
static void log_class(struct asym_service *s, const struct asym_plan_task *plan, unsigned n_left_out)
{
    const struct asym_task *task = &s->cycle.snapshot.tasks[plan - s->cycle.plan->tasks];
    char sentences[1024], more[96] = "";
    struct asym_service_explanation why;
    const struct asym_log_thread line = {
        .task = task,
        .policy = s->run->policy->name,
        .class = plan->class,
        .reason = plan->reason,
        .figure = {plan->figure[0], plan->figure[1]},
        .cpu = plan->target,
        .mask = plan->mask,
    };
    if (n_left_out > 0)
        snprintf(more, sizeof more, " It has changed its class %u more times since its last line.", n_left_out);
    if (asym_service_explain(s, task->id.tid, &why) >= 0)
        asym_log_event(&s->run->log, LOG_INFO, &line, "%s%s", asym_explain_summary(&why.e, sentences, sizeof sentences),
                       more);
}

void asym_service_log_cycle(struct asym_service *s)
{
    size_t hint = 0;
    for (size_t i = 0; i < s->cycle.n_actions; i++)
        log_outcome(s, i, &hint);
    for (size_t i = 0; i < s->cycle.snapshot.n_apps; i++) {
        unsigned n_left_out;
        const struct asym_plan_task *shown = asym_monitor_class_line(s->control.monitor, &s->cycle.snapshot,
                                                                     s->cycle.plan, i, &n_left_out);
        if (shown)
            log_class(s, shown, n_left_out);
    }
}

/* If asymd cannot write the ledger (its file system is full, say), it changes no thread, and continues to observe. */
void asym_service_report_apply(struct asym_service *s, int r)
{
    if (r < 0 && !s->ledger_failed)
        asym_log_say(&s->run->log, LOG_ERR, "cannot write the ledger in %s, so asymd steers nothing: %s",
                     s->run->settings->daemon.state_dir, strerror(-r));
    if (r >= 0 && s->ledger_failed)
        asym_log_say(&s->run->log, LOG_NOTICE, "asymd can write the ledger again");
    s->ledger_failed = r < 0;
}

void asym_service_log_rules(const struct asym_service *s)
{
    struct asym_rule_view rule;
    char first[256] = "";
    size_t n = 0;
    for (size_t i = 0; asym_rules_at(s->run->settings->rules, i, NULL, &rule); i++)
        if (rule.lends_to_anyone && n++ == 0)
            asym_text_show(rule.name, first, sizeof first);
    if (n > 0)
        asym_log_say(
            &s->run->log, LOG_NOTICE,
            "%zu rule%s (\"%s\"%s) lend%s fast CPUs or a lower nice value to programs that any user can name so; "
            "asymctl rules shows which",
            n, n == 1 ? "" : "s", first, n == 1 ? "" : " and others", n == 1 ? "s" : "");
}
