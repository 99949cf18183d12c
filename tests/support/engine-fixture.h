/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A machine, processes and threads as literals, an engine that uses them, and a policy that follows the orders of the test. The
 * test is the actuator: engine_fixture_apply acts like a kernel, and engine_fixture_answer reports any outcome that the test
 * sets.
 */
#ifndef ASYM_TESTS_SUPPORT_ENGINE_FIXTURE_H
#define ASYM_TESTS_SUPPORT_ENGINE_FIXTURE_H

#include <asym/engine.h>

#include "base/macro.h"
#include "support/test.h"

enum { ENGINE_FIXTURE_PROCS = 16, ENGINE_FIXTURE_THREADS = 64 };

/** The answers of the test policy, by the last three digits of the tid, and a record of its input. */
struct engine_fixture_orders {
    unsigned calls, exchanges;
    int small_arena; /* number of calls in which the policy asks for more memory */
    int error;       /* returned by plan, if not 0 */
    struct engine_fixture_order {
        int32_t cpu;
        int8_t delta;
        bool exclusive, counted, in_turns;
        enum asym_pin width;
    } of[1000];
    struct asym_mask spare;
    asym_usec again;
    size_t n_apps, n_threads;
    asym_usec interval, since_swap;
    double unsteered, unsteered_weight;
    uint32_t n_nice_groups;
    float asleep[ASYM_MAX_CPUS];
    struct asym_policy_app apps[ENGINE_FIXTURE_PROCS];
    struct asym_policy_thread threads[ENGINE_FIXTURE_THREADS];
    unsigned char state[ENGINE_FIXTURE_THREADS]; /* of each thread, before this call increments it */
    unsigned char policy_state;
};

struct engine_fixture_params {
    struct engine_fixture_orders *orders;
};

/** The reasons of the policies below. */
extern const struct asym_reason engine_fixture_placed, engine_fixture_turn, engine_fixture_unsteered;

/** Two policies with the same answers; one has pin type, the other pin cpu. Their per-thread and policy state count calls. */
extern const struct asym_policy engine_fixture_policy_type, engine_fixture_policy_cpu;

/** Like policy_type, but its answers give the width of each mask. */
extern const struct asym_policy engine_fixture_policy_each;

/** Like policy_type, but the engine calls it at once when a program reports a serial phase. */
extern const struct asym_policy engine_fixture_policy_reacts;

/** Like policy_reacts, but for a phase that the kernel tells its first and last threads exchange their CPUs of the last plan. */
extern const struct asym_policy engine_fixture_policy_exchanges;

/** Like policy_type, but it keeps its own period. */
extern const struct asym_policy engine_fixture_policy_every_snapshot;

struct engine_fixture_thread {
    struct asym_task task; /* proc is an index into procs; a step sets mask and cpuset to those below */
    struct asym_mask mask, cpuset;
    bool listed;
    double instructions; /* counted since the last snapshot; 0: it was not counted */
};

struct engine_fixture {
    struct asym_machine machine;
    struct asym_proc procs[ENGINE_FIXTURE_PROCS];
    uint32_t job;                          /* number of processes of each application; 0: one */
    double runnable[ENGINE_FIXTURE_PROCS]; /* of the application; below 0: use the sum over its threads */
    struct engine_fixture_thread threads[ENGINE_FIXTURE_THREADS];
    size_t n_procs, n_threads;
    asym_usec now;
    enum asym_urgency urgent; /* these three: values for the next snapshots */
    bool paused, refreshed;
    const struct asym_taskid *ignored;
    size_t n_ignored;
    struct engine_fixture_orders orders;
    struct engine_fixture_params params;
    struct asym_engine_config config;
    struct asym_engine *engine;
    /* results and input of the last step */
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n;
    struct asym_snapshot snapshot;
    struct asym_outcome outcomes[2 * ENGINE_FIXTURE_THREADS]; /* of the actions, as last reported */
    struct asym_app s_apps[ENGINE_FIXTURE_PROCS];
    struct asym_task s_tasks[ENGINE_FIXTURE_THREADS];
    struct asym_sample s_samples[ENGINE_FIXTURE_THREADS];
    const struct engine_fixture_thread *s_of[ENGINE_FIXTURE_THREADS];
};

/** Make a machine: CPUs 0..n_slow-1 have speed 1, the next n_fast have speed 2; each LLC has llc CPUs. */
void engine_fixture_machine(struct asym_machine *m, unsigned n_slow, unsigned n_fast, unsigned llc);

/** Set up 4 slow and 4 fast CPUs under two LLCs, with the default settings. The time is 1000 s. */
void engine_fixture_init(struct engine_fixture *w);
void engine_fixture_done(struct engine_fixture *w);

/** Declare a fixture w that lasts until the end of the block. */
#define ENGINE_FIXTURE(w)                                                                                              \
    ASYM_CLEANUP(engine_fixture_done) struct engine_fixture w;                                                         \
    engine_fixture_init(&w)

/** A test with a fixture w of its own (support/test.h). */
#define TEST_ENGINE(name) TEST_IN(name, struct engine_fixture, w, engine_fixture_init, engine_fixture_done)

/** Add a process that is an application, one minute old. Returns its index. */
unsigned engine_fixture_proc(struct engine_fixture *w, int32_t pid);
/** Add a thread that runs all the time on CPU 0 and may run on all CPUs; the policy will give it cpu. Returns the thread. */
struct engine_fixture_thread *engine_fixture_thread(struct engine_fixture *w, unsigned proc, int32_t tid, int32_t cpu);
void engine_fixture_order(struct engine_fixture *w, int32_t tid, int32_t cpu, bool exclusive);

/** Advance the time by dt and fill in snapshot. */
void engine_fixture_sample(struct engine_fixture *w, asym_usec dt);
/** Advance the time by dt and do one step. The test fails if the step fails. */
void engine_fixture_step(struct engine_fixture *w, asym_usec dt);
int engine_fixture_try_step(struct engine_fixture *w, asym_usec dt);

/** Compare, then carry the actions out, as an actuator on a kernel does. */
void engine_fixture_apply(struct engine_fixture *w);
/** Call engine_fixture_step, then engine_fixture_apply. */
void engine_fixture_run(struct engine_fixture *w, asym_usec dt);
void engine_fixture_answer(struct engine_fixture *w, enum asym_outcome_kind kind, int error);

/** Step or run, and the step must ask for so many actions. A macro, so that a failure names the line of the test. */
#define engine_fixture_step_asks(w, dt, n_actions)                                                                     \
    do {                                                                                                               \
        engine_fixture_step(w, dt);                                                                                    \
        assert_int_equal((w)->n, n_actions);                                                                           \
    } while (0)
#define engine_fixture_run_asks(w, dt, n_actions)                                                                      \
    do {                                                                                                               \
        engine_fixture_run(w, dt);                                                                                     \
        assert_int_equal((w)->n, n_actions);                                                                           \
    } while (0)

/** The plan must give this reason for the thread. */
#define engine_fixture_assert_why(w, tid, why) assert_ptr_equal(engine_fixture_planned(w, tid)->reason, why)

/** Returns the action of the last step for this thread, or NULL. The test fails if there is more than one. */
const struct asym_action *engine_fixture_action(const struct engine_fixture *w, int32_t tid);
const struct asym_plan_task *engine_fixture_planned(const struct engine_fixture *w, int32_t tid);

struct asym_mask engine_fixture_cpus(const char *list);
void engine_fixture_assert_mask(const struct asym_mask *m, const char *list);

#endif
