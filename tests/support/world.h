/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A machine, processes and threads as literals, an engine over them, and a policy that does what the test says. The
 * actuator is the test: world_apply does what a kernel would, world_answer answers what the test wants.
 */
#ifndef ASYM_TEST_WORLD_H
#define ASYM_TEST_WORLD_H

#include <asym/engine.h>

enum { WORLD_PROCS = 16, WORLD_THREADS = 64 };

/** What the test policy shall answer, by the last digits of the tid, and what it was shown. */
struct world_orders {
    unsigned calls;
    int small_arena; /* ask for more memory so many times */
    int error;       /* returned by plan, if not 0 */
    struct {
        int32_t cpu;
        int8_t delta;
        bool claim, monitor;
    } of[1000];
    size_t n_apps, n_threads;
    asym_usec interval, in_turn;
    struct asym_policy_app apps[WORLD_PROCS];
    struct asym_policy_thread threads[WORLD_THREADS];
    unsigned char state[WORLD_THREADS]; /* of each thread, before this call adds one */
    unsigned char policy_state;
};

struct world_params {
    struct world_orders *orders;
};

/** Two policies with the same answers: pin type and pin cpu. Their per-thread and policy state count calls. */
extern const struct asym_policy world_policy_type, world_policy_cpu;

/** As the first, but asked at once when a program tells of a serial phase. */
extern const struct asym_policy world_policy_reacts;

/** As the first, but it keeps its own period. */
extern const struct asym_policy world_policy_own_period;

struct world_thread {
    struct asym_task task; /* proc is the index below; mask and cpuset are taken from here: */
    struct asym_mask mask, cpuset;
    bool listed;
    double instructions; /* counted since the last look; 0: it was not counted */
};

struct world {
    struct asym_machine machine;
    struct asym_proc procs[WORLD_PROCS];
    double runnable[WORLD_PROCS]; /* of the application; below 0: the sum over its listed threads */
    struct world_thread threads[WORLD_THREADS];
    size_t n_procs, n_threads;
    asym_usec now;
    bool urgent; /* of the next snapshots */
    struct world_orders orders;
    struct world_params params;
    struct asym_engine_config config;
    struct asym_engine *engine;
    /* of the last step */
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n;
    struct asym_app s_apps[WORLD_PROCS];
    struct asym_task s_tasks[WORLD_THREADS];
    struct asym_sample s_samples[WORLD_THREADS];
    const struct world_thread *s_of[WORLD_THREADS];
};

/** CPUs 0..n_slow-1 at speed 1, then n_fast at speed 2; each LLC holds llc CPUs. */
void world_machine(struct asym_machine *m, unsigned n_slow, unsigned n_fast, unsigned llc);

/** 4 slow and 4 fast CPUs under two LLCs; settle 500 ms, hold-off 10 s, release 5 s, swap 100 ms; the time is 1000 s. */
void world_init(struct world *w);
void world_done(struct world *w);

/** The same for cmocka: a world of its own for each test. */
int world_setup(void **state);
int world_teardown(void **state);

/** A process that is an application, one minute old. Returns its index. */
unsigned world_proc(struct world *w, int32_t pid);
/** A thread that runs all the time on CPU 0 and may run everywhere; by order cpu. Returns it. */
struct world_thread *world_thread(struct world *w, unsigned proc, int32_t tid, int32_t cpu);
void world_order(struct world *w, int32_t tid, int32_t cpu, bool claim);

/** One step, after dt more. Fails the test when the step fails. */
void world_step(struct world *w, asym_usec dt);
int world_try_step(struct world *w, asym_usec dt);

/** Carry the actions out as a kernel would, comparing first. */
void world_apply(struct world *w);
/** world_step, then world_apply. */
void world_run(struct world *w, asym_usec dt);
void world_answer(struct world *w, enum asym_verdict verdict, int error);

/** NULL when the last step has none for this thread; fails the test when it has more than one. */
const struct asym_action *world_action(const struct world *w, int32_t tid);
const struct asym_plan_task *world_planned(const struct world *w, int32_t tid);

struct asym_mask world_cpus(const char *list);
void world_assert_mask(const struct asym_mask *m, const char *list);

#endif
