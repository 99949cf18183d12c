/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The dry run's report: what was seen, what is planned, and why; for people, and as JSON (asymd.plan/1, a promise). */
#ifndef ASYM_DAEMON_REPORT_H
#define ASYM_DAEMON_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <asym/plan.h>
#include <asym/policy.h>
#include <asym/settings.h>
#include <asym/snapshot.h>

#include "linux/speech.h"
#include "linux/topology.h"

/** All borrowed. plan belongs to snapshot: same order, same lengths. */
struct asym_report {
    const struct asym_snapshot *snapshot;
    const struct asym_plan *plan;
    const struct asym_policy *policy;
    const char *policy_why; /**< NULL, or why auto chose it */
    const struct asym_settings *settings;
    const struct asym_topology_notes *notes; /**< NULL: none */
    double observed_ms;                      /**< from the start to the last look */
    double scan_cpu_us;                      /**< CPU time of one look, on average */
    const enum asym_speech *speech;          /**< of each application; NULL: not looked at */
    bool assumed_slow;                       /**< some CPUs are only taken for slow */
};

/**
 * Four blocks, at most 100 columns wide: machine, policy, applications with their threads of interest, what would change
 * and what could not be seen. Escape sequences only with colour. Returns 0; -EIO.
 */
int asym_report_text(const struct asym_report *report, FILE *out, bool colour);

/** One JSON object and a newline. Returns 0; -ENOMEM, -EIO. */
int asym_report_json(const struct asym_report *report, FILE *out);

/*
 * What both forms agree on. An application is listed when it is active and has threads that may be steered, or whose
 * policy steers nothing; of its threads those that are steered, or that such a policy leaves where they are. Excluded is
 * what something other than idleness keeps asymd's hands off. The rest is idle.
 */
static inline bool asym_report_excludes(enum asym_reason reason)
{
    return reason > ASYM_WHY_NONE && reason <= ASYM_WHY_LAST_EXCLUSION && reason != ASYM_WHY_IDLE &&
           reason != ASYM_WHY_POLICY_NONE;
}

static inline bool asym_report_lists_app(const struct asym_plan_app *app)
{
    return app->phase != ASYM_PHASE_IDLE && !asym_report_excludes(app->excluded);
}

static inline bool asym_report_lists_thread(const struct asym_plan_task *task)
{
    return task->target >= 0 || task->reason == ASYM_WHY_POLICY_NONE;
}

#endif
