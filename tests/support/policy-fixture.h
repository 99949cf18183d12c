/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Calls a policy directly, with a few applications on a machine of any speeds. */
#ifndef ASYM_TESTS_SUPPORT_POLICY_FIXTURE_H
#define ASYM_TESTS_SUPPORT_POLICY_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "support/test.h"

#define POLICY_FIXTURE_MOST  128
#define POLICY_FIXTURE_STATE 256

struct policy_fixture_app {
    enum asym_phase phase;
    enum asym_class_source class_by;
    double runnable;
    asym_usec since; /**< begin of its phase */
    unsigned first, n;
    bool here;
};

struct policy_fixture_thread {
    unsigned app, proc;                            /**< proc: of its process in the application */
    bool here;                                     /**< runnable: the policy sees it */
    bool alone, awake, master, in_phase, spinning; /**< as in struct asym_policy_thread */
    int nice;                                      /**< its own nice value */
    uint32_t nice_group;
    uint64_t start;            /**< start time of its id; the thread's index unless set */
    double runnable, critical; /**< as there */
    int32_t preferred_cpu;
    const struct asym_mask *allowed;
    const struct asym_profile *profile;
    struct asym_sample sample;     /**< counts since the last plan; instructions 0: no sample */
    struct asym_assignment answer; /**< from the last plan that had this thread */
    _Alignas(16) unsigned char state[POLICY_FIXTURE_STATE];
};

struct policy_fixture {
    const struct asym_policy *policy;
    struct asym_machine machine;
    asym_usec now, unmeasured; /**< unmeasured: the time since the last plan with new measurements */
    asym_usec swap_period;     /**< as in struct asym_policy_input */
    const void *params;
    double unsteered;  /**< runnable threads that asymd does not steer */
    double light_from; /**< threads that run for less than this share are light; 0: none is */
    unsigned n_apps, n_threads;
    struct policy_fixture_app apps[POLICY_FIXTURE_MOST];
    struct policy_fixture_thread threads[POLICY_FIXTURE_MOST];
    unsigned moved; /**< threads that the last plan moved off their preferred CPU */
    unsigned count[ASYM_MAX_CPUS];
    asym_usec again;        /* as spare */
    struct asym_mask spare; /**< the CPUs that the last plan leaves idle */
    _Alignas(16) unsigned char state[4 * POLICY_FIXTURE_STATE];
};

/**
 * Set up n CPUs with these speeds, one LLC and node, and no SMT siblings. All parameters of the policy are zero: to test with
 * others, point params at a copy of the policy's own struct.
 */
void policy_fixture_begin(struct policy_fixture *w, const char *policy, const double *speeds, size_t n);

/** Add an application of n runnable threads. It is serial if n is at most 2, else parallel. Returns its first thread. */
unsigned policy_fixture_enter(struct policy_fixture *w, unsigned n);

/** Remove the threads of an application, until the test sets here again. */
void policy_fixture_leave(struct policy_fixture *w, unsigned app);

/** Change the phase of an application at the current time. */
void policy_fixture_phase(struct policy_fixture *w, unsigned app, enum asym_phase phase, double runnable);

/** Advance the time by 100 ms, plan, check the rules for every answer, and put each thread on its CPU. */
void policy_fixture_plan(struct policy_fixture *w);

/** The same, and the plan must move so many threads. A macro, so that a failure names the line of the test. */
#define policy_fixture_plan_moves(w, n_moved)                                                                          \
    do {                                                                                                               \
        policy_fixture_plan(w);                                                                                        \
        assert_int_equal((w)->moved, n_moved);                                                                         \
    } while (0)

/** The same, but advance the time by time. */
void policy_fixture_plan_after(struct policy_fixture *w, asym_usec time);

/** Advance the time by time, but plan without new measurements, as when a program reports a phase. */
void policy_fixture_plan_refreshed(struct policy_fixture *w, asym_usec time);

/** The same without advancing the time. */
void policy_fixture_plan_again(struct policy_fixture *w);

/** Advance the time by time, and have the policy exchange CPUs of the last plan. moved counts the threads that it moved. */
void policy_fixture_exchange(struct policy_fixture *w, asym_usec time);

static inline int32_t policy_fixture_cpu(const struct policy_fixture *w, unsigned thread)
{
    return w->threads[thread].answer.cpu;
}

#endif
