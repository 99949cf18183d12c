/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One cycle of the service: it plans, enforces, logs, and hands the result to the monitor. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymd/service-internal.h"
#include "linux/sys/realtime.h"

/*
 * The log lines of a cycle: changes of class at info, threads that asymd leaves alone at notice, each decision at debug; and
 * whether asymd can write the ledger.
 */

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

static const char *words_for(const struct asym_action *a, const struct asym_outcome *o)
{
    static const char *const done[] = {"steered", "released", "repaired", "not steered any more"};
    if (asym_monitor_leaves_alone(a, o))
        return "left alone";
    return o->kind == ASYM_OUTCOME_DONE ? done[a->kind] : "not changed";
}

static void log_outcome(const struct asym_service *s, size_t i, size_t *hint)
{
    const struct asym_action *a = &s->cycle.actions[i];
    const struct asym_outcome *o = &s->cycle.outcomes[i];
    const int priority = asym_monitor_leaves_alone(a, o) ? LOG_NOTICE : LOG_DEBUG;
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

/* Logs what the last cycle has changed, and which applications have changed their class. */
static void log_cycle(struct asym_service *s)
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

/* Logs once: when processes start in a storm, every cycle loses events. */
static void report_lost(struct asym_service *s)
{
    if (s->cycle.snapshot.coverage.n_lost_events > 0 && !s->lost_events_logged)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "the kernel dropped process events %" PRIu64
                     " time%s, because asymd read them too slowly; it scanned every process again",
                     s->cycle.snapshot.coverage.n_lost_events,
                     s->cycle.snapshot.coverage.n_lost_events == 1 ? "" : "s");
    s->lost_events_logged |= s->cycle.snapshot.coverage.n_lost_events > 0;
}

/* The fork guard ends with the events; asymd continues to observe. */
static void report_process_events(struct asym_service *s)
{
    const bool is_lost = s->observer.process_events && !s->cycle.snapshot.coverage.process_events;
    if (is_lost && !s->no_process_events_logged)
        asym_log_say(&s->run->log, LOG_ERR,
                     "the kernel no longer sends process events: %s; only the next scan repairs the masks of children "
                     "of steered threads",
                     s->cycle.snapshot.coverage.process_events_why);
    s->no_process_events_logged |= is_lost;
}

/*
 * Takes the real-time priority to act (enforce.realtime). sched_setaffinity sleeps until the kernel has moved a running thread,
 * which takes 20 us. On busy CPUs asymd without the priority then waited for a CPU, up to 13 ms in a trace, at nice -5. Meanwhile
 * one part of the plan was in force. Returns whether asymd has it for this only.
 */
static bool take_priority(struct asym_service *s)
{
    if (!s->run->settings->enforce.realtime || s->cycle.n_actions == 0)
        return false;
    const bool was_other = asym_realtime_is_other();
    if (!was_other && !s->run->prompt.is_realtime)
        return false;
    const int r = asym_realtime_take(ASYM_REALTIME_ACT);
    if (r < 0 && !s->no_urgency_logged)
        asym_log_say(&s->run->log, LOG_INFO,
                     "no real-time priority (%s): when all CPUs are busy, asymd takes some milliseconds longer to "
                     "carry out a plan",
                     strerror(-r));
    s->no_urgency_logged |= r < 0;
    return was_other;
}

/* Carries out the plan. Returns what asym_cycle_apply returns. */
static int enforce(struct asym_service *s)
{
    const bool is_urgent = take_priority(s);
    const int r = asym_cycle_apply(&s->cycle);
    if (s->cycle.has_outcomes) {
        const struct asym_feedback result = asym_cycle_result(&s->cycle);
        asym_monitor_record(s->control.monitor, &result);
    }
    if (is_urgent)
        asym_realtime_give_up();
    return r;
}

/* A sample can fail because memory or descriptors are short for a moment. Returns 0; -errno if asymd should end. */
static int skip_sample(struct asym_service *s, int error)
{
    if (!s->failure_logged)
        asym_log_say(&s->run->log, LOG_ERR, "a sample failed: %s; asymd skips such samples", strerror(-error));
    s->failure_logged = true;
    const asym_usec now = asym_clock_now();
    if (s->failing_since == 0)
        s->failing_since = now;
    return now - s->failing_since >= ASYM_SERVICE_FAILED_MOST * asym_service_interval(s) ? error : 0;
}

static void report_failures(struct asym_service *s)
{
    const struct asym_coverage *c = &s->cycle.snapshot.coverage;
    s->failing_since = 0;
    if (c->n_failed > 0 && !s->failure_logged)
        asym_log_say(&s->run->log, LOG_ERR, "a sample left out %u thread%s: %s", c->n_failed,
                     c->n_failed == 1 ? "" : "s", strerror(-c->failure));
    s->failure_logged |= c->n_failed > 0;
}

int asym_service_cycle(struct asym_service *s)
{
    int r = asym_cycle_plan(&s->cycle);
    s->sampling = r == -EINPROGRESS;
    if (r < 0)
        return r == -EINPROGRESS ? r : skip_sample(s, r);
    report_failures(s);
    report_lost(s);
    report_process_events(s);
    asym_self_affinity_update(&s->self_affinity, s->run->machine, &s->cycle.snapshot, s->cycle.plan);
    r = enforce(s);
    /* A cycle without actions writes no record, and so does not show that asymd can write the ledger. */
    if (s->cycle.n_actions > 0)
        asym_service_report_apply(s, r);
    if (s->cycle.has_outcomes) {
        for (size_t i = 0; i < s->cycle.n_actions; i++)
            s->n_changes += s->cycle.outcomes[i].kind == ASYM_OUTCOME_DONE;
        log_cycle(s);
        asym_cycle_feedback(&s->cycle);
    }
    if (s->control.waits)
        asym_service_changed(s);
    s->control.waits = false;
    return 0;
}

int asym_service_give_up(struct asym_service *s, int error)
{
    s->error = error;
    return sd_event_exit(s->event, ASYM_EXIT_FAILED);
}

int asym_service_prompt_cycle(void *service)
{
    struct asym_service *s = service;
    if (s->sampling)
        return 0;
    asym_source_refresh(s->cycle.source);
    int r = asym_service_cycle(s);
    asym_service_phases_wake_up(s);
    return r < 0 && r != -EINPROGRESS ? asym_service_give_up(s, r) : 0;
}
