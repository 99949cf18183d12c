/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A machine, a snapshot and a plan, written by hand as input of the reports. */
#ifndef ASYM_TESTS_SUPPORT_REPORT_FIXTURE_H
#define ASYM_TESTS_SUPPORT_REPORT_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>
#include <asym/plan.h>
#include <asym/snapshot.h>

#include "config/settings.h"
#include "report/report.h"
#include "support/test.h"

struct report_fixture {
    struct asym_machine machine;
    struct asym_snapshot snapshot;
    struct asym_plan plan;
    struct asym_settings *settings;
    struct asym_app *apps;
    struct asym_proc *procs;
    struct asym_task *tasks;
    struct asym_plan_app *plan_apps;
    struct asym_plan_task *plan_tasks;
    struct asym_mask *masks; /* of planned threads */
    struct asym_mask all;    /* the mask of every thread, unless the test sets another */
};

/**
 * Create a fixture for up to room threads in up to room applications. The last n_fast of n_cpus CPUs are twice as fast; an LLC
 * has 4 CPUs.
 */
struct report_fixture *report_fixture_new(unsigned n_cpus, unsigned n_fast, size_t room);
void report_fixture_free(struct report_fixture *fixture);

/** A test of the fixture s that new_fixture makes; it is freed after the test. */
#define TEST_OF(name, new_fixture)                                                                                     \
    static void name##_of(struct report_fixture *s);                                                                   \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        struct report_fixture *s = new_fixture;                                                                        \
        name##_of(s);                                                                                                  \
        report_fixture_free(s);                                                                                        \
    }                                                                                                                  \
    static void name##_of(struct report_fixture *s)

/** Add an application. Threads added from now on belong to it. comm has raw bytes. */
struct asym_plan_app *report_fixture_app(struct report_fixture *s, const char *comm, int32_t pid, enum asym_phase phase,
                                         enum asym_class class, double runnable);

/** Add a thread that runs on cpu, stays there, and may run on all CPUs. */
struct asym_plan_task *report_fixture_thread(struct report_fixture *s, const char *comm, int32_t tid, int32_t cpu);

/**
 * Reasons that a policy may have: without figures, with two figures, with a long text, and one of a policy that does not steer.
 */
extern const struct asym_reason report_fixture_own, report_fixture_spare, report_fixture_many, report_fixture_turn,
    report_fixture_unsteered;

/** Plan the thread on target with this mask. */
void report_fixture_steer(struct report_fixture *s, struct asym_plan_task *task, int32_t target, const char *cpus,
                          const struct asym_reason *reason);

/** Returns the report of the plan, by the policy pa. */
struct asym_report report_fixture_report(const struct report_fixture *s);

/** Returns the mask of a CPU list. */
struct asym_mask report_fixture_cpus(const char *list);

#endif
