/* SPDX-License-Identifier: GPL-2.0-or-later */
/** An engine and a monitor that takes each of its steps. A test includes it. */
#ifndef ASYM_TESTS_SUPPORT_MONITOR_FIXTURE_H
#define ASYM_TESTS_SUPPORT_MONITOR_FIXTURE_H

#include "explain/explain.h"
#include "support/engine-fixture.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

struct monitor_fixture {
    struct engine_fixture w;
    struct asym_monitor *m;
    struct asym_explanation e;
    char text[4096]; /**< of test-explain.c: sentences, or lines NAME=VALUE */
};

static inline void setup(struct monitor_fixture *f)
{
    engine_fixture_init(&f->w);
    assert_int_equal(asym_monitor_new(&f->m), 0);
}

static inline void teardown(struct monitor_fixture *f)
{
    engine_fixture_done(&f->w);
    asym_monitor_free(f->m);
}

#define TEST_F(name) TEST_IN(name, struct monitor_fixture, f, setup, teardown)

/** The monitor takes the last step of the engine. */
static inline void record(struct monitor_fixture *f)
{
    const struct asym_feedback feedback = {&f->w.snapshot, f->w.plan, f->w.actions, f->w.outcomes, f->w.n};
    asym_monitor_record(f->m, &feedback);
}

static inline void run(struct monitor_fixture *f, asym_usec dt)
{
    engine_fixture_run(&f->w, dt);
    record(f);
}

#endif
