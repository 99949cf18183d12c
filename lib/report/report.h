/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of the dry run: the sample, the plan and its reasons, as text or as JSON (asymd.plan/1, a promise). */
#ifndef ASYM_REPORT_REPORT_H
#define ASYM_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <asym/machine.h>
#include <asym/plan.h>
#include <asym/policy.h>
#include <asym/snapshot.h>

#include "config/settings.h"
#include "core/machine-situation.h"
#include "linux/rtx/rtx-overlay.h"
#include "linux/topology/topology.h"
#include "report/columns.h"

/** The report borrows every pointer. plan belongs to snapshot: the arrays have the same order and lengths. */
struct asym_report {
    const struct asym_snapshot *snapshot;
    const struct asym_plan *plan;
    const struct asym_policy *policy;
    const char *policy_why; /**< NULL, or why auto chose it */
    const struct asym_settings *settings;
    const struct asym_topology_notes *notes;   /**< NULL: none */
    double observed_ms;                        /**< milliseconds from the start to the last sample */
    double scan_cpu_us;                        /**< microseconds of CPU time for a sample, on average */
    const enum asym_rtxd_detection *detection; /**< of each application; NULL: not known */
    bool assumed_slow;                         /**< a what-if: some CPUs count as slow, but none was slowed */
};

/*
 * Both forms list the same things. They list an application that is active and not excluded, and of its threads those that the
 * plan steers, or that a policy which steers nothing leaves where they are. Excluded means that asymd leaves the application or
 * thread alone for a reason other than idleness. The rest is idle.
 */
static inline bool asym_report_excludes(const struct asym_reason *reason)
{
    return reason && reason->kind == ASYM_REASON_EXCLUDED;
}

static inline bool asym_report_lists_app(const struct asym_plan_app *app)
{
    return app->phase != ASYM_PHASE_IDLE && !asym_report_excludes(app->excluded);
}

static inline bool asym_report_lists_thread(const struct asym_plan_task *task)
{
    return task->target >= 0 || task->reason->kind == ASYM_REASON_UNSTEERED;
}

/* The report of the dry run as text. */

/**
 * Print four blocks: the machine, the policy, the applications with their threads, and a summary of
 * what would change and what asymd could not see. Returns 0; -EIO.
 */
int asym_report_text(const struct asym_report *report, const struct asym_terminal *terminal);

/* The report of the dry run as JSON: asymd.plan/1, a promise. */

/** Print one JSON object and a newline. Returns 0; -ENOMEM, -EIO. */
int asym_report_json(const struct asym_report *report, FILE *out);

/* The third block of the report of the dry run: the applications. */

#define ASYM_STYLE_HEADING "1"
#define ASYM_STYLE_CHANGE  "33"

struct asym_page {
    const struct asym_report *report;
    const struct asym_terminal *terminal;
    FILE *out; /* that of the terminal */
    bool colour;
};

/** Print the first word of a block, 13 columns wide. */
void asym_page_heading(const struct asym_page *p, const char *title);

/** Print the third block: the applications. */
void asym_page_apps(const struct asym_page *p);

/** Returns true if the plan changes the mask (of online CPUs) or the nice value of this task. */
bool asym_page_changes(const struct asym_report *r, size_t task);

/* Sentences on what asymd could not see or steer. The dry run, --once and the service use the same ones. */

/** Call fn for each sentence. missed: asymd left some processes out for this reason; else it only costs time. */
void asym_coverage_each(const struct asym_coverage *s, void (*fn)(void *ctx, bool missed, const char *text), void *ctx);

/* Describes CPUs beyond their speed. */

/** Said where CPUs differ in speed, and none is slow. */
#define ASYM_NO_SLOW_CPU                                                                                               \
    "no CPU is slow: every core type reaches the share machine.fast_from of the fastest one's speed"

/** Returns asym_situation_alike() for this machine. notes: NULL: none. */
const struct asym_alike *asym_describe_alike(const struct asym_machine *m, const struct asym_topology_notes *notes);

/** Write "L3: 96 MiB on 0-7, 32 MiB on 8-15". Returns false, and writes nothing, if all CPUs have the same L3 size. */
bool asym_describe_l3(const struct asym_machine *m, char *buf, size_t size);

/** Write the favoured CPUs of a core type, "8-11". Returns false, and writes nothing, if all its CPUs are equal. */
bool asym_describe_favoured(const struct asym_machine *m, unsigned type, char *buf, size_t size);

/* The report of asymctl policies: for each policy its source, the signals that it needs, and whether it can run here. */

/** Print all of them. missing[signal]: NULL, or why this machine does not give the signal. Returns 0; -EIO. */
int asym_policies_text(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       const struct asym_terminal *terminal);

/**
 * { "schema": "asymd.policies/1", "policies": [ { "name", "summary", "source", "needs": [ "ipc" ], "pin": "type",
 * "can_run", "refuses": null, "missing": [ { "name", "why" } ] } ] }. Returns 0; -ENOMEM, -EIO.
 */
int asym_policies_json(const struct asym_policy *const *policies, size_t n, const char *const missing[ASYM_N_SIGNALS],
                       FILE *out);

#endif
