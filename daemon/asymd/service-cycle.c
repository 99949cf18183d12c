/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One cycle of the service: it plans, enforces, logs, and hands the result to the monitor. */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "app/own-cpu-time.h"
#include "base/clock.h"
#include "base/macro.h"

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

static void report_actions(struct asym_service *s)
{
    for (size_t i = 0; i < s->cycle.n_actions; i++)
        s->n_changes += s->cycle.outcomes[i].kind == ASYM_OUTCOME_DONE;
    asym_service_log_cycle(s);
}

bool asym_service_is_urgent(const struct asym_settings *settings, size_t n_actions)
{
    return settings->enforce.realtime && n_actions > 0 && n_actions <= ASYM_URGENT_MAX;
}

static void take_priority(struct asym_service *s)
{
    if (!asym_service_is_urgent(s->run->settings, s->cycle.n_actions) || !asym_realtime_is_other())
        return;
    const int r = asym_realtime_set(true);
    s->is_urgent = r >= 0;
    if (r < 0 && !s->no_urgency_logged)
        asym_log_say(&s->run->log, LOG_INFO,
                     "no real-time priority (%s): when all CPUs are busy, asymd takes some milliseconds longer to "
                     "carry out a plan",
                     strerror(-r));
    s->no_urgency_logged |= r < 0;
}

static void drop_priority(struct asym_service *s)
{
    if (s->is_urgent)
        s->is_urgent = asym_realtime_set(false) < 0;
}

/* Carries out the plan. Returns what asym_cycle_apply returns. */
static int enforce(struct asym_service *s)
{
    take_priority(s);
    const int r = asym_cycle_apply(&s->cycle);
    if (s->cycle.has_outcomes) {
        const struct asym_feedback result = asym_cycle_result(&s->cycle);
        asym_monitor_record(s->control.monitor, &result);
    }
    drop_priority(s);
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
    drop_priority(s); /* the kernel may have refused it in the last cycle */
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
        report_actions(s);
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

int asym_service_prompt_cycle(struct asym_service *s)
{
    if (s->sampling)
        return 0;
    asym_source_refresh(s->cycle.source);
    int r = asym_service_cycle(s);
    return r < 0 && r != -EINPROGRESS ? asym_service_give_up(s, r) : 0;
}
